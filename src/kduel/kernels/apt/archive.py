"""Debian's archive, queried by apt with a private state, which checks signatures and hashes. What it offers of the
kernel team's packages is kept as one index in the cache, so that a repeated query needs no apt."""

import fnmatch
import itertools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kduel.core.cache import GO_ONLINE, Cache, as_cache_error, disk_remedy
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.untrusted import NOT_JSON
from kduel.kernels.apt.mirror import debian_mirror, security_mirror
from kduel.kernels.apt.settings import write_settings, write_sources
from kduel.kernels.apt.versions import version_key
from kduel.kernels.files.listed import check_listed

T = TypeVar("T")

DAY = 24 * 3600.0
APT_HELPER = Path("/usr/lib/apt/apt-helper")
WANTED = re.compile(
    rb"(?:\A|\n\n)Package: (linux-(?:image|binary|modules|base|config|source)\b(?!\S*-(?:dbg|signed-template)\n)\S*)\n"
)


ANSWERED = re.compile(r"(?:Hit|Get):\d+ \S+ (\S+) InRelease")
REFUSED = re.compile(
    r"(?:E: |W: Failed to fetch )(?!.*does not have a Release).*(?:/dists/([^\s/]+)/|'\S+ (\S+) \w*Release')"
)
NO_SUCH_SUITE = "does not have a Release file"
EXPIRED = "is expired (invalid since"
_SAYS_NOTHING = ("Download Failed", "have been ignored, or old ones used instead.")


def suites_answered(said: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    """Read the lines of `apt-get update`: the suites that were read and verified, and those that the mirror has but that
    failed, each with the reason. One that the mirror does not have is in neither."""
    answered: set[str] = set()
    failed: dict[str, str] = {}
    for line, following in itertools.zip_longest(said, said[1:], fillvalue=""):
        if match := ANSWERED.match(line):
            answered.add(match[1])
        elif match := re.match(r"Err:\d+ \S+ ([^\s/]+)\S* .*?(\w+)$", line):
            reason = following.strip()
            if match[2] != "Release" or not re.match(r"404 |File not found", reason):
                failed.setdefault(match[1], reason)
        elif match := REFUSED.match(line):
            failed.setdefault(match[1] or match[2], line[3:])
    return answered - failed.keys(), failed


def telling_line(said: Sequence[str]) -> str:
    """The most telling line of what apt printed."""
    lines = [line.strip() for line in said if line.strip()]
    telling = [line for line in lines if line.startswith(("E: ", "W: ")) and not line.endswith(_SAYS_NOTHING)]
    return re.sub(r"^[EW]: ", "", (telling or lines or ["apt gave no reason"])[0])[:500]


class GoneError(HostError):
    """The archive no longer serves a file that its index named: the index is to be made again."""


class Package(Struct, frozen=True, kw_only=True):
    """A binary package as Debian's archive offers it."""

    name: str
    version: str
    architecture: str
    suites: tuple[str, ...]
    size: int
    """Size of the .deb, bytes."""
    sha256: str
    file: str
    """Path below the archive's address."""
    base: str
    """The archive's address."""
    depends: str = ""
    """Depends and Pre-Depends, as in the package's own words."""

    def exact_dependencies(self) -> dict[str, str]:
        """Those packages that must be there in exactly one version: name to version."""
        return dict(re.findall(r"([a-z0-9][a-z0-9.+-]+)(?::\w+)? \(= ([^)\s]+)\)", self.depends))


class Index(Struct, frozen=True, kw_only=True):
    """Packages that the suites offered when apt last looked."""

    schema: int
    made: float
    """Seconds since 1970."""
    asked: str
    """The mirror as the user named it, empty if the host's."""
    suites: tuple[str, ...]
    packages: list[Package]
    failed: dict[str, str] = {}
    """Suites that could not be read or verified, and why; the index is stored only if all have expired."""


SCHEMA = 1


class Archive:
    """The kernel team's packages of all suites for one architecture, newest first; no fetching when `offline`."""

    def __init__(
        self, cache: Cache, progress: Progress, offline: bool = False, *, architecture: str = "amd64"
    ) -> None:
        self.cache = cache
        self.progress = progress
        self.offline = offline
        self.architecture = architecture
        self.place = cache.root / "archive" / architecture
        self._index: Index | None = None

    def candidates(self, pattern: str) -> list[Package]:
        """The packages whose name, beginning with `linux-`, matches `pattern` (`linux-image-*-cloud-amd64`), the
        newest version first. Raises HostError where the archive cannot be queried."""
        found = [p for p in self.index().packages if fnmatch.fnmatchcase(p.name, pattern)]
        return sorted(found, key=lambda package: version_key(package.version), reverse=True)

    def fetch(self, package: str, version: str = "") -> list[Path]:
        """The .deb of a package (its newest, or that version), kept in the cache. Raises InputError, HostError."""
        named = self.candidates(package)
        wanted = next((p for p in named if version in ("", p.version)), None)
        if wanted is None:
            versions = ", ".join(p.version for p in named[:8]) or "none"
            raise InputError(f"Debian's archive has no {package} {version}".rstrip(), f"It has: {versions}.")
        key = f"{wanted.name}_{wanted.version}_{wanted.architecture}-{wanted.sha256[:12]}"

        def build(into: Path) -> None:
            self.download([wanted], into)

        return sorted(self.cache.entry("deb", key, build).glob("*.deb"))

    def download(self, packages: Sequence[Package], into: Path) -> list[Path]:
        """Get the .debs, checked by SHA-256. Raises GoneError for a file that is no longer served, HostError."""
        files = [into / f"{p.name}_{p.architecture}.deb" for p in packages]
        if self.offline:
            names = ", ".join(f"{p.name} {p.version}" for p in packages)
            raise HostError(f"{names}: not in the cache, and --offline forbids fetching", GO_ONLINE)
        total = sum(p.size for p in packages)
        command = [str(APT_HELPER), "-q", "download-file"]
        for package, file in zip(packages, files, strict=True):
            command += [f"{package.base}/{package.file}", str(file), f"SHA256:{package.sha256}"]
        with self.progress.task(f"downloading {packages[0].name} ({total / 1e6:.0f} MB)", total) as task:
            done = 0
            with self._apt(command) as process:
                while process.poll() is None:
                    try:
                        process.wait(timeout=0.2)
                    except subprocess.TimeoutExpired:
                        now = sum(file.stat().st_size for file in files if file.exists())
                        task.advance(now - done)
                        done = now
                said = process.communicate()[0]
            if process.returncode:
                reason = telling_line(said.splitlines())
                kind = GoneError if re.search(r" 404 |File not found", reason) else HostError
                raise kind(
                    f"{packages[0].name} {packages[0].version} could not be downloaded: {reason}",
                    disk_remedy(said, into.parent) or CHECK_MIRROR,
                )
            task.advance(total - done)
        for file in files:
            if file.is_symlink():  # A mirror in the file system: apt only points there.
                original = file.resolve()
                file.unlink()
                shutil.copyfile(original, file)
        return files

    def fetch_fresh(self, fetch: Callable[[], T]) -> T:
        """Return what `fetch` gives, tried once more with fresh lists where the archive has moved on since they were read, within
        the day that they are trusted. Raises what `fetch` raises."""
        try:
            return fetch()
        except GoneError:
            self.refresh(self.index())
            return fetch()

    def index(self) -> Index:
        """Offered packages: from the cache where that is younger than a day (or offline), else from apt."""
        if self._index is None:
            stored = self._read_stored()
            if stored is None and self.offline:
                raise HostError(
                    "the cache has no list of Debian's kernels, and --offline forbids fetching", GO_ONLINE
                )
            self._index = stored if stored and (self.offline or _is_fresh(stored)) else self.refresh(stored)
        return self._index

    def has_fresh_list(self) -> bool:
        """True if the cache has a list that is trusted without asking the archive."""
        stored = self._read_stored()
        same_mirror = stored is not None and stored.asked == os.environ.get("KDUEL_DEBIAN_MIRROR", "")
        return stored is not None and same_mirror and _is_fresh(stored)

    def refresh(self, known: Index | None = None) -> Index:
        """Ask the archive again, unless another process has just done so. `known` is what serves if it is silent."""
        with self.cache.lock(f"archive-{self.architecture}"):
            stored = self._read_stored()
            if stored and stored != known and _is_fresh(stored):
                self._index = stored
                return stored
            try:
                self._index = self._update()
            except HostError as error:
                if known is None:
                    raise
                age = max(0.0, time.time() - known.made) / DAY
                self.progress.warn(f"{error.message}; going on with the list of kernels of {age:.0f} days ago")
                self._index = known
            return self._index

    def _read_stored(self) -> Index | None:
        with as_cache_error(self.place):
            try:
                text = (self.place / "index.json").read_bytes()
            except FileNotFoundError:
                return None
        try:
            index = msgspec.json.decode(text, type=Index)
        except NOT_JSON:
            return None
        same_mirror = index.asked == os.environ.get("KDUEL_DEBIAN_MIRROR", "")
        usable = index.schema == SCHEMA and index.packages and (same_mirror or self.offline)
        return index if usable else None

    def _update(self) -> Index:
        if not shutil.which("apt-get") or not APT_HELPER.exists():
            raise HostError(
                "this host has no apt, which fetches Debian's kernels",
                "Give kernels as files instead, a vmlinuz with its modules, or bring them in a bundle (docs/offline.md).",
            )
        write_sources(self.place, self.architecture)
        said: list[str] = []
        with self.progress.task("reading Debian's package lists (about 50 MB when they are new)") as task:
            with self._apt(["apt-get", "-q", "-o", "pkgCacheFile::Generate=false", "update"]) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    said.append(line.rstrip())
                    if suite := ANSWERED.match(line):
                        task.describe(f"reading Debian's package lists: {suite[1]}")
            answered, failed = suites_answered(said)
            complaints = [line for line in said if line.startswith(("E: ", "W: ")) and NO_SUCH_SUITE not in line]
            remedy = disk_remedy("\n".join(said), self.place) or CHECK_MIRROR
            if not answered:
                why = next((f"{suite}: {reason}" for suite, reason in failed.items()), telling_line(complaints))
                raise HostError(f"Debian's archive does not answer: {why}", remedy)
            expired = sorted(suite for suite, reason in failed.items() if EXPIRED in reason)
            if expired:
                self.progress.warn(f"suites of Debian's archive that have expired are left out: {', '.join(expired)}")
            for complaint in [line for line in complaints if EXPIRED not in line][:3]:
                self.progress.warn(f"apt reports: {complaint[3:]}")
            if not any(suite.endswith("-security") for suite in answered):
                self.progress.warn("no security archive answered; name one in KDUEL_DEBIAN_SECURITY_MIRROR")
            packages, suites = self._read_lists()
        if not packages:
            why = telling_line(complaints) if complaints else f"{', '.join(sorted(answered))} name none"
            raise HostError(f"Debian's archive at {debian_mirror()} serves no kernels: {why}", remedy)
        index = Index(
            schema=SCHEMA, made=time.time(), asked=os.environ.get("KDUEL_DEBIAN_MIRROR", ""), suites=tuple(suites),
            packages=packages, failed=failed,
        )  # fmt: skip
        if len(expired) == len(failed):
            with as_cache_error(self.place):
                fresh = self.place / f".index.{os.getpid()}"
                fresh.write_bytes(msgspec.json.encode(index))
                fresh.rename(self.place / "index.json")
        return index

    def _read_lists(self) -> tuple[list[Package], list[str]]:
        """From the lists that apt has checked; their names end in dists_SUITE_main_binary-ARCH_Packages."""
        main, security = debian_mirror(), security_mirror()
        found: dict[tuple[str, str, str], Package] = {}
        suites = []
        for path in sorted((self.place / "state/lists").glob(f"*_main_binary-{self.architecture}_Packages*")):
            suite = path.name.partition("_dists_")[2].partition("_")[0]
            suites.append(suite)
            for package in self._read_list(path, suite, security if suite.endswith("-security") else main):
                key = (package.name, package.version, package.sha256)
                if key in found:
                    package = msgspec.structs.replace(found[key], suites=(*found[key].suites, suite))
                found[key] = package
        return list(found.values()), suites

    def _read_list(self, path: Path, suite: str, base: str) -> Iterator[Package]:
        with subprocess.Popen(
            [str(APT_HELPER), "cat-file", str(path)], stdout=subprocess.PIPE, env=self._environment()
        ) as process:
            assert process.stdout is not None
            rest = b""
            while chunk := process.stdout.read(4 << 20):
                whole, _, rest = (rest + chunk).rpartition(b"\n\n") if b"\n\n" in chunk else (b"", b"", rest + chunk)
                yield from _kernel_packages(whole, suite, base)
            yield from _kernel_packages(rest, suite, base)

    @contextmanager
    def _apt(self, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        """One of apt's programs under way. It does not outlive us: killed, we would leave the lists locked."""
        write_settings(self.place, self.architecture)
        with subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self._environment(),
        ) as process:
            try:
                yield process
            except BaseException:
                process.terminate()
                raise

    def _environment(self) -> dict[str, str]:
        """Environment of apt, whose temporary files are in the cache: a full TMPDIR is no hindrance."""
        own = {"APT_CONFIG": self.place / "apt.conf", "TMPDIR": self.place / "state"}
        return {**os.environ, **{name: str(path) for name, path in own.items()}, "LC_ALL": "C.UTF-8"}


CHECK_MIRROR = (
    "Check the network and apt's proxy settings, or name another mirror in KDUEL_DEBIAN_MIRROR; "
    "--offline uses what is in the cache."
)


def _is_fresh(index: Index) -> bool:
    return 0 <= time.time() - index.made < DAY


def _kernel_packages(stanzas: bytes, suite: str, base: str) -> Iterator[Package]:
    for match in WANTED.finditer(stanzas):
        end = stanzas.find(b"\n\n", match.end())
        text = stanzas[match.start(1) : end if end >= 0 else len(stanzas)].decode("utf-8", errors="replace")
        name, _, rest = text.partition("\n")
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", rest, re.MULTILINE))
        if not {"Version", "Architecture", "Size", "SHA256", "Filename"} <= fields.keys():
            continue
        check_listed(
            base, name, version=fields["Version"], architecture=fields["Architecture"], size=fields["Size"],
            sha256=fields["SHA256"], file=fields["Filename"].rpartition("/")[2],
        )  # fmt: skip
        yield Package(
            name=name, version=fields["Version"], architecture=fields["Architecture"], suites=(suite,),
            size=int(fields["Size"]), sha256=fields["SHA256"], file=fields["Filename"], base=base,
            depends=", ".join(fields[key] for key in ("Depends", "Pre-Depends") if key in fields),
        )  # fmt: skip
