"""Getting a scheduler: built once from its crate and cached, or taken from PATH."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kduel.core.cache import Cache, as_cache_error, key_part
from kduel.core.errors import HostError, InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.core.supervised_process import run_text
from kduel.core.temporary import temporary_directory
from kduel.schedulers.bundle import Bundle, make_bundle, read_bundle
from kduel.schedulers.catalogue import KNOWN, PLAIN, CatalogueEntry, find_entry

KIND = "schedulers"
LEAST_CLANG = 17
LEAST_RUST = (1, 91)
HEADERS = {"libelf": "libelf-dev", "zlib": "zlib1g-dev"}


class Tools:
    """The tools of a build, found; `missing` names what is not there and its packages in Debian and Ubuntu."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.packages: list[str] = []
        self.versions: dict[str, str] = {}
        self.clang = self._clang()
        self._rust()
        for tool in ("make", "gcc", "pkg-config"):
            if shutil.which(tool) is None:
                self._lacks(tool, tool)
        for module, package in HEADERS.items():
            if shutil.which("pkg-config") and command_output("pkg-config", "--modversion", module) is None:
                self._lacks(f"the headers of {module}", package)

    def _lacks(self, what: str, package: str = "") -> None:
        self.missing.append(what)
        if package:
            self.packages.append(package)

    def _clang(self) -> str:
        """The newest clang; where BPF_CLANG names one, that and no other."""
        named = os.environ.get("BPF_CLANG")
        newest = [f"clang-{version}" for version in range(29, LEAST_CLANG - 1, -1)]
        for candidate in [named] if named else [*newest, "clang"]:
            said = command_output(candidate, "--version") or ""
            match = re.search(r"clang version (\d+)\.([\d.]+)", said)
            if match and int(match[1]) >= LEAST_CLANG:
                self.versions["clang"] = f"{match[1]}.{match[2]}"
                return candidate
        which = f"; BPF_CLANG names {named}, which is none" if named else ""
        self._lacks(f"clang {LEAST_CLANG} or newer (BPF code; older ones fail{which})", "clang-19")
        return ""

    def _rust(self) -> None:
        said = command_output("cargo", "--version") or ""
        match = re.search(r"cargo (\d+)\.(\d+)\S*", said)
        wanted = ".".join(map(str, LEAST_RUST))
        if not match:
            self._lacks(f"cargo, of Rust {wanted} or newer (from rustup)")
        elif (int(match[1]), int(match[2])) < LEAST_RUST:
            self._lacks(f"cargo, of Rust {wanted} or newer (this one is {match[1]}.{match[2]}; rustup update)")
        else:
            self.versions["cargo"] = said.split()[1]

    def require(self, name: str) -> None:
        """Raises HostError that names all that is missing, with the line that installs it."""
        if self.missing:
            ways = [f"apt install {' '.join(self.packages)}"] if self.packages else []
            if any("cargo" in what for what in self.missing):
                ways.append("Rust comes from rustup, or from a distribution that is new enough")
            remedy = "; ".join(ways) or "Install it"
            raise HostError(f"building {name} needs {'; '.join(self.missing)}", f"{remedy}.")

    @property
    def llvm_libraries(self) -> Path | None:
        """Directory of the libclang of the chosen clang, for bindgen; None where bindgen finds it by itself."""
        found = command_output(self.clang, "-print-prog-name=clang")
        if not found:
            return None
        directory = Path(found).resolve().parent.parent / "lib"
        return directory if any(directory.glob("libclang*.so*")) else None


def command_output(*command: str) -> str | None:
    """Output of a command, stripped; None where it is not there or fails."""
    try:
        done = run_text(command)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def key_of(chosen: CatalogueEntry) -> str:
    return f"{chosen.name}-{chosen.version}-{platform.machine()}"


def build_schedulers(names: list[str], *, cache: Cache, progress: Progress, jobs: int) -> list[tuple[Bundle, Path]]:
    """The schedulers, built where the cache lacks them, in 2 to 7 minutes each. Raises InputError, HostError."""
    wanted = [find_entry(name) for name in names]
    lacking = [chosen for chosen in wanted if not cache.has(KIND, key_of(chosen))]
    if lacking:
        tools = Tools()
        tools.require(", ".join(chosen.name for chosen in lacking))
        # One target directory for all: they share most of what they depend on.
        with temporary_directory(cache.root, ".building-", as_cache_error(cache.root)) as target:
            for chosen in lacking:
                _build_one(chosen, tools, target, cache, progress, jobs)
    return [find_built(chosen, cache) for chosen in wanted]


def find_built(chosen: CatalogueEntry, cache: Cache) -> tuple[Bundle, Path]:
    directory = cache.path(KIND, key_of(chosen))
    return read_bundle(directory), directory


def _build_one(
    chosen: CatalogueEntry, tools: Tools, target: Path, cache: Cache, progress: Progress, jobs: int
) -> None:
    environment = os.environ | {
        "BPF_CLANG": tools.clang,
        "CARGO_BUILD_JOBS": str(jobs),
        "CARGO_TARGET_DIR": str(target),
        # Link-time optimisation takes more time and memory than all the rest, and the work is in BPF anyway.
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        "CARGO_TERM_COLOR": "never",
    }
    if tools.llvm_libraries:
        environment.setdefault("LIBCLANG_PATH", str(tools.llvm_libraries))

    def into(directory: Path) -> None:
        with tempfile.TemporaryDirectory(dir=target) as place:
            command = [
                "cargo", "install", "--locked", chosen.name, "--version", f"={chosen.version}", "--root", place,
            ]  # fmt: skip
            log = target / f"{chosen.name}.log"
            with log.open("wb") as stream, progress.task(f"building {chosen.name} {chosen.version}"):
                status = subprocess.run(
                    command, env=environment, stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    preexec_fn=lambda: os.nice(19), check=False,
                ).returncode  # fmt: skip
            if status != 0:
                raise HostError(
                    f"building {chosen.name} {chosen.version} failed:\n{end_of_log(log)}",
                    f"It was tried with {', '.join(f'{tool} {version}' for tool, version in tools.versions.items())}. "
                    "Another clang is used where BPF_CLANG names one; a scheduler in PATH needs no building.",
                )
            make_bundle(
                Path(place) / "bin" / chosen.name, chosen.name, directory,
                version=chosen.version, source="crate", tools=tools.versions,
            )  # fmt: skip

    cache.entry(KIND, key_of(chosen), into)


def end_of_log(log: Path) -> str:
    """The last lines of a build's log, from its first error on where there is one."""
    text = log.read_text("utf-8", errors="replace").splitlines()
    errors = [number for number, line in enumerate(text) if line.startswith("error")]
    first = max(errors[0] if errors else 0, len(text) - 200)
    return "\n".join(text[first:][-25:] if not errors else text[first : first + 25])


def find_scheduler(command: str, *, cache: Cache) -> tuple[Bundle, Path]:
    """The scheduler of a contender: path, built, or in PATH; with its directory. Raises InputError."""
    name = command.split()[0]
    if "/" not in name and name in KNOWN and cache.has(KIND, key_of(KNOWN[name])):
        return find_built(KNOWN[name], cache)
    place = find_program(name)
    program = place.resolve()
    short = re.sub(r"[^A-Za-z0-9_.-]", "-", place.name)
    key = f"{key_part(short)}-path-{sha256_of(program)[:24]}"

    def into(directory: Path) -> None:
        version = (command_output(str(program), "--version") or "").splitlines()[:1]
        words = version[0].split() if version else []
        make_bundle(program, short, directory, version=words[-1] if words else "", source="path", tools={})

    directory = cache.entry(KIND, key, into)
    return read_bundle(directory), directory


def check_scheduler(command: str, cache_root: Path) -> None:
    """Raises InputError where `find_scheduler` would: for one that is neither our own, nor built, nor in PATH."""
    name = command.split()[0]
    if name != PLAIN and not (name in KNOWN and (cache_root / KIND / key_of(KNOWN[name])).is_dir()):
        find_program(name)


def find_program(name: str) -> Path:
    """A scheduler that was not built: a path, or one in PATH. Raises InputError with the command that gets it."""
    place = name if "/" in name else shutil.which(name)
    if place is None or not Path(place).is_file():
        remedy = (
            f"`kduel schedulers build {name}` builds it. Or put one in PATH."
            if name in KNOWN
            else f"KDuel builds {', '.join(KNOWN)}, and has {PLAIN}. Or put one in PATH. For the kernel's own scheduler, leave "
            "scheduler out."
        )
        raise InputError(f"the scheduler {name} is neither built nor in PATH", remedy)
    return Path(place)
