"""boot-instructions: how many instructions a kernel takes from its entry to its first process (machine icount)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support.reading import only_whole, positive, whole_lines
from kduel.core.experiment import Metric

GUEST_FILE = "/kduel/boot-instructions"
"""Where the machine icount leaves the number."""

UNCOUNTED = "not counted: that takes the machine icount without --layouts, and a kernel built with CONFIG_PVH"


class BootInstructions(Benchmark):
    """What the machine icount counted for this kernel, in a boot of its own, and left in the guest for this."""

    name = "boot-instructions"
    summary = "Instructions from the kernel's first to the first of init, on the machine icount"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """None."""

    def label(self, parameters: Any) -> str:
        return "boot"

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric(
                "boot-instructions",
                "instructions",
                "lower",
                "From the kernel's entry to init's first.",
                group="boot",
                aspect="path-length",
            ),
        )

    def counted(self, parameters: Any) -> bool:
        return True

    def script(self, parameters: Any) -> str:
        return f"[ -r {GUEST_FILE} ] || {{ echo '{UNCOUNTED}' >&2; exit 1; }}\ncat {GUEST_FILE}\n"

    def seconds(self, parameters: Any) -> float:
        return 0.1

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        what = "the number of instructions, which takes the machine icount"
        whole_lines(raw.stdout, what)
        return {"boot-instructions": positive(only_whole(r"([^\n]+)", raw.stdout, what), what)}


PLUGIN = BootInstructions()
