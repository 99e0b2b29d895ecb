"""Names that distinguish machines in series of runs: kind, place, product and processor, as far as they are known; of exact
counts also QEMU's version, on which they depend; and whether contenders took turns, whose levels are others."""

from collections.abc import Iterable, Mapping
from typing import Any

from kduel.core.text import plural

UNKNOWN = "unknown machine"
COUNTED_BY = ", counted by QEMU "


def machine_name(machine: object, environment: Mapping[str, Any]) -> str:
    """`machine`: kind, settings, facts; `exact` where it counts; `turns` in ms; `environment` as captured."""
    known = machine if isinstance(machine, Mapping) else {}
    settings = known.get("settings")
    place = settings.get("place") if isinstance(settings, Mapping) else None
    product = environment.get("settings", {})
    product = product.get("/sys/class/dmi/id/product_name") if isinstance(product, Mapping) else None
    words = [known.get("kind"), known.get("accelerator"), place, product, environment.get("cpu_model")]
    name = " ".join(str(word) for word in words if word) or UNKNOWN
    if "turns" in known:
        name += ", in turns"
    # 7.2.22 (Debian 1:7.2+dfsg-7): a distribution's patches do not make another series, unlike in one run.
    version = str(known.get("qemu", "")).split()
    return f"{name}{COUNTED_BY}{version[0]}" if known.get("exact") and version else name


def separation_notes(runs: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each exact machine whose runs are several series; of pairs of machine and run."""
    found: dict[str, dict[str, set[str]]] = {}
    for machine, run in runs:
        name, _, version = machine.rpartition(COUNTED_BY)
        if name:
            found.setdefault(name, {}).setdefault(version, set()).add(run)
    return [
        f"{name}: exact counts by different versions of QEMU are different series, since they are not comparable: "
        + ", ".join(f"{version} ({plural(len(counted), 'run')})" for version, counted in sorted(versions.items()))
        + "."
        for name, versions in sorted(found.items())
        if len(versions) > 1
    ]
