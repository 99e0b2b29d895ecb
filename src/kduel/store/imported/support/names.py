"""Meaning of names in an imported file that does not state it: the only place where names are interpreted."""

import re
from typing import Literal

from kduel.core.experiment import Aspect, Statistic
from kduel.core.samples import StepResult
from kduel.core.toml import table_beside

Kind = Literal["measured", "count or size", "exact", "scheduled"]
"""What a metric is. Chance has no part in a count or size: one value of each contender decides, unless repetitions
differ. What is exact was counted on a deterministic machine, so that values of one trial and condition are pairs; what is
scheduled, on one with several CPUs, whose scheduler decides otherwise from the least cause: conditions are a sample."""
BYTES = re.compile(r"([KMGT]i?|k)?B|bytes?", re.IGNORECASE)
SIZE = re.compile(r"(?<![a-z])sizes?(?![a-z])", re.IGNORECASE)
IN_USE = re.compile(r"resident|working|heap|stack|memory|rss", re.IGNORECASE)
STATISTICS: dict[str, Statistic] = {
    "max": "max", "maximum": "max", "worst": "max", "min": "min", "minimum": "min", "mean": "mean", "avg": "mean",
    "average": "mean", "median": "median", "p50": "median", "p95": "p95", "p99": "p99", "p999": "p999",
}  # fmt: skip
SIZES = {"small": 10, "medium": 100, "large": 1000}
"""The numbers of processes in a published study of scheduling policies."""
NUMBER = re.compile(r"(\d{1,9})([a-z]{0,4})")
ASPECTS: dict[str, Aspect] = table_beside(__file__)


def aspect_of(benchmark: str, metric: str) -> Aspect:
    """Aspect that a metric measures, by its name; empty where the name does not show it."""
    name = f"{benchmark}/{metric}".replace("_", "-")
    return next((aspect for pattern, aspect in ASPECTS.items() if re.fullmatch(pattern, name, re.IGNORECASE)), "")


def kind_of(benchmark: str, metric: str, unit: str) -> Kind:
    """A metric's kind where the file states none: bytes of something called `size` are of something built."""
    names = f"{benchmark}\n{metric}"
    return (
        "count or size" if BYTES.fullmatch(unit) and SIZE.search(names) and not IN_USE.search(names) else "measured"
    )


def statistic(metric: str) -> Statistic:
    """Statistic that made one number of many samples."""
    for word in re.split(r"[^a-z0-9]+", metric.lower()):
        if word in STATISTICS:
            return STATISTICS[word]
    return "value"


def step_of(label: str) -> StepResult:
    """The label without its numbers, and these as parameters: `sysbench-cpu-2t` is `sysbench-cpu-#t`, threads = 2."""
    words, parameters = label.split("-"), {}
    for position, word in enumerate(words):
        match = NUMBER.fullmatch(word)
        count = SIZES.get(word) or (int(match[1]) if match else 0)
        if count:
            suffix = match[2] if match else ""
            words[position] = f"#{suffix}"
            parameters["threads" if suffix == "t" and "threads" not in parameters else f"word {position + 1}"] = count
    return StepResult(label=label, benchmark="-".join(words), parameters=parameters)
