"""power: energy of the processor by its own counters (RAPL through powercap), idle and under load, and per unit of work."""

from typing import Annotated

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Count
from kduel.benchmarks.support.reading import (
    check_positive,
    read_number,
    read_whole,
    split_lines,
)
from kduel.core.experiment import Aspect, Metric

MOST_WATTS = 1000.0
"""No package takes more. A counter that half of this could carry around a whole time may have gone around unseen, and
one that shows more has not wrapped around but gone back: its figure would be a guess."""


POWER = "difference of two readings of the energy counters / seconds between them"


def power_metric(name: str, unit: str, about: str, derived: str, aspect: Aspect = "") -> Metric:
    """A metric of this benchmark: rates are better high, energy and power low."""
    return Metric(
        name, unit, "higher" if unit.startswith("events/") else "lower", about, "mean", derived=derived, aspect=aspect
    )


class Snapshot(Struct, frozen=True):
    uptime: float
    """Seconds."""
    energy: dict[str, tuple[str, int, int]]
    """For each zone (`intel-rapl:0:1`) the domain's name, microjoules, and the counter's largest value."""


class PowerParameters(Parameters, frozen=True):
    """`threads` 0 is one for each CPU; `domains` are further ones than the package: core, uncore, dram, psys."""

    threads: Annotated[int, Meta(ge=0, le=10_000)] = 0
    time: Annotated[int, Meta(ge=1, le=600)] = 10
    idle: Annotated[int, Meta(ge=1, le=600)] = 10
    cpu_max_prime: Count = 10_000
    domains: tuple[Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,30}$")], ...] = ()


class Power(Benchmark[PowerParameters]):
    """Idle first, then sysbench cpu. Packages are summed; a domain that the machine lacks fails the step, never is 0."""

    name = "power"
    summary = "Processor power idle and under load, energy per unit of work (RAPL by powercap; real machines only)"
    label_formats = {"threads": "{}t", "time": "{}s", "idle": "idle{}s", "cpu_max_prime": "prime{}"}

    def metrics(self, parameters: PowerParameters) -> tuple[Metric, ...]:
        per_watt = "Performance per watt, the idle power included."
        of_a_unit = "Energy of a unit of work, the idle power included."
        net = "The same, less what idling would have taken."
        metrics = [
            power_metric("events-per-joule", "events/J", per_watt, "events / energy", "efficiency"),
            power_metric("energy-per-event", "mJ", of_a_unit, "energy / events", "energy"),
            power_metric("net-energy-per-event", "mJ", net, "(energy - idle power x seconds) / events", "energy"),
            power_metric("load-power", "W", "Of all packages under load.", POWER, "power"),
            power_metric("idle-power", "W", "Of all packages without it.", POWER, "idle-power"),
            power_metric(
                "events-per-second", "events/s", "The throughput that the power bought.", "events / total time"
            ),
        ]
        for domain in parameters.domains:
            metrics.append(power_metric(f"load-power-{domain}", "W", f"Of {domain} under load.", POWER))
            metrics.append(power_metric(f"idle-power-{domain}", "W", f"Of {domain} without it.", POWER))
        return tuple(metrics)

    def script(self, parameters: PowerParameters) -> str:
        p = parameters
        threads = p.threads or "$(nproc)"
        # intel-rapl-mmio shows the same package a second time.
        return f"""\
snapshot() {{
    read -r up _ </proc/uptime
    echo "snapshot $1 $up"
    for zone in "${{KDUEL_SYSFS:-/sys}}"/class/powercap/intel-rapl:*; do
        [ -e "$zone/name" ] || continue
        read -r name <"$zone/name"
        energy=denied
        if [ -r "$zone/energy_uj" ]; then read -r energy <"$zone/energy_uj" 2>/dev/null || energy=denied; fi
        read -r most <"$zone/max_energy_range_uj" 2>/dev/null || most=unknown
        echo "${{zone##*/}} $name $energy $most"
    done
}}
{{
    snapshot idle
    sleep {p.idle}
    snapshot load
}} >"$KDUEL_STEP/energy"
sysbench cpu --threads={threads} --time={p.time} --cpu-max-prime={p.cpu_max_prime} run
snapshot end >>"$KDUEL_STEP/energy"
"""

    def seconds(self, parameters: PowerParameters) -> float:
        return float(parameters.time + parameters.idle)

    def parse(self, raw: Raw, parameters: PowerParameters) -> dict[str, float]:
        idle, load, end = read_snapshots(raw.files.get("energy", ""))
        report = sysbench.read_primes(raw.stdout, parameters.threads, parameters.cpu_max_prime)
        events = check_positive(report["total-events"], "the number of events")
        idle_power, load_power = mean_watts(idle, load, "package"), mean_watts(load, end, "package")
        energy = load_power * (end.uptime - load.uptime)
        net = energy - idle_power * (end.uptime - load.uptime)
        if net <= 0:
            raise ParseError(
                f"the machine took {idle_power:.1f} W idle and {load_power:.1f} W under load: it was not idle"
            )
        values = {
            "events-per-joule": events / energy,
            "energy-per-event": 1000 * energy / events,
            "net-energy-per-event": 1000 * net / events,
            "load-power": load_power,
            "idle-power": idle_power,
            "events-per-second": events / report["total-time"],
        }
        for domain in parameters.domains:
            values[f"load-power-{domain}"] = mean_watts(load, end, domain)
            values[f"idle-power-{domain}"] = mean_watts(idle, load, domain)
        return values


def read_snapshots(text: str) -> list[Snapshot]:
    """The three snapshots, with the same zones. Raises ParseError where one is missing or unreadable."""
    found: dict[str, Snapshot] = {}
    zones: dict[str, tuple[str, int, int]] = {}
    for line in split_lines(text, "the energy counters"):
        words = line.split(" ")
        if len(words) == 3 and words[0] == "snapshot" and words[1] not in found:
            zones = {}
            found[words[1]] = Snapshot(read_number(words[2], "the time of a snapshot"), zones)
            continue
        if len(words) != 4 or not found or words[0] in zones:
            raise ParseError(f"a line of the energy counters is {line[:60]!r}")
        zone, name, energy, most = words
        if energy == "denied":
            raise ParseError(f"permission denied to read the energy of {name} ({zone}): only root may")
        what = f"the energy counter of {name[:30]} ({zone[:30]})"
        zones[zone] = (name, read_whole(energy, what), read_whole(most, f"the range of {what}"))
    if list(found) != ["idle", "load", "end"]:
        raise ParseError("the step did not take its three snapshots of the energy counters")
    if not found["idle"].energy:
        raise ParseError("the machine shows no energy counters (no intel-rapl zone under /sys/class/powercap)")
    shown = [{zone: (name, most) for zone, (name, _, most) in snapshot.energy.items()} for snapshot in found.values()]
    if not shown[0] == shown[1] == shown[2]:
        other = min(
            zone for zones in shown for zone, facts in zones.items() if any(facts != at.get(zone) for at in shown)
        )
        raise ParseError(f"the zone {other[:30]} is not the same in all three snapshots of the energy counters")
    return list(found.values())


def mean_watts(before: Snapshot, after: Snapshot, domain: str) -> float:
    """Watts of a domain (`package`: all of package-0, package-1, ...) between two snapshots. Raises ParseError where
    the domain is missing, or a counter went back or may have gone around unseen."""
    seconds = after.uptime - before.uptime
    if seconds <= 0:
        raise ParseError("no time passed between two snapshots of the energy counters")
    total = 0
    names = {name for name, _, _ in before.energy.values()}
    wanted = {name for name in names if name == domain or (domain == "package" and name.startswith("package-"))}
    if not wanted:
        raise ParseError(f"the machine has no energy counter of {domain}; it has {', '.join(sorted(names))[:200]}")
    for zone, (name, start, most) in before.energy.items():
        if name not in wanted:
            continue
        if most <= 0 or most / 1e6 / seconds < MOST_WATTS / 2:
            raise ParseError(
                f"the counter of {name} ({zone}) goes around every {most / 1e6:.0f} J: too often for {seconds:.0f} s"
            )
        end = after.energy[zone][1]
        taken = end - start if end >= start else end + most - start
        if max(start, end) > most or taken / 1e6 / seconds > MOST_WATTS:
            raise ParseError(
                f"the counter of {name} ({zone}) went from {start} to {end} in {seconds:.1f} s: it was reset, or is wrong"
            )
        total += taken
    return check_positive(total / 1e6 / seconds, f"the power of {domain}")


PLUGIN = Power()
