"""kernel-size: what the contender's kernel takes in flash and in RAM, on the machine `build`."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.kernel_build import NEEDS_BUILD
from kduel.benchmarks.support.parameters import Seconds, label_of
from kduel.benchmarks.support.reading import file, number, positive
from kduel.core.experiment import Better, Metric, Statistic

SIZE = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([0-9a-f]+)\s+\S+\n", re.ASCII)
"""The line of `size`: text, data, bss, their sum, the same hexadecimal, the file."""
SCRIPT = """\
cd "$KDUEL_OBJECTS"
# shellcheck disable=SC2086 # several words
[ -e vmlinux ] || "$KDUEL_MAKE" -s -j"$(nproc)" $KDUEL_TARGETS >"$KDUEL_STEP/build.log" 2>&1
"${KDUEL_CROSS}size" vmlinux >"$KDUEL_STEP/size"
"${KDUEL_CROSS}size" -A -d vmlinux >"$KDUEL_STEP/sections"
wc -c <"$KDUEL_IMAGE" >"$KDUEL_STEP/image"
if [ "$KDUEL_COMPRESSED" = yes ]; then
    wc -c <"$KDUEL_IMAGE"
else
    "${KDUEL_CROSS}objcopy" -O binary vmlinux vmlinux.bin
    gzip -9 -n -c vmlinux.bin | wc -c
fi >"$KDUEL_STEP/compressed"
find . -name '*.ko' -type f -exec wc -c {} \\; | sort -k2 >"$KDUEL_STEP/modules"
"""
INITRAMFS = """\
for file in usr/initramfs_data.cpio usr/initramfs_inc_data; do
    [ -e "$file" ] && wc -c <"$file" >"$KDUEL_STEP/initramfs" && exit 0
done
echo "no initramfs is built into this kernel" >&2
exit 1
"""


def size(name: str, unit: str, better: Better, about: str, statistic: Statistic = "value") -> Metric:
    """A metric that chance has no part in: builds are reproducible."""
    return Metric(name, unit, better, about, statistic, exact=True)


class KernelSize(Benchmark):
    """Sizes as `size` and `ls` give them. A build is reproducible, so that one pair of builds decides."""

    name = "kernel-size"
    summary = "Size of the contender's kernel: text, data, bss, images, modules (machine build)"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`initramfs`: also what INITRAMFS_SOURCE built into the image; `patience` where there is no build before."""

        initramfs: bool = False
        patience: Seconds = 14_400

    def label(self, parameters: Any) -> str:
        return label_of("size", parameters)

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        metrics = [
            size("compressed", "B", "lower", "In flash: bzImage, or vmlinux as a binary under gzip -9."),
            size("image", "B", "lower", "The file that is booted: bzImage, Image, vmlinux."),
            size("text", "B", "lower", "Code and constants of vmlinux, as size(1) says.", "total"),
            size("data", "B", "lower", "Initialised data of vmlinux, as size(1) says.", "total"),
            size("bss", "B", "lower", "Zeroed data of vmlinux, as size(1) says.", "total"),
            size("vmlinux", "B", "lower", "text + data + bss: the kernel in RAM before it takes any more.", "total"),
            size("modules", "count", "none", "Modules that were built.", "count"),
            size("modules-size", "B", "lower", "All of them together, as ls says.", "total"),
        ]
        if parameters.initramfs:
            metrics.append(size("initramfs", "B", "lower", "Built into the image, before compression."))
        return tuple(metrics)

    def script(self, parameters: Any) -> str:
        return f"{NEEDS_BUILD}\n{SCRIPT}{INITRAMFS if parameters.initramfs else ''}"

    def seconds(self, parameters: Any) -> float:
        return 5.0

    def timeout(self, parameters: Any) -> float:
        return float(parameters.patience)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        lines = file(raw, "size").splitlines(keepends=True)
        match = SIZE.fullmatch(lines[1]) if len(lines) == 2 else None
        if match is None:
            raise ParseError("size printed no line of text, data, bss and their sum")
        text, data, bss, total = (int(match[place]) for place in range(1, 5))
        if text + data + bss != total or int(match[5], 16) != total:
            raise ParseError(f"size contradicts itself: {text} + {data} + {bss} is not {total}")
        modules = [self._module(line) for line in file(raw, "modules").splitlines()]
        values: dict[str, float] = {
            "compressed": self._count(raw, "compressed"),
            "image": self._count(raw, "image"),
            "text": positive(text, "text"),
            "data": data,
            "bss": bss,
            "vmlinux": total,
            "modules": len(modules),
            "modules-size": sum(modules),
        }
        if parameters.initramfs:
            values["initramfs"] = self._count(raw, "initramfs")
        return values

    @staticmethod
    def _count(raw: Raw, name: str) -> float:
        return positive(number(file(raw, name).strip(), f"the size of the {name}"), f"the size of the {name}")

    @staticmethod
    def _module(line: str) -> int:
        size, _, path = line.strip().partition(" ")
        if not (size.isascii() and size.isdigit() and path.endswith(".ko")):
            raise ParseError(f"{line[:80]!r} tells no module's size")
        return int(size)


PLUGIN = KernelSize()
