"""What distinguishes machines in series of runs: kind, place, product and processor, as far as they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "unknown machine"


def machine_name(machine: object, environment: Mapping[str, Any]) -> str:
    """`machine` is a table with kind, settings and facts; `environment` is what a trial captured."""
    known = machine if isinstance(machine, Mapping) else {}
    settings = known.get("settings")
    place = settings.get("place") if isinstance(settings, Mapping) else None
    product = environment.get("settings", {})
    product = product.get("/sys/class/dmi/id/product_name") if isinstance(product, Mapping) else None
    words = [known.get("kind"), known.get("accelerator"), place, product, environment.get("cpu_model")]
    return " ".join(str(word) for word in words if word) or UNKNOWN
