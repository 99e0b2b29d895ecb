"""system-size: how many modules are loaded, and how large the initial RAM disk is."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import only_whole, positive
from kduel.core.experiment import Metric


class SystemSize(Benchmark):
    """What a tailored kernel is built for. More modules are neither better nor worse in themselves."""

    name = "system-size"
    summary = "Modules loaded, size of the initial RAM disk (real machines)"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`initramfs` false for a kernel that boots without one."""

        initramfs: bool = True

    def label(self, parameters: Any) -> str:
        return label_of("system", parameters)

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        metrics = [Metric("modules", "count", "none", "Lines of /proc/modules.", "count", aspect="modules")]
        if parameters.initramfs:
            metrics.append(
                Metric(
                    "initramfs",
                    "B",
                    "lower",
                    "The file in /boot that belongs to the release.",
                    "total",
                    aspect="size",
                )
            )
        return tuple(metrics)

    def script(self, parameters: Any) -> str:
        lines = ['echo "modules: $(wc -l </proc/modules)"']
        if parameters.initramfs:
            lines += [
                "release=$(uname -r)",
                'for file in "/boot/initrd.img-$release" "/boot/initramfs-$release.img" "/boot/initramfs-${release##*-}.img"; do',
                '    [ -r "$file" ] || continue',
                '    echo "initramfs: $(wc -c <"$file")"',
                "    exit 0",
                "done",
                'echo "no initial RAM disk of $release in /boot" >&2',
                "exit 1",
            ]
        return "\n".join([*lines, ""])

    def seconds(self, parameters: Any) -> float:
        return 0.2

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        values: dict[str, float] = {"modules": only_whole(r"modules: *(\S+)", raw.stdout, "the number of modules")}
        if parameters.initramfs:
            size = only_whole(r"initramfs: *(\S+)", raw.stdout, "the size of the initial RAM disk")
            values["initramfs"] = positive(size, "the size of the initial RAM disk")
        return values


PLUGIN = SystemSize()
