"""A kernel built from Debian's source packages: `debian-source:6.1[,arch=...][,config=...]`."""

import re
import shutil
from pathlib import Path

from kduel.core.cache import GO_ONLINE, Cache, as_cache_error
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.tar_stream import PIECE, RefusedArchive, read_members
from kduel.kernels import OTHER_WAYS
from kduel.kernels.apt.archive import Archive, Package
from kduel.kernels.apt.versions import version_key
from kduel.kernels.compile.from_source import FromSource
from kduel.kernels.compile.recipe import read_recipe
from kduel.kernels.compile.source import SourceTree, count_files, read_version, unpack_tree, untar
from kduel.kernels.debian import matches_version
from kduel.kernels.files.decompress import BOUNDS, output_of

NAME = re.compile(r"linux-source-\d[\w.]*")
TARBALL = re.compile(r"\./usr/src/linux-source-[\w.~+-]+\.tar\.\w+")


class DebianSource(FromSource):
    """The packages linux-source-*: upstream's stable releases with Debian's patches."""

    name = "debian-source"
    prefix = "debian-source:"
    summary = "debian-source:VERSION[,arch=A][,config=C][,patch=FILE]: built on this host from Debian's linux-source package"

    def source(self, place: str, *, cache: Cache, progress: Progress, offline: bool) -> SourceTree:
        if not re.fullmatch(r"\d[\w.+~-]*", place):
            raise InputError(f"{self.prefix}{place} names no version", "Give debian-source:6.1, or an exact version.")
        if offline:
            return self._find_unpacked(place, cache)
        archive = Archive(cache, progress)
        return archive.fetch_fresh(lambda: self._source_tree(self._choose(place, archive), archive, cache, progress))

    def ask_archive(self, spec: str, *, cache: Cache, progress: Progress) -> None:
        Archive(cache, progress).index()

    def check_kept(self, spec: str, *, cache: Cache, offline: bool) -> bool:
        super().check_kept(spec, cache=cache, offline=offline)
        place = read_recipe(spec)[0].removeprefix(self.prefix)
        if offline:
            self._find_unpacked(place, cache)
            return True
        archive = Archive(cache, Progress(), offline=True)
        if not archive.has_fresh_list():
            return False
        self._choose(place, archive)
        return True

    def _source_tree(self, package: Package, archive: Archive, cache: Cache, progress: Progress) -> SourceTree:
        def extract(into: Path) -> None:
            (deb,) = archive.fetch(package.name, package.version)
            with (
                progress.task(f"unpacking {package.name} {package.version} ({package.size / 1e6:.0f} MB)") as task,
                count_files(into, task),
            ):
                untar_inside(deb, into)

        tree = unpack_tree(f"{package.name}_{package.version}-{package.sha256[:12]}", extract, cache=cache)
        facts = {
            "source": "debian-source", "package": package.name, "debian_version": package.version,
            "suites": list(package.suites), "sha256": package.sha256,
        }  # fmt: skip
        return SourceTree(
            tree=tree, identity=package.sha256, version=read_version(tree),
            exact=f"{self.prefix}{package.version}", facts=facts,
        )  # fmt: skip

    def _choose(self, place: str, archive: Archive) -> Package:
        """The newest that is meant; no release candidate where there is another."""
        offered = [p for p in archive.candidates("linux-source-*") if NAME.fullmatch(p.name)]
        meant = [p for p in offered if matches_version(place, p.version, "")]
        if not meant:
            newest: dict[str, str] = {}
            for package in offered:
                newest.setdefault(package.name.removeprefix("linux-source-"), package.version)
            raise InputError(
                f"Debian's archive has no source of a kernel {place}",
                f"It has: {', '.join(f'{series} ({version})' for series, version in newest.items()) or 'none'}. "
                f"{OTHER_WAYS}",
            )
        return sorted(meant, key=lambda package: "~rc" in package.version)[0]

    def _find_unpacked(self, place: str, cache: Cache) -> SourceTree:
        """The newest unpacked one in the cache."""
        found = []
        with as_cache_error(cache.root):
            entries = sorted((cache.root / "source").glob("linux-source-*"))
        for entry in entries:
            name, _, rest = entry.name.partition("_")
            version, _, digest = rest.rpartition("-")
            if matches_version(place, version, ""):
                found.append((version_key(version), name, version, digest, entry / "linux"))
        if not found:
            raise HostError(f"{self.prefix}{place} is not in the cache, and --offline forbids fetching it", GO_ONLINE)
        _, name, version, digest, tree = max(found)
        package = next((p for p in self._list_packages(cache) if p.sha256.startswith(digest)), None)
        return SourceTree(
            tree=tree, identity=package.sha256 if package else digest, version=read_version(tree),
            exact=f"{self.prefix}{version}",
            facts={
                "source": "debian-source", "package": name, "debian_version": version,
                "suites": list(package.suites) if package else [], "sha256": package.sha256 if package else digest,
            },
        )  # fmt: skip

    @staticmethod
    def _list_packages(cache: Cache) -> list[Package]:
        try:
            return Archive(cache, Progress(), offline=True).candidates("linux-source-*")
        except HostError:
            return []


def untar_inside(deb: Path, into: Path) -> None:
    """Unpack the source archive that a linux-source package holds. Raises InputError, HostError."""
    inner = into.parent / "archive.tar"
    try:
        with output_of(["dpkg-deb", "--fsys-tarfile", str(deb)], deb) as stream:
            for member, content in read_members(stream, BOUNDS):
                if TARBALL.fullmatch(member.name.decode("utf-8", errors="replace")):
                    with as_cache_error(into), inner.open("wb") as sink:
                        shutil.copyfileobj(content, sink, PIECE)
            while stream.read(PIECE):
                pass
    except RefusedArchive as error:
        raise InputError(f"{deb} is not a complete Debian package: {error}", "Remove it from the cache.") from error
    if not inner.exists():
        raise InputError(f"{deb} holds no usr/src/linux-source-*.tar.*", "Name another version.")
    untar(inner, into)
    inner.unlink()


PLUGIN = DebianSource()
