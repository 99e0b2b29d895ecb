"""A kernel built from an archive of its source: `source:FILE.tar.xz[,arch=...][,config=...]`."""

from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.kernels.compile.from_source import FromSource
from kduel.kernels.compile.source import SourceTree, check_archive, count_files, read_version, unpack_tree, untar


class SourceArchive(FromSource):
    name = "source"
    prefix = "source:"
    summary = "source:FILE.tar.xz[,arch=A][,config=C][,patch=FILE]: built on this host from a source archive"

    def check_place(self, place: str) -> None:
        check_archive(find_archive(place))

    def source(self, place: str, *, cache: Cache, progress: Progress, offline: bool) -> SourceTree:
        path = find_archive(place)
        try:
            digest = sha256_of(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}", "Check its permissions.") from error

        def extract(into: Path) -> None:
            with (
                progress.task(f"unpacking {path.name} ({path.stat().st_size / 1e6:.0f} MB)") as task,
                count_files(into, task),
            ):
                untar(path, into)

        tree = unpack_tree(digest[:32], extract, cache=cache)
        facts = {"source": "source", "archive": path.name}
        return SourceTree(
            tree=tree, identity=digest, version=read_version(tree), exact=f"{self.prefix}{path}", facts=facts
        )


def find_archive(place: str) -> Path:
    """The archive's file. Raises InputError where there is none."""
    path = Path(place).expanduser().resolve()
    if path.is_dir():
        raise InputError(
            f"{place} is a directory, not a source archive",
            f"For a git tree give git:{place}#REF, for a tree that was built tree:{place}.",
        )
    if not path.is_file():
        raise InputError(f"there is no file {place}", "Check the path after source:.")
    return path


PLUGIN = SourceArchive()
