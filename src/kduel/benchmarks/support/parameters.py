"""Types and labels that the benchmarks' parameters share: bounded types, and the label that distinguishes them."""

import re
from string import Formatter
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import fields, replace

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Requests = Annotated[int, Meta(ge=100, le=1_000_000_000)]
"""A count of what has a latency: one of 100 lies above the 99th percentile."""
Number = Annotated[int, Meta(ge=0, le=1_000_000_000)]
"""A count that may be 0."""
Threads = Annotated[int, Meta(ge=1, le=10_000)]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]
Size = Annotated[str, Meta(pattern="^[1-9][0-9]{0,8}[KMGT]?$")]
"""Bytes, with the suffix that these programs share: K, M, G, T are powers of 1024."""


def to_mebibytes(size: str) -> float:
    scale = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
    return float(size.rstrip("KMGT")) * scale.get(size[-1], 1 / 1024**2)


def label_of(head: str, parameters: Struct, **forms: str) -> str:
    """A step's label: `head` filled with the parameters that it names, then all others not at their default, as
    `forms` has them (`time="{}s"`), or by name and value. Different parameters never share a label."""
    named = {name for _, name, _, _ in Formatter().parse(head) if name}
    words = [head.format(**{name: slug(getattr(parameters, name)) for name in named})]
    for field in fields(parameters):
        value = getattr(parameters, field.name)
        if field.name in named or value == field.default:
            continue
        plain = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(plain if value else f"no-{plain}")
        else:
            words.append(forms.get(field.name, f"{plain}-{{}}").format(slug(value)))
    return "-".join(words)


def cut_time(parameters: Any, slices: int, *, whole: bool = True) -> list[Any]:
    """Slices of equal length of a step with a `time`; with `whole` seconds, the most of them, up to `slices`, that divide it."""
    count = slices
    if whole:
        count = next(number for number in range(min(slices, parameters.time), 0, -1) if parameters.time % number == 0)
    time = parameters.time // count if whole else parameters.time / count
    return [replace(parameters, time=time)] * count


def slug(value: Any) -> str:
    """A value as part of a label: [a-z0-9.-]+."""
    return re.sub(r"[^a-z0-9.]+", "-", str(value).lower()).strip("-")
