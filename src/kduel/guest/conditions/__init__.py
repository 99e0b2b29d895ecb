"""Conditions of a real machine: captured with every trial, held within limits, set where requested and restored."""

import re
import shlex
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kduel.core.errors import InputError
from kduel.core.untrusted import read

OUT_OF_BAND = 4
"""The script's exit status where a condition is not met in time."""
LISTS = ("usb", "modules", "services")
MOST_BYTES = 1 << 20
Word = Annotated[str, Meta(pattern="^[a-z0-9_-]{0,40}$")]


class Bands(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [machine.conditions]: a trial outside of it is void, whoever its contender is. Empty: no limit."""

    governor: Word = ""
    platform_profile: Word = ""
    turbo: Literal["", "on", "off"] = ""
    smt: Literal["", "on", "off"] = ""
    supply: Literal["", "AC", "battery"] = ""
    temperature_below: Annotated[float, Meta(gt=0, le=150)] | None = None
    """Degrees Celsius, of the hottest sensor of the processor, before a trial."""
    load_below: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    """The load average of one minute, before a trial."""
    wait: Annotated[float, Meta(ge=0, le=86_400)] = 300.0
    """Seconds to wait for temperature and load."""
    set: tuple[Literal["governor", "platform_profile", "turbo"], ...] = ()
    """Conditions that KDuel may set for a trial, and puts back after it; all else must be so already."""

    @property
    def asked(self) -> bool:
        return self != Bands(wait=self.wait)


SETTERS = {
    "governor": 'for f in "$cpu"/cpu[0-9]*/cpufreq/scaling_governor; do put "$f" {value} || exit {bad}; done',
    "platform_profile": 'put "$S/firmware/acpi/platform_profile" {value} || exit {bad}',
    "turbo": 'if [ -e "$cpu/intel_pstate/no_turbo" ]; then put "$cpu/intel_pstate/no_turbo" {inverse} || exit {bad}; '
    'else put "$cpu/cpufreq/boost" {direct} || exit {bad}; fi',
}


def check(bands: Bands) -> None:
    """Raises InputError for what is to be set without a value."""
    for name in bands.set:
        if not getattr(bands, name):
            raise InputError(
                f"machine.conditions: {name} is to be set, and no value is given", f'Add {name} = "...".'
            )


@cache
def library() -> str:
    return files("kduel.guest.conditions").joinpath("conditions.sh").read_text("utf-8")


def script(bands: Bands, restore: str, undo: str = "") -> str:
    """`sh conditions.sh begin|end|restore FILE`: for a trial's begin and end; FILE takes the captured conditions.

    `restore` is a file on the machine that restores all settings; it is written before anything is changed, and
    a `begin` that finds one left by a crash runs it first. `undo` are shell lines that belong there too: what takes back
    things that the trial's own script does. Ends with OUT_OF_BAND, and says why, for a void trial.
    """
    still = [
        f"outside {name} {shlex.quote(value)} && bad=1"
        for name in ("governor", "platform_profile", "turbo", "smt", "supply")
        if (value := getattr(bands, name))
    ]
    moving = []
    if bands.temperature_below is not None:
        moving.append(f'below temperature "$(temperature)" {round(1000 * bands.temperature_below)} && bad=1')
    if bands.load_below is not None:
        moving.append(f'below load "$(load)" {bands.load_below:g} && bad=1')
    sets = [
        SETTERS[name].format(
            value=shlex.quote(getattr(bands, name)),
            direct=int(bands.turbo == "on"),
            inverse=int(bands.turbo != "on"),
            bad=OUT_OF_BAND,
        )
        for name in bands.set
    ]
    nothing = ":"
    return f"""#!/bin/sh
{library()}
RESTORE={shlex.quote(restore)}
still() {{
    bad=
    {chr(10).join(still) or nothing}
    [ -z "$bad" ]
}}
moving() {{
    bad=
    {chr(10).join(moving) or nothing}
    [ -z "$bad" ]
}}
case $1 in
    begin)
        restore || exit {OUT_OF_BAND}
        {f"remember {shlex.quote(undo)} || exit {OUT_OF_BAND}" if undo else nothing}
        {chr(10).join(sets) or nothing}
        still || exit {OUT_OF_BAND}
        left={round(bands.wait)}
        until why=$(moving); do
            [ "$left" -gt 0 ] || {{ echo "$why after {bands.wait:g} s"; exit {OUT_OF_BAND}; }}
            sleep 5
            left=$((left - 5))
        done
        tell_conditions >"$2"
        ;;
    end)
        still
        held=$?
        restore || exit {OUT_OF_BAND}
        [ "$held" = 0 ] || exit {OUT_OF_BAND}
        ;;
    restore) restore ;;
esac
"""


def read_conditions(path: Path) -> dict[str, Any]:
    """Conditions that `begin` captured: lists for usb, modules and services, else texts. {} where there is no such file."""
    try:
        text = read(path, MOST_BYTES)
    except OSError:
        return {}
    found: dict[str, Any] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([a-z0-9_.-]+)=(.*)", line, re.ASCII | re.IGNORECASE)
        if match is None:
            continue
        if match[1] in LISTS:
            found.setdefault(match[1], []).append(match[2])
        else:
            found[match[1]] = match[2]
    return found
