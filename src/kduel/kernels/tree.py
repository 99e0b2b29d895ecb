"""A kernel tree that was built: `tree:DIR`, the source directory or the one given as O=."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kduel.core.cache import Cache, as_cache_error, key_part
from kduel.core.errors import InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.core.supervised_process import run_text
from kduel.core.text import plural
from kduel.kernels import Kernel, KernelSource
from kduel.kernels.files import store as stored
from kduel.kernels.files.image import identify
from kduel.kernels.files.modules import modules_directory

PREFIX = "tree:"
IMAGES = {
    "x86": "arch/x86/boot/bzImage",
    "x86_64": "arch/x86/boot/bzImage",
    "arm64": "arch/arm64/boot/Image",
    "riscv": "arch/riscv/boot/Image",
    "powerpc": "vmlinux",
}
"""Images by the architecture that the head of a .config names: by the ARCH= given to make, or the host's."""
LISTS = ("modules.builtin", "modules.builtin.modinfo", "modules.order")


class Tree(KernelSource):
    """The image, config and modules of a tree as it is now, copied to the cache so that the tree may go on changing."""

    name = "tree"
    summary = "tree:DIR: a kernel tree that was built"

    def accepts(self, spec: str) -> bool:
        return spec.startswith(PREFIX)

    def check_spec(self, spec: str) -> None:
        read_built_tree(tree_of(spec))

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        tree = tree_of(spec)
        config, image, release = read_built_tree(tree)
        architecture = identify(image).architecture
        files = [] if modules else module_files(tree, config)
        stamp = hashlib.sha256(sha256_of(image).encode() + config.encode())
        for source, target in files:
            facts = source.stat()
            stamp.update(f"{target}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())

        def build(into: Path) -> None:
            copied, digest = stored.copy_image(image, into)
            (into / "config").write_text(config, encoding="utf-8")
            if files:
                with progress.task(f"copying {plural(len(files), 'module')} of {release}"):
                    copy_modules(tree, files, into / "lib/modules" / release)
            kernel = Kernel(
                spec=spec, release=release, architecture=architecture, image=copied, sha256=digest,
                config=into / "config", modules=into / "lib/modules" / release if files else None,
                provenance=_provenance(tree),
            )  # fmt: skip
            stored.write(into, kernel)

        entry = cache.entry(stored.KIND, f"tree-{key_part(release)}-{stamp.hexdigest()[:12]}", build)
        kernel = replace(stored.read(entry, spec), provenance=_provenance(tree))
        vmlinux = tree / "vmlinux"
        return replace(
            kernel,
            vmlinux=vmlinux if vmlinux.exists() else None,
            modules=modules_directory(modules, release) if modules else kernel.modules,
        )


def tree_of(spec: str) -> Path:
    return Path(spec.removeprefix(PREFIX)).expanduser().resolve()


def read_built_tree(tree: Path) -> tuple[str, Path, str]:
    """The text of .config, the image and the release. Raises InputError where the tree is not built, or changed."""
    make = f"Build it: make -C {tree} -j$(nproc)"
    if not tree.is_dir():
        raise InputError(f"there is no directory {tree}", "Check the path after tree:.")
    try:
        config = (tree / ".config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        where = "is not configured" if (tree / "Kbuild").exists() else "is no kernel tree"
        raise InputError(
            f"{tree} {where}: it has no readable .config",
            f"Configure and build it: make -C {tree} defconfig && make -C {tree} -j$(nproc)",
        ) from None
    head = re.search(r"^# Linux/(\w+) ", config, re.MULTILINE)
    name = IMAGES.get(head[1] if head else "")
    if name is None:
        raise InputError(
            f"{tree}/.config is for {head[1] if head else 'no architecture that it names'}",
            f"KDuel takes trees for {', '.join(IMAGES)}.",
        )
    image, told = tree / name, tree / "include/config/kernel.release"
    for path in (image, told):
        if not path.exists():
            raise InputError(f"the kernel tree {tree} is not built: it has no {path.relative_to(tree)}", make)
    generated = tree / "include/config/auto.conf"
    if generated.exists() and (tree / ".config").stat().st_mtime > generated.stat().st_mtime:
        raise InputError(f"{tree}/.config was changed after the kernel was built", make)
    release = told.read_text(encoding="utf-8", errors="replace").strip()
    in_image = identify(image).release
    if in_image != release:
        raise InputError(f"in {tree} the image is of {in_image}, but the tree is at {release}", make)
    return config, image, release


def module_files(tree: Path, config: str) -> list[tuple[Path, str]]:
    """The modules that were built, each with its path below lib/modules/RELEASE."""
    if "\nCONFIG_MODULES=y\n" not in config or not re.search(r"^CONFIG_\w+=m$", config, re.MULTILINE):
        return []
    remedy = f"Build them: make -C {tree} -j$(nproc) modules. Or give modules=DIR with those that are installed."
    try:
        listed = (tree / "modules.order").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        raise InputError(f"the modules of {tree} are not built: it has no modules.order", remedy) from None
    found = []
    for line in listed:
        path = re.sub(r"\.o$", ".ko", line.removeprefix("kernel/"))
        if not (tree / path).is_file():
            raise InputError(f"the modules of {tree} are not built: {path} is missing", remedy)
        found.append((tree / path, f"kernel/{path}"))
    if found and "\nCONFIG_MODULE_SIG_FORCE=y\n" in config:
        raise InputError(
            f"the kernel of {tree} loads only signed modules, which those in the tree are not",
            f"Install them: make -C {tree} modules_install INSTALL_MOD_PATH=/tmp/modules, and give modules=/tmp/modules.",
        )
    return found


def copy_modules(tree: Path, files: list[tuple[Path, str]], into: Path) -> None:
    if not files:
        return
    with as_cache_error(into):
        for source, target in files:
            (into / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, into / target)
        for name in LISTS:
            if (tree / name).exists():
                shutil.copyfile(tree / name, into / name)
    # Debugging information makes modules ten times as large, and serves nobody in the guest.
    strip = shutil.which("llvm-strip") or shutil.which("strip")
    copied = [str(into / target) for _, target in files]
    for start in range(0, len(copied) if strip else 0, 500):
        subprocess.run([str(strip), "-g", *copied[start : start + 500]], capture_output=True, check=False)


def _provenance(tree: Path) -> dict[str, Any]:
    """The tree's commit, where git knows it, and whether tracked files differ from it."""
    source = tree / "source" if (tree / "source").is_dir() else tree
    facts: dict[str, Any] = {"source": "tree", "path": str(tree), "commit": None, "modified": None}
    commit = run_git(source, "rev-parse", "HEAD")
    if commit is not None and commit.returncode == 0 and is_own_repository(source):
        facts["commit"] = commit.stdout.strip()
        changed = run_git(source, "status", "--porcelain", "--untracked-files=no")
        facts["modified"] = bool(changed.stdout.strip()) if changed and changed.returncode == 0 else None
    return facts


def is_own_repository(source: Path) -> bool:
    """True if the repository is the tree's own, not one that happens to lie around it."""
    top = run_git(source, "rev-parse", "--show-toplevel")
    return top is not None and Path(top.stdout.strip()) == source.resolve()


def run_git(source: Path, *words: str) -> subprocess.CompletedProcess[str] | None:
    if not shutil.which("git"):
        return None
    return run_text(["git", "-C", str(source), *words])


PLUGIN = Tree()
