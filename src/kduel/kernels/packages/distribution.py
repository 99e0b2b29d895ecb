"""A distribution whose kernels are got by its own lists of packages, on any host: what all have in common."""

import hashlib
import os
import re
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from msgspec import Struct

from kduel.core.cache import GO_ONLINE, Cache, as_cache_error
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.core.text import visible
from kduel.core.untrusted import NOT_JSON
from kduel.kernels import OTHER_WAYS, Available, Kernel, KernelSource
from kduel.kernels.apt.versions import version_key
from kduel.kernels.files import store as stored
from kduel.kernels.files.layout import UnpackedKernel
from kduel.kernels.files.listed import check_listed
from kduel.kernels.packages.fetch import download

DAY = 24 * 3600.0
VERSION = re.compile(r"\d[\w.+~^-]*")


class RemotePackage(Struct, frozen=True, kw_only=True):
    """A package as a list of the distribution has it."""

    name: str
    version: str
    """`EPOCH:VERSION-RELEASE`, without `EPOCH:` where it is 0."""
    address: str
    sha256: str
    size: str
    """Bytes, as the list has it."""

    @property
    def file(self) -> str:
        return self.address.rpartition("/")[2]


class SplitKernel(Struct, frozen=True, kw_only=True):
    """A kernel: the packages that it is split into, that with the image first."""

    version: str
    packages: tuple[RemotePackage, ...]


class _KeptList(Struct, frozen=True):
    """The packages of a release, as they were listed."""

    made: float
    """Seconds since 1970."""
    mirror: str
    offered: list[RemotePackage]


class Distribution(KernelSource):
    """`NAME:RELEASE[-VERSION]`: the newest kernel of a release, or of a version in it."""

    brings_modules = True
    title: ClassVar[str]
    release: ClassVar[re.Pattern[str]]
    """What may follow `NAME:`."""
    example: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    """Files of its public keys, as patterns."""
    keys_package: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()
    """Packages of a kernel; without them the one that has the release's name."""

    @staticmethod
    @abstractmethod
    def unpack(packages: Sequence[Path], into: Path) -> UnpackedKernel:
        """Unpack one kernel's packages into a directory. Raises InputError, HostError."""

    @abstractmethod
    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """Its kernels' packages, by lists fetched into `place`, checked as far as the distribution signs them."""

    def kernels_of(self, release: str, offered: Sequence[RemotePackage]) -> list[SplitKernel]:
        """The kernels among them, in any order: packages of one version, the first of `parts` and what there is of the others."""
        image, *others = self.parts or (release,)
        named = {(one.name, one.version): one for one in offered}
        return [
            SplitKernel(
                version=one.version,
                packages=(one, *(named[other, one.version] for other in others if (other, one.version) in named)),
            )
            for one in named.values()
            if one.name == image
        ]

    def check(self, package: Path, offered: RemotePackage, progress: Progress) -> None:
        """Check who signed a package, where the lists are not signed. Raises InputError, HostError."""

    def host_mirror(self) -> str:
        """The mirror that a host of this distribution uses, if that is known."""
        return ""

    @property
    def prefix(self) -> str:
        return f"{self.name}:"

    def accepts(self, spec: str) -> bool:
        return spec.startswith(self.prefix)

    def mirror(self) -> str:
        """Its address, without a slash at the end. Raises HostError where none is known."""
        variable = f"KDUEL_{self.name.upper()}_MIRROR"
        found = os.environ.get(variable) or self.host_mirror()
        if not found:
            raise HostError(f"no mirror of {self.title} is known on this host", f"Name one in {variable}.")
        return found.rstrip("/")

    def keyrings(self) -> list[Path]:
        """Files of its keys: $KDUEL_NAME_KEYRING, else those installed. Raises HostError where there are none."""
        variable = f"KDUEL_{self.name.upper()}_KEYRING"
        given = os.environ.get(variable)
        patterns = [given] if given else self.keys
        paths = [path for pattern in patterns for path in sorted(Path("/").glob(str(Path(pattern).absolute())[1:]))]
        found = [path for path in paths if path.is_file()]
        if not found:
            raise HostError(
                f"the keys of {self.title} are not on this host ({given or self.keys[0]})",
                f"Name a file with them in {variable}, or install {self.keys_package}.",
            )
        return found

    def check_spec(self, spec: str) -> None:
        self._parse(spec)

    def _parse(self, spec: str) -> re.Match[str]:
        match = self.release.fullmatch(spec.removeprefix(self.prefix))
        if match is None:
            raise InputError(f"{spec!r} names no kernel of {self.title}", f"Give {self.example}.")
        return match

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        match = self._parse(spec)
        release, version = match["release"], match["version"] or ""
        if offline or self._has_exactly(spec, cache):
            return self._from_cache(spec, release, version, cache, progress)
        chosen = self._choose(release, version, self._list(release, cache, progress))
        content = hashlib.sha256("".join(one.sha256 for one in chosen.packages).encode()).hexdigest()
        key = f"{self.name}-{chosen.packages[0].name}-{chosen.version.replace(':', '_')}-{content[:12]}"

        def build(into: Path) -> None:
            self._build(chosen, release, spec, into, progress)

        return stored.read(cache.entry(stored.KIND, key, build), spec)

    def ask_archive(self, spec: str, *, cache: Cache, progress: Progress) -> None:
        if not self._has_exactly(spec, cache):
            self._list(self._parse(spec)["release"], cache, progress)

    def check_kept(self, spec: str, *, cache: Cache, offline: bool) -> bool:
        match = self._parse(spec)
        release, version = match["release"], match["version"] or ""
        if offline or self._has_exactly(spec, cache):
            self._from_cache(spec, release, version, cache, Progress())
            return True
        kept = self._kept_list(release, self.mirror(), cache)
        if kept is None:
            self.keyrings()
            return False
        self._choose(release, version, kept)
        return True

    def _choose(self, release: str, version: str, offered: list[RemotePackage]) -> SplitKernel:
        found = self.kernels_of(release, offered)
        meant = [one for one in found if matches(version, one.version)]
        if not meant:
            told = ", ".join(one.version for one in newest_first(found)[:8]) or "none"
            raise InputError(
                f"{self.title} {release} has no kernel {version}".rstrip(), f"It has: {told}. {OTHER_WAYS}"
            )
        return newest_first(meant)[0]

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        return [
            Available(
                spec=f"{self.prefix}{facts['release']}-{facts['version']}",
                version=facts["version"],
                where=f"{self.title} {facts['release']}",
                cached=True,
            )
            for _, record in stored.entries(cache, f"{self.name}-")
            for facts in [record.provenance]
        ]

    def _has_exactly(self, spec: str, cache: Cache) -> bool:
        """True if the cache has the kernel that `spec` names in full: a lock's, for one."""
        found = stored.entries(cache, f"{self.name}-")
        return any(
            record.provenance["exact"] == spec and cache.has(stored.KIND, entry.name) for entry, record in found
        )

    def _from_cache(self, spec: str, release: str, version: str, cache: Cache, progress: Progress) -> Kernel:
        found = [
            (version_key(record.provenance["version"]), entry)
            for entry, record in stored.entries(cache, f"{self.name}-")
            if record.provenance["release"] == release and matches(version, record.provenance["version"])
        ]
        for _, entry in sorted(found, reverse=True):
            if cache.has(stored.KIND, entry.name):
                kernel = stored.read(entry, spec)
                progress.info(f"{spec}: {kernel.release}, the newest in the cache")
                return kernel
        raise HostError(f"{spec} is not in the cache {cache.root}", GO_ONLINE)

    def _list_file(self, release: str, cache: Cache) -> Path:
        return cache.root / "archive" / self.name / f"{release}.json"

    def _kept_list(self, release: str, mirror: str, cache: Cache) -> list[RemotePackage] | None:
        """The packages of a release as asked for within a day; None where they are to be asked for."""
        file = self._list_file(release, cache)
        with as_cache_error(file.parent):
            try:
                kept = msgspec.json.decode(file.read_bytes(), type=_KeptList)
            except (FileNotFoundError, *NOT_JSON):
                return None
        return kept.offered if kept.mirror == mirror and 0 <= time.time() - kept.made < DAY else None

    def _list(self, release: str, cache: Cache, progress: Progress) -> list[RemotePackage]:
        """The packages of a release, asked for once a day."""
        mirror, file = self.mirror(), self._list_file(release, cache)
        with cache.lock(f"archive-{self.name}-{release}"):
            if (kept := self._kept_list(release, mirror, cache)) is not None:
                return kept
            with as_cache_error(file.parent):
                file.parent.mkdir(parents=True, exist_ok=True)
            with temporary_directory(file.parent) as place:
                offered = self.list_packages(release, mirror, place, progress)
                for one in offered:
                    check_listed(
                        mirror, one.name, version=one.version, sha256=one.sha256, size=one.size, file=one.file
                    )
                with as_cache_error(file.parent):
                    fresh = place / "kept.json"
                    fresh.write_bytes(msgspec.json.encode(_KeptList(time.time(), mirror, offered)))
                    fresh.rename(file)
        return offered

    def _build(self, chosen: SplitKernel, release: str, spec: str, into: Path, progress: Progress) -> None:
        packages: list[Path] = []
        for offered in chosen.packages:
            package = into / offered.file
            if package in packages:
                raise HostError(
                    f"the list of packages of {self.title} has one file for two packages: {offered.file}",
                    "Try again later, or name another mirror.",
                )
            download(offered.address, package, progress, sha256=offered.sha256, size=int(offered.size))
            self.check(package, offered, progress)
            packages.append(package)
        with progress.task(
            f"unpacking {packages[0].name} ({sum(int(one.size) for one in chosen.packages) / 1e6:.0f} MB)"
        ):
            files = self.unpack(packages, into)
        for package in packages:
            package.unlink()
        if files.modules is None:
            raise InputError(f"{spec}: {chosen.version} has no modules", "Name another version of the kernel.")
        facts = {
            "source": self.name,
            "exact": f"{self.prefix}{release}-{chosen.version}",
            "release": release,
            "version": chosen.version,
            "packages": [{"name": one.name, "version": one.version, "sha256": one.sha256} for one in chosen.packages],
        }
        stored.write(into, stored.describe(files, spec, facts))


def check_same(package: str, offered: RemotePackage, name: str, version: str) -> None:
    """Raises InputError where a signed package is another one than the list, which is not signed, says."""
    if (name, version) != (offered.name, offered.version):
        raise InputError(
            f"{package} is {visible(name, 60)} {visible(version, 60)}, and the list of packages calls it "
            f"{offered.name} {offered.version}",
            "Do not use this mirror: it passes one package off as another.",
        )


def matches(wanted: str, version: str) -> bool:
    """True if a version is meant: `6.1` means 6.1 and 6.1.5-2, never 6.10."""
    own = version.rpartition(":")[2]
    return not wanted or wanted in (own, version) or re.match(rf"{re.escape(wanted)}(?![\dA-Za-z])", own) is not None


def newest_first(found: Sequence[SplitKernel]) -> list[SplitKernel]:
    """By version, as Debian's rules sort it, which for kernels' versions sort as RPM's and pacman's do."""
    return sorted(found, key=lambda one: version_key(one.version), reverse=True)
