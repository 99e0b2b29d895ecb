"""kernel-size: what the contender's kernel takes in flash and in RAM, on the machine `build`."""

import re
from pathlib import Path

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.kernel_build import NEEDS_BUILD
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.parameters import Seconds
from kduel.core.experiment import Aspect, Metric, Statistic

SIZE = re.compile(
    r"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t]+([0-9a-f]{1,16})[ \t]+\S+", re.ASCII
)
"""The line of `size`: text, data, bss, their sum, the same hexadecimal, the file."""
SCRIPT = Path(__file__).with_suffix(".sh").read_text("utf-8")
INITRAMFS = """\
for file in usr/initramfs_data.cpio usr/initramfs_inc_data; do
    [ -e "$file" ] && wc -c <"$file" >"$KDUEL_STEP/initramfs" && exit 0
done
echo "no initramfs is built into this kernel" >&2
exit 1
"""


def size_metric(
    name: str, about: str, aspect: Aspect = "", statistic: Statistic = "value", derived: str = ""
) -> Metric:
    """A metric in bytes that chance has no part in: builds are reproducible."""
    return Metric(name, "B", "lower", about, statistic, exact=True, derived=derived, aspect=aspect)


METRICS = (
    size_metric("compressed", "In flash: bzImage, or vmlinux as a binary under gzip -9.", "size"),
    size_metric("image", "The file that is booted: bzImage, Image, vmlinux."),
    size_metric("text", "Code and constants of vmlinux, as size(1) says.", statistic="total"),
    size_metric("data", "Initialised data of vmlinux, as size(1) says.", statistic="total"),
    size_metric("bss", "Zeroed data of vmlinux, as size(1) says.", statistic="total"),
    size_metric("vmlinux", "text + data + bss: the kernel in RAM before it takes any more.", "size", "total"),
    Metric("modules", "count", "none", "Modules that were built.", "count", exact=True, derived="lines of the list"),
    size_metric("modules-size", "All of them together, as ls says.", "size", "total", "sum of sizes"),
)
BUILT_IN = size_metric("initramfs", "Built into the image, before compression.", "size")


class KernelSizeParameters(Parameters, frozen=True):
    """`initramfs`: also what INITRAMFS_SOURCE built into the image; `patience` where there is no build before."""

    initramfs: bool = False
    patience: Seconds = 14_400


class KernelSize(Benchmark[KernelSizeParameters]):
    """Sizes as `size` and `ls` give them. A build is reproducible, so that one pair of builds decides."""

    name = "kernel-size"
    summary = "Size of the contender's kernel: text, data, bss, images, modules (machine build)"
    only_on = "build"
    label_template = "size"
    duration = 5.0

    def metrics(self, parameters: KernelSizeParameters) -> tuple[Metric, ...]:
        return (*METRICS, BUILT_IN) if parameters.initramfs else METRICS

    def script(self, parameters: KernelSizeParameters) -> str:
        return f"{NEEDS_BUILD}\n{SCRIPT}{INITRAMFS if parameters.initramfs else ''}"

    def timeout(self, parameters: KernelSizeParameters) -> float:
        return float(parameters.patience)

    def parse(self, raw: Raw, parameters: KernelSizeParameters) -> dict[str, float]:
        lines = reading.split_lines(reading.read_file(raw, "size"), "the output of size")
        match = SIZE.fullmatch(lines[1]) if len(lines) == 2 else None
        if match is None:
            raise ParseError("size printed no line of text, data, bss and their sum")
        text, data, bss, total = (int(match[place]) for place in range(1, 5))
        if text + data + bss != total or int(match[5], 16) != total:
            raise ParseError(f"size contradicts itself: {text} + {data} + {bss} is not {total}")
        modules = self._modules(raw)
        values: dict[str, float] = {
            "compressed": self._count(raw, "compressed"), "image": self._count(raw, "image"),
            "text": reading.check_positive(text, "text"), "data": data, "bss": bss, "vmlinux": total, "modules": len(modules),
            "modules-size": sum(modules),
        }  # fmt: skip
        if parameters.initramfs:
            values["initramfs"] = self._count(raw, "initramfs")
        return values

    @staticmethod
    def _count(raw: Raw, name: str) -> float:
        what = f"the size of the {name}"
        return reading.check_positive(reading.find_whole(r"[ \t]*(\S+)", reading.read_file(raw, name), what), what)

    @staticmethod
    def _modules(raw: Raw) -> list[int]:
        """The size of each module. Raises ParseError where the list is not whole."""
        listed = [
            line.strip().partition(" ")
            for line in reading.split_lines(reading.read_file(raw, "modules"), "the list of modules")
        ]
        for _, _, path in listed:
            if not path.endswith(".ko"):
                raise ParseError(f"{path[:80]!r} is no module")
        reading.check_unique((path for _, _, path in listed), "the module")
        # Runs made before the list was counted have no such file.
        if "modules-count" in raw.files:
            count = reading.find_whole(r"[ \t]*(\S+)", raw.files["modules-count"], "the number of modules")
            if count != len(listed):
                raise ParseError(f"the list has {len(listed)} modules, of {count} that were built")
        return [reading.read_whole(size, f"the size of {path}") for size, _, path in listed]


PLUGIN = KernelSize()
