"""boot-instructions: how many instructions a kernel takes from its entry to its first process (machine icount)."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.reading import check_positive, find_whole, split_lines
from kduel.core.experiment import Metric

GUEST_FILE = "/kduel/boot-instructions"
"""File in which the machine icount leaves the number."""

UNCOUNTED = "not counted: that takes the machine icount without --layouts, and a kernel built with CONFIG_PVH"


class BootInstructions(Benchmark[Parameters]):
    """Instructions that the machine icount counted for this kernel, in a boot of its own, and left in the guest for this."""

    name = "boot-instructions"
    summary = "Instructions from the kernel's first to the first of init, on the machine icount"
    label_template = "boot"
    declared_metrics = with_aspect(
        "path-length",
        Metric(
            "boot-instructions", "instructions", "lower", "From the kernel's entry to init's first.", group="boot"
        ),
    )
    duration = 0.1
    counts = True

    def script(self, parameters: Parameters) -> str:
        return f"[ -r {GUEST_FILE} ] || {{ echo '{UNCOUNTED}' >&2; exit 1; }}\ncat {GUEST_FILE}\n"

    def parse(self, raw: Raw, parameters: Parameters) -> dict[str, float]:
        what = "the number of instructions, which takes the machine icount"
        split_lines(raw.stdout, what)
        return {"boot-instructions": check_positive(find_whole(r"([^\n]+)", raw.stdout, what), what)}


PLUGIN = BootInstructions()
