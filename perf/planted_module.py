"""Does the exact machine find false sharing that a kernel module brings, and tell it from true sharing?

    python -P perf/planted_module.py [HEADERS]

HEADERS is the directory of a Debian cloud kernel's headers that is installed here, as by `apt install
linux-headers-cloud-amd64` (the default: the newest one of 6.1 in /usr/src); the same kernel is booted. The module counts
calls of getppid with a probe: in one variable (shared), in one of each CPU, all in one cache line (together) or each in a
line of its own (apart). Prints the lines that null-call shares with each, and without the module. Takes about two minutes.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.run.exact.sharing import sharing_study

ROOT = Path(__file__).parents[1]
MODULE = """
#include <linux/cache.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/smp.h>

struct apart {
    unsigned long count;
} ____cacheline_aligned;

static unsigned long shared ____cacheline_aligned;
static unsigned long together[8] ____cacheline_aligned;
static struct apart apart[8] ____cacheline_aligned;
static char *how = "";
module_param(how, charp, 0444);

static int count(struct kprobe *probe, struct pt_regs *registers) {
    int cpu = smp_processor_id() & 7;
    switch (how[0]) {
    case 's': shared++; break;
    case 't': together[cpu]++; break;
    case 'a': apart[cpu].count++; break;
    }
    return 0;
}

static struct kprobe probe = {.symbol_name = "__x64_sys_getppid", .pre_handler = count};
static int __init start(void) { return register_kprobe(&probe); }
static void __exit stop(void) { unregister_kprobe(&probe); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""
LOAD = """[[benchmark]]
use = "command"
label = "module"
command = "{command}"
metrics = [{{name = "modules", unit = "modules", better = "none", regex = '(\\d+)'}}]
primary = ["modules"]
"""


def build(headers: Path, place: Path) -> str:
    """The module, compressed, in letters."""
    (place / "plant.c").write_text(MODULE)
    (place / "Makefile").write_text("obj-m := plant.o\n")
    subprocess.run(["make", "-s", "-C", headers, f"M={place}", "modules"], check=True)
    subprocess.run(["strip", "-g", place / "plant.ko"], check=True)
    return base64.b64encode(gzip.compress((place / "plant.ko").read_bytes(), 9)).decode()


def shared_lines(how: str, module: str, kernel: str, place: Path) -> tuple[float, float]:
    """Lines that null-call shares in the usual operation, and those of them by false sharing."""
    load = f"echo {module} | base64 -d | gzip -d >/tmp/plant.ko && insmod /tmp/plant.ko how={how} && "
    command = ("" if how == "none" else load) + "wc -l </proc/modules"
    study, run = place / f"{how}.toml", place / how
    text = sharing_study([kernel, kernel], "null-call/processes").text
    study.write_text(text.replace("[[benchmark]]", LOAD.format(command=command) + "[[benchmark]]", 1))
    subprocess.run([ROOT / "kduel", "run", study, "--out", run], stdout=subprocess.DEVNULL, check=True)
    results = json.loads((run / "results.json").read_text())
    values = {one["metric"]: one["mean"] for one in results["metrics"] if one["benchmark"] == "null-call-processes"}
    return values["lines"], values["lines-false"]


def main(headers: str = "") -> None:
    """Build the module, boot with each of its counters, print what was shared."""
    found = sorted(Path("/usr/src").glob("linux-headers-6.1.*-cloud-amd64"))
    if not (headers or found):
        sys.exit("planted_module.py: no headers of a cloud kernel in /usr/src: apt install linux-headers-cloud-amd64")
    folder = Path(headers) if headers else found[-1]
    kernel = f"debian:{folder.name.removeprefix('linux-headers-').removesuffix('-amd64')}"
    print("| counters | lines | of them false sharing |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        module = build(folder, place)
        for how in ("none", "shared", "together", "apart"):
            lines, false = shared_lines(how, module, kernel, place)
            print(f"| {how} | {lines:g} | {false:g} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
