"""Scheduling policies in words: `fifo:50`, `nice:5`, `deadline:2ms,10ms,10ms`, `batch slice:3ms`. What the kernel
would refuse is refused here as far as known (sched(7), kernel/sched/syscalls.c, deadline.c), else by `kpolicy`."""

import re
from collections.abc import Callable

from msgspec import Struct

from kduel.core.errors import InputError

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
FIXED = ("other", "batch", "idle", "ext")
FAIR = ("other", "batch", "ext")
REALTIME = ("fifo", "rr", "deadline")
REALTIME_SHARE = 0.95
"""Share of all CPUs that the kernel gives to real-time and deadline tasks by default (sched_rt_runtime_us)."""
WORDS = (
    "A policy is one of other, batch, idle, ext, fifo:1..99, rr:1..99, deadline:RUNTIME,DEADLINE,PERIOD, and for other "
    "and batch also nice:-20..19 and slice:0.1ms..100ms. Times have a unit: 500us, 10ms, 1s."
)


class Policy(Struct, frozen=True, kw_only=True):
    """A policy with its parameters; times in ns, 0 where there is none."""

    text: str
    kind: str = "other"
    priority: int = 0
    nice: int = 0
    slice: int = 0
    runtime: int = 0
    deadline: int = 0
    period: int = 0

    @property
    def canonical(self) -> str:
        """Argument for our C programs: no blank, times in ns."""
        if self.kind in ("fifo", "rr"):
            return f"{self.kind}:{self.priority}"
        if self.kind == "deadline":
            return f"deadline:{self.runtime},{self.deadline},{self.period}"
        words = [self.kind]
        words += [f"nice:{self.nice}"] if self.nice else []
        words += [f"slice:{self.slice}"] if self.slice else []
        return "+".join(words)


def parse_policy(text: str) -> Policy:
    """The policy that `text` describes. Raises InputError that states what is wrong with it."""
    found: dict[str, str | int] = {}
    words = text.replace("+", " ").split()
    for word in words:
        for key, value in _word(text, word).items():
            if key in found:
                raise policy_error(text, f"it gives {'the policy' if key == 'kind' else key} twice")
            found[key] = value
    if not words:
        raise policy_error(text, "it is empty")
    kind = found.setdefault("kind", "other")
    for option in ("nice", "slice"):
        if option in found and kind not in FAIR:
            raise policy_error(text, f"{kind} has no {option}")
    policy = Policy(text=text, **found)  # type: ignore[arg-type]
    if policy.kind == "deadline":  # every kernel refuses these (__checkparam_dl)
        if policy.runtime < 1024:
            raise policy_error(policy.text, "the runtime is below the kernel's least, 1024 ns")
        if not policy.runtime <= policy.deadline <= policy.period:
            raise policy_error(policy.text, "the kernel requires runtime <= deadline <= period")
        if not 100_000 <= policy.period <= 4_194_304_000:
            raise policy_error(
                policy.text, "the period is outside the kernel's 100 us to 4.19 s (sched_deadline_period_*)"
            )
    return policy


def is_realtime(text: str) -> bool:
    """True if tasks of a policy run before all ordinary ones, until they sleep; the policy is known to be valid."""
    return bool(text) and parse_policy(text).kind in REALTIME


def _word(text: str, word: str) -> dict[str, str | int]:
    name, colon, value = word.partition(":")
    if name in FIXED and not colon:
        return {"kind": name}
    readers: dict[str, Callable[[str, str], dict[str, str | int]]] = {
        "fifo": _priority, "rr": _priority, "deadline": _deadline, "nice": _nice, "slice": _slice,
    }  # fmt: skip
    if name not in readers or not value:
        raise policy_error(text, f"{word!r} is not known")
    if name in REALTIME:
        return {"kind": name, **readers[name](text, value)}
    return readers[name](text, value)


def _read_whole(text: str, value: str, least: int, most: int, what: str) -> int:
    if not re.fullmatch(r"-?\d{1,4}", value) or not least <= int(value) <= most:
        raise policy_error(text, f"the {what} is {value}, not a whole number from {least} to {most}")
    return int(value)


def _priority(text: str, value: str) -> dict[str, str | int]:
    return {"priority": _read_whole(text, value, 1, 99, "priority")}


def _nice(text: str, value: str) -> dict[str, str | int]:
    return {"nice": _read_whole(text, value, -20, 19, "nice level")}


def _slice(text: str, value: str) -> dict[str, str | int]:
    length = _time(text, value)
    # The kernel would clamp other values silently.
    if not 100_000 <= length <= 100_000_000:
        raise policy_error(text, f"the slice of {value} is outside the kernel's 0.1 to 100 ms")
    return {"slice": length}


def _deadline(text: str, value: str) -> dict[str, str | int]:
    parts = value.split(",")
    if len(parts) != 3:
        raise policy_error(text, "deadline takes three times: runtime, deadline, period")
    return dict(zip(("runtime", "deadline", "period"), (_time(text, part) for part in parts), strict=True))


def _time(text: str, value: str) -> int:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s)", value)
    if not match:
        raise policy_error(text, f"{value!r} is not a time with a unit (ns, us, ms, s)")
    return round(float(match[1]) * UNITS[match[2]])


def check_admission(policy: Policy, processes: int, cpus: int) -> None:
    """Raises InputError where so many processes of a deadline policy are certainly too much for so many CPUs; a
    kernel with deadline servers (6.12 and later) admits some 5 % less still."""
    share = processes * policy.runtime / policy.period if policy.kind == "deadline" else 0.0
    if share > REALTIME_SHARE * cpus:
        raise policy_error(
            policy.text,
            f"{processes} such processes reserve {share:.3g} CPUs, and the kernel admits {REALTIME_SHARE * cpus:.3g} "
            f"of this machine's {cpus}",
            "Give less runtime or a longer period.",
        )


def policy_error(text: str, why: str, remedy: str = WORDS) -> InputError:
    return InputError(f"the policy {text!r} is not usable: {why}", remedy)
