"""power: energy of the processor by its own counters (RAPL through powercap), idle and under load, and per unit of work."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Count, label_of
from kduel.benchmarks.support.reading import number, only, only_number, positive
from kduel.core.experiment import Metric

MOST_WATTS = 1000.0
"""A counter that less than this could have carried around a whole time may have been: its figure would be a guess."""
LINE = re.compile(r"(\S+) (\S+) (\S+) (\S+)")


class Snapshot(Struct, frozen=True):
    """The counters at one moment."""

    uptime: float
    """Seconds."""
    energy: dict[str, tuple[str, int, int]]
    """By zone (`intel-rapl:0:1`): the domain's name, microjoules, and the counter's largest value."""


class Power(Benchmark):
    """Idle first, then sysbench cpu. Packages are summed; a domain that the machine lacks fails the step, never is 0."""

    name = "power"
    summary = "Processor power idle and under load, energy per unit of work (RAPL by powercap; real machines only)"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`threads` 0 is one for each CPU; `domains` are further ones than the package: core, uncore, dram, psys."""

        threads: Annotated[int, Meta(ge=0, le=10_000)] = 0
        time: Annotated[int, Meta(ge=1, le=600)] = 10
        idle: Annotated[int, Meta(ge=1, le=600)] = 10
        cpu_max_prime: Count = 10_000
        domains: tuple[Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,30}$")], ...] = ()

    def label(self, parameters: Any) -> str:
        return label_of("power", parameters, threads="{}t", time="{}s", idle="idle{}s", cpu_max_prime="prime{}")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        metrics = [
            Metric(
                "events-per-joule", "events/J", "higher", "Performance per watt, the idle power included.", "mean"
            ),
            Metric("energy-per-event", "mJ", "lower", "Energy of a unit of work, the idle power included.", "mean"),
            Metric("net-energy-per-event", "mJ", "lower", "The same, less what idling would have taken.", "mean"),
            Metric("load-power", "W", "lower", "Of all packages under load.", "mean"),
            Metric("idle-power", "W", "lower", "Of all packages without it.", "mean"),
            Metric("events-per-second", "events/s", "higher", "The throughput that the power bought.", "mean"),
        ]
        for domain in parameters.domains:
            metrics.append(Metric(f"load-power-{domain}", "W", "lower", f"Of {domain} under load.", "mean"))
            metrics.append(Metric(f"idle-power-{domain}", "W", "lower", f"Of {domain} without it.", "mean"))
        return tuple(metrics)

    def script(self, parameters: Any) -> str:
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

    def seconds(self, parameters: Any) -> float:
        return float(parameters.time + parameters.idle)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        idle, load, end = read_snapshots(raw.files.get("energy", ""))
        threads = only_number(r"Number of threads: (\S+)", raw.stdout, "the number of threads")
        if parameters.threads not in (0, threads):
            raise ParseError(f"it ran with {threads:g} threads; asked for was {parameters.threads}")
        only(rf"Prime numbers limit: ({parameters.cpu_max_prime})", raw.stdout, "the limit of primes asked for")
        report = sysbench.read_report(raw.stdout, int(threads))
        events = positive(report["total-events"], "the number of events")
        idle_power, load_power = power(idle, load, "package"), power(load, end, "package")
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
            values[f"load-power-{domain}"] = power(load, end, domain)
            values[f"idle-power-{domain}"] = power(idle, load, domain)
        return values


def read_snapshots(text: str) -> list[Snapshot]:
    """The three snapshots. Raises ParseError where one is missing, or the counters cannot be read."""
    found: dict[str, Snapshot] = {}
    zones: dict[str, tuple[str, int, int]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "snapshot":
            zones = {}
            found[words[1]] = Snapshot(number(words[2], "the time of a snapshot"), zones)
            continue
        match = LINE.fullmatch(line)
        if match is None or not found:
            raise ParseError(f"a line of the energy counters is {line[:60]!r}")
        zone, name, energy, most = match.groups()
        if energy == "denied":
            raise ParseError(f"permission denied to read the energy of {name} ({zone}): only root may")
        if not (energy.isdigit() and most.isdigit()):
            raise ParseError(f"the energy counter of {name} ({zone}) says {energy[:20]!r} of {most[:20]!r}")
        zones[zone] = (name, int(energy), int(most))
    if list(found) != ["idle", "load", "end"]:
        raise ParseError("the step did not take its three snapshots of the energy counters")
    if not found["idle"].energy:
        raise ParseError("the machine shows no energy counters (no intel-rapl zone under /sys/class/powercap)")
    return list(found.values())


def power(before: Snapshot, after: Snapshot, domain: str) -> float:
    """Watts of a domain between two snapshots, all packages together. `package` means package-0, package-1, ...

    Raises ParseError where the machine has no such domain, or a counter could have gone around unseen.
    """
    seconds = after.uptime - before.uptime
    if seconds <= 0:
        raise ParseError("no time passed between two snapshots of the energy counters")
    total, names = 0, set()
    for zone, (name, start, most) in before.energy.items():
        names.add(name)
        if name != domain and not (domain == "package" and re.fullmatch(r"package-\d+", name)):
            continue
        if zone not in after.energy:
            raise ParseError(f"the energy counter of {name} ({zone}) went away")
        if most <= 0 or most / 1e6 / seconds < MOST_WATTS / 2:
            raise ParseError(
                f"the counter of {name} ({zone}) goes around every {most / 1e6:.0f} J: too often for {seconds:.0f} s"
            )
        end = after.energy[zone][1]
        total += end - start if end >= start else end + most - start
    if not any(name == domain or (domain == "package" and name.startswith("package-")) for name in names):
        raise ParseError(f"the machine has no energy counter of {domain}; it has {', '.join(sorted(names))}")
    return positive(total / 1e6 / seconds, f"the power of {domain}")


PLUGIN = Power()
