"""A small synthetic tree with a Makefile that behaves like the kernel's as far as a builder sees it.

It is no kernel: three C files in two directories, thin archives, a vmlinux that is linked from them, and a bzImage
with a real setup header. It builds in a second. `--all` tests build a real one.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from made_kernels import bzimage

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = @PATCH@
SUBLEVEL = 7
EXTRAVERSION =
RELEASE := $(VERSION).$(PATCHLEVEL).$(SUBLEVEL)
CC := $(CROSS_COMPILE)gcc
src := $(CURDIR)
ifeq ($(O),)
$(error this tree builds only with O=)
endif
objects := init/main.o kernel/sched.o fs/read.o

.PHONY: defconfig tinyconfig allnoconfig olddefconfig bzImage modules kernelrelease
defconfig tinyconfig:
	mkdir -p $(O) && cp $(src)/arch/x86/configs/$@ $(O)/.config
allnoconfig:
	$(if $(KCONFIG_ALLCONFIG),cp $(KCONFIG_ALLCONFIG),: >) $(O)/.config
	python3 $(src)/scripts/conf.py n $(src)/Kconfig $(O)/.config $(or $(ARCH),x86)
olddefconfig:
	python3 $(src)/scripts/conf.py y $(src)/Kconfig $(O)/.config $(or $(ARCH),x86)
kernelrelease:
	@echo $(RELEASE)
$(O)/%.o: $(src)/%.c $(O)/include/config/auto.conf
	mkdir -p $(dir $@) && cd $(O) && $(CC) -O1 -ffreestanding -fno-pic -fno-stack-protector -fno-asynchronous-unwind-tables \\
		$(if $(shell grep -s '^CONFIG_LARGE=y' $(O)/.config),-DLARGE) -c -o $*.o $(src)/$*.c
$(O)/include/config/auto.conf: $(O)/.config
	mkdir -p $(dir $@) && echo $(RELEASE) >$(dir $@)kernel.release && cp $< $@
$(O)/vmlinux: $(addprefix $(O)/,$(objects))
	cd $(O) && for d in init kernel fs; do rm -f $$d/built-in.a; ar cDPrST $$d/built-in.a $$d/*.o; done
	cd $(O) && $(CROSS_COMPILE)ld -e start_kernel --build-id=none -o vmlinux \\
		--whole-archive init/built-in.a kernel/built-in.a fs/built-in.a
bzImage: $(O)/vmlinux
	mkdir -p $(O)/arch/x86/boot && python3 $(src)/scripts/wrap.py $(src) $(O)
modules: $(O)/vmlinux
	mkdir -p $(O)/drivers && cd $(O) && $(CC) -c -o drivers/extra.ko $(src)/drivers/extra.c
	echo drivers/extra.o >$(O)/modules.order
"""
KCONFIG = "BASE LARGE MODULES EXTRA MOUSE\n"
CONF = """\
import pathlib, re, sys
default, kconfig, config, arch = sys.argv[1:]
known = set(pathlib.Path(kconfig).read_text().split())
path = pathlib.Path(config)
found = {}
for line in path.read_text().splitlines():
    if match := re.match(r"CONFIG_(\\w+)=(.*)", line):
        found[match[1]] = match[2]
    elif match := re.match(r"# CONFIG_(\\w+) is not set", line):
        found[match[1]] = "n"
lines = ["#", "# Automatically generated file; DO NOT EDIT.", f"# Linux/{arch} 6.1.7 Kernel Configuration", "#"]
if found.get("LARGE") == "y":
    found.setdefault("MOUSE", default)
for name in sorted(known):
    value = found.get(name, "n")
    lines.append(f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}")
path.write_text("\\n".join(lines) + "\\n")
"""
WRAP = """\
import lzma, pathlib, struct, sys
src, out = map(pathlib.Path, sys.argv[1:])
plain = (out / "vmlinux").read_bytes()
payload = lzma.compress(plain) + struct.pack("<I", len(plain))
head = bytearray((src / "scripts/header.bin").read_bytes())
struct.pack_into("<I", head, 0x24C, len(payload))
(out / "arch/x86/boot/bzImage").write_bytes(bytes(head) + payload)
"""
MAIN = """\
const char linux_banner[] = "Linux version 6.@PATCH@.7 (nobody@nowhere) #1";
int counters[@COUNTERS@];
static int helper(int x) { return x * 7 + counters[x & 7]; }
int (*helpers[])(int) = { helper };
int schedule(int); int read_it(int);
void start_kernel(void) { counters[0] = helper(schedule(3)) + read_it(4) + linux_banner[0]; }
"""
SCHED = """\
int tunables[] = { 1, 2, 3 };
static __attribute__((noinline)) int helper(int x) { return x ^ tunables[x & 1]; }
int schedule(int x) { int sum = 0; for (int i = 0; i < x; i++) sum += helper(i); return sum; }
#ifdef LARGE
int balance(int x) { int sum = 0; for (int i = 0; i < x; i++) sum += helper(i) * schedule(i); return sum; }
#endif
@MORE@
"""
READ = "static const int table[] = { 5, 4, 3, 2, 1 };\nint read_it(int x) { return table[x % 5]; }\n"


def write_tree(into: Path, *, patch: int = 1, counters: int = 64, more: str = "", makefile: str = MAKEFILE) -> Path:
    """The tree, in a directory `linux-6.PATCH` of `into`. `more` is C that kernel/sched.c ends with."""
    top = into / f"linux-6.{patch}"
    files = {
        "Makefile": makefile.replace("@PATCH@", str(patch)),
        "Kconfig": KCONFIG,
        "scripts/conf.py": CONF,
        "scripts/wrap.py": WRAP,
        "arch/x86/configs/tinyconfig": "CONFIG_BASE=y\n",
        "arch/x86/configs/defconfig": "CONFIG_BASE=y\nCONFIG_LARGE=y\n",
        "init/main.c": MAIN.replace("@PATCH@", str(patch)).replace("@COUNTERS@", str(counters)),
        "kernel/sched.c": SCHED.replace("@MORE@", more),
        "fs/read.c": READ,
        "drivers/extra.c": "int extra(void) { return 1; }\n",
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    (top / "scripts/header.bin").write_bytes(bzimage(f"6.{patch}.7", payload=b""))
    return top


def archive(into: Path, **shape: object) -> Path:
    """The tree as a .tar.xz."""
    top = write_tree(into, **shape)  # type: ignore[arg-type]
    target = into / f"{top.name}.tar.xz"
    subprocess.run(["tar", "-cJf", target, "-C", into, top.name], check=True)
    return target
