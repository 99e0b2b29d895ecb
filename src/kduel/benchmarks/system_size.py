"""system-size: how many modules are loaded, and how large the initial RAM disk is."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.reading import check_positive, find_whole
from kduel.core.experiment import Metric


class SystemSizeParameters(Parameters, frozen=True):
    """`initramfs` false for a kernel that boots without one."""

    initramfs: bool = True


class SystemSize(Benchmark[SystemSizeParameters]):
    name = "system-size"
    summary = "Modules loaded, size of the initial RAM disk (real machines)"
    label_template = "system"
    duration = 0.2

    def metrics(self, parameters: SystemSizeParameters) -> tuple[Metric, ...]:
        modules = Metric("modules", "count", "none", "Lines of /proc/modules.", "count", aspect="modules")
        about = "The file in /boot that belongs to the release."
        disk = Metric("initramfs", "B", "lower", about, "total", aspect="size")
        return (modules, disk) if parameters.initramfs else (modules,)

    def script(self, parameters: SystemSizeParameters) -> str:
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

    def parse(self, raw: Raw, parameters: SystemSizeParameters) -> dict[str, float]:
        values: dict[str, float] = {"modules": find_whole(r"modules: *(\S+)", raw.stdout, "the number of modules")}
        if parameters.initramfs:
            size = find_whole(r"initramfs: *(\S+)", raw.stdout, "the size of the initial RAM disk")
            values["initramfs"] = check_positive(size, "the size of the initial RAM disk")
        return values


PLUGIN = SystemSize()
