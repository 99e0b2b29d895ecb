"""Debian's own kernels: `debian:VERSION[-FLAVOUR][-ARCHITECTURE]`, the newest that the archive has for it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.cache import GO_ONLINE, Cache
from kduel.core.errors import HostError, InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.core.text import did_you_mean
from kduel.kernels import OTHER_WAYS, Available, Kernel, KernelSource
from kduel.kernels.apt.archive import CHECK_MIRROR, Archive, Package
from kduel.kernels.apt.unpack import unpack
from kduel.kernels.apt.versions import upstream, version_key
from kduel.kernels.files import store as stored

PREFIX = "debian:"
FLAVOURS = ("generic", "cloud", "rt")
ARCHITECTURES = {
    "amd64": ("amd64", "x86_64"),
    "arm64": ("arm64", "aarch64"),
    "riscv64": ("riscv64", "riscv64"),
    "ppc64el": ("powerpc64le", "ppc64le"),
}
"""Debian's name: how kernel packages call it, how `uname -m` does."""
SPEC = re.compile(
    rf"(?P<version>.*?)(?:-(?P<flavour>{'|'.join(FLAVOURS)}))?(?:-(?P<architecture>{'|'.join(ARCHITECTURES)}))?"
)
VERSION = re.compile(r"\d+(\.\d+)*([~-]rc\d+)?")
EXAMPLES = "Give debian:6.12, debian:6.12-rt, debian:7-cloud, debian:6.1.128-1, debian:trixie or debian:latest."
SETTINGS = "What differs besides the kernel follows a comma: cmdline=WORDS, sysctl=KEY=VALUE, scheduler=NAME, policy=POLICY, name=NAME."


class PackageRequest(Struct, frozen=True):
    spec: str
    version: str
    """A version or the beginning of one, a kernel's ABI name, a suite, or `latest`."""
    flavour: str
    architecture: str

    @property
    def suffix(self) -> str:
        """End of the names of this flavour's packages."""
        label = ARCHITECTURES[self.architecture][0]
        return label if self.flavour == "generic" else f"{self.flavour}-{label}"


class Candidate(Struct, frozen=True, kw_only=True):
    """A kernel that the archive offers: its image package, and those that it is split into."""

    abi: str
    """The release without flavour and architecture: `6.1.0-56`, `6.12.117+deb13`."""
    image: Package
    parts: tuple[Package, ...]
    """Packages to unpack."""
    lacks: tuple[str, ...] = ()
    """Packages that it needs and that no suite has."""

    @property
    def key(self) -> str:
        """Name of its entry in the cache."""
        content = hashlib.sha256("".join(sorted(part.sha256 for part in self.parts)).encode()).hexdigest()
        return f"debian-{self.image.name.removeprefix('linux-image-')}-{content[:12]}"


def parse_spec(spec: str) -> PackageRequest:
    """Read `debian:...`; without a flavour it is `generic`. Raises InputError."""
    match = SPEC.fullmatch(spec.removeprefix(PREFIX).strip())
    assert match is not None
    version = match["version"]
    if not re.fullmatch(r"[A-Za-z0-9][\w.+~-]*", version):
        raise InputError(f"{spec!r} names no version of Debian's kernel", SETTINGS if "," in version else EXAMPLES)
    if re.match(r"[vV]\d", version):
        raise InputError(f"{spec!r} names no version of Debian's kernel", f"Did you mean {PREFIX}{version[1:]}?")
    if other := re.fullmatch(r"\d+(?:\.\d+)*-([A-Za-z]*)", version):
        raise InputError(
            f"{spec!r}: Debian's kernels have no flavour {other[1]!r}",
            f"{did_you_mean(other[1].lower(), FLAVOURS)}Give one of {', '.join(FLAVOURS)}, or leave it out.",
        )
    return PackageRequest(spec, version, match["flavour"] or "generic", match["architecture"] or "amd64")


def matches_version(wanted: str, version: str, abi: str) -> bool:
    """True if a Debian version (or its ABI name) is meant: `6.1` means 6.1 and 6.1.x, never 6.10."""
    if wanted in (version, abi, "latest"):
        return True
    own, beginning = upstream(version), wanted.replace("-rc", "~rc")
    return bool(VERSION.fullmatch(wanted)) and (
        own == beginning or own.startswith((f"{beginning}.", f"{beginning}~"))
    )


class Debian(KernelSource):
    name = "debian"
    summary = "debian:VERSION[-FLAVOUR]: Debian's kernels, bullseye to experimental (generic, cloud, rt)"
    brings_modules = True

    def accepts(self, spec: str) -> bool:
        return spec.startswith(PREFIX)

    def check_spec(self, spec: str) -> None:
        parse_spec(spec)

    def architecture(self, spec: str) -> str:
        return ARCHITECTURES[parse_spec(spec).architecture][1]

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        wanted = parse_spec(spec)
        if offline:
            return _from_cache(wanted, cache, progress)
        archive = Archive(cache, progress, architecture=wanted.architecture)
        return archive.fetch_fresh(lambda: self._fetch(wanted, archive, cache, progress))

    def ask_archive(self, spec: str, *, cache: Cache, progress: Progress) -> None:
        Archive(cache, progress, architecture=parse_spec(spec).architecture).index()

    def check_kept(self, spec: str, *, cache: Cache, offline: bool) -> bool:
        wanted = parse_spec(spec)
        if offline:
            _from_cache(wanted, cache, Progress())
            return True
        archive = Archive(cache, Progress(), offline=True, architecture=wanted.architecture)
        if not archive.has_fresh_list():
            return False
        choose(wanted, archive, cache)
        return True

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        lines = {}
        for entry, record in stored.entries(cache, "debian-"):
            version, flavour = record.provenance["version"], record.provenance["flavour"]
            spec = f"{PREFIX}{version}{'' if flavour == 'generic' else f'-{flavour}'}"
            if record.provenance["architecture"] != "amd64":
                spec += f"-{record.provenance['architecture']}"
            where = ", ".join(record.provenance["suites"])
            lines[entry.name] = Available(spec=spec, version=version, where=where, cached=True)
        if not offline or (cache.root / "archive/amd64/index.json").exists():
            archive = Archive(cache, progress, offline)
            for flavour in FLAVOURS:
                usable = [c for c in _candidates(archive, PackageRequest("", "", flavour, "amd64")) if not c.lacks]
                for series, newest in _newest_of_series(usable).items():
                    lines[newest.key] = Available(
                        spec=f"{PREFIX}{series}{'' if flavour == 'generic' else f'-{flavour}'}",
                        version=newest.image.version,
                        where=", ".join(newest.image.suites),
                        cached=newest.key in lines,
                    )
        return sorted(lines.values(), key=lambda line: version_key(line.version))

    def _fetch(self, wanted: PackageRequest, archive: Archive, cache: Cache, progress: Progress) -> Kernel:
        chosen, skipped = choose(wanted, archive, cache)
        if isinstance(chosen, Path):
            return stored.read(chosen, wanted.spec)
        if skipped:
            versions = ", ".join(c.image.version for c in skipped)
            progress.info(f"{wanted.spec}: skipped, as Debian serves them without their modules package: {versions}")
        entry = cache.entry(stored.KIND, chosen.key, lambda into: unpack_candidate(chosen, wanted, archive, into))
        return stored.read(entry, wanted.spec)


def choose(wanted: PackageRequest, archive: Archive, cache: Cache) -> tuple[Candidate | Path, list[Candidate]]:
    """The kernel that is meant, and newer ones that lack a package; else cached. Raises InputError, HostError."""
    offered = _candidates(archive, wanted)
    meant = candidates_of_suite(archive, wanted, offered)
    if meant is None:
        meant = [c for c in offered if matches_version(wanted.version, c.image.version, c.abi)]
    usable = [c for c in _released_first(meant) if not c.lacks]
    if not usable:
        # What the archive has rotated out may still be here.
        if not meant and (kept := find_cached(wanted, cache)):
            return kept, []
        raise explain_missing(wanted, meant, offered, archive.index().failed)
    return usable[0], [c for c in meant[: meant.index(usable[0])] if c.lacks]


def unpack_candidate(chosen: Candidate, wanted: PackageRequest, archive: Archive, into: Path) -> None:
    packages = archive.download(chosen.parts, into)
    with archive.progress.task(
        f"unpacking {chosen.image.name} ({sum(one.size for one in chosen.parts) / 1e6:.0f} MB)"
    ):
        files = unpack(packages, into)
    for package in packages:
        package.unlink()
    if files.modules is None:
        raise InputError(
            f"{chosen.image.name} {chosen.image.version} has no modules", "Name another version of the kernel."
        )
    provenance = {
        "source": "debian",
        "exact": f"{PREFIX}{chosen.image.version}-{wanted.flavour}-{wanted.architecture}",
        "version": chosen.image.version,
        "abi": chosen.abi,
        "flavour": wanted.flavour,
        "architecture": wanted.architecture,
        "suites": list(chosen.image.suites),
        "packages": [
            {"name": part.name, "version": part.version, "sha256": part.sha256, "size": part.size}
            for part in chosen.parts
        ],
    }
    kernel = Kernel(
        spec=wanted.spec, release=files.release, architecture=ARCHITECTURES[wanted.architecture][1],
        image=files.image, sha256=sha256_of(files.image), config=files.config, modules=files.modules,
        provenance=provenance,
    )  # fmt: skip
    stored.write(into, kernel)


def _candidates(archive: Archive, wanted: PackageRequest) -> list[Candidate]:
    """All kernels of a flavour, the newest first."""
    named = {(p.name, p.version): p for p in archive.index().packages}
    found = []
    for package in archive.candidates(f"linux-image-[0-9]*-{wanted.suffix}"):
        abi = package.name.removeprefix("linux-image-").removesuffix(f"-{wanted.suffix}")
        needs = package.exact_dependencies()
        is_meta = any(name.startswith("linux-image-") for name in needs)
        if is_meta or abi.endswith(tuple(f"-{flavour}" for flavour in FLAVOURS)):
            continue
        split = {f"linux-{part}-{abi}-{wanted.suffix}": package.version for part in ("modules", "binary", "base")}
        parts = [named[pair] for pair in split.items() if pair[0] in needs and pair in named]
        lacks = [pair[0] for pair in split.items() if pair[0] in needs and pair not in named]
        if not any(name.startswith("linux-modules-") for name in needs):
            # Not split: whatever else it names holds nothing that a guest needs.
            parts, lacks = [package, *parts], []
        found.append(Candidate(abi=abi, image=package, parts=tuple(parts), lacks=tuple(lacks)))
    return found


def candidates_of_suite(
    archive: Archive, wanted: PackageRequest, offered: Sequence[Candidate]
) -> list[Candidate] | None:
    """Kernels that the suite's metapackage installs; None where `wanted` names no suite."""
    if wanted.version not in archive.index().suites:
        return None
    suites = {wanted.version, f"{wanted.version}-updates", f"{wanted.version}-security"}
    for meta in archive.candidates(f"linux-image-{wanted.suffix}"):
        if suites & set(meta.suites):
            needs = meta.exact_dependencies()
            return [c for c in offered if needs.get(c.image.name) == c.image.version]
    return []


def _released_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Newest first as they come, but release candidates only where nothing else is meant."""
    return sorted(candidates, key=lambda candidate: "~rc" in candidate.image.version)


def _newest_of_series(candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    """Newest kernel of each series, by `6.12` and the like; candidates come newest first."""
    newest: dict[str, Candidate] = {}
    for candidate in _released_first(candidates):
        series = ".".join(upstream(candidate.image.version).partition("~")[0].split(".")[:2])
        newest.setdefault(series, candidate)
    return newest


def find_cached(wanted: PackageRequest, cache: Cache) -> Path | None:
    """The newest entry of the cache that is meant and not damaged."""
    found = []
    for entry, record in stored.entries(cache, "debian-"):
        facts = record.provenance
        is_kind = (facts["flavour"], facts["architecture"]) == (wanted.flavour, wanted.architecture)
        if is_kind and (
            wanted.version in facts["suites"] or matches_version(wanted.version, facts["version"], facts["abi"])
        ):
            found.append(("~rc" not in facts["version"], version_key(facts["version"]), entry))
    return next((entry for *_, entry in sorted(found, reverse=True) if cache.has(stored.KIND, entry.name)), None)


def _from_cache(wanted: PackageRequest, cache: Cache, progress: Progress) -> Kernel:
    kept = find_cached(wanted, cache)
    if kept is None:
        has = ", ".join(sorted({record.release for _, record in stored.entries(cache, "debian-")})) or "none"
        raise HostError(
            f"{wanted.spec} is not in the cache, and --offline forbids fetching it; of Debian's kernels it has: {has}",
            GO_ONLINE,
        )
    kernel = stored.read(kept, wanted.spec)
    pinned = wanted.version in (kernel.provenance["version"], kernel.provenance["abi"])
    progress.info(f"{wanted.spec}: {kernel.release}, {'' if pinned else 'the newest '}in the cache")
    return kernel


def explain_missing(
    wanted: PackageRequest, meant: Sequence[Candidate], offered: Sequence[Candidate], failed: Mapping[str, str]
) -> InputError | HostError:
    """Says what is near. `meant` are kernels that fit but lack a package, `failed` suites that could not be read."""
    usable = [c for c in offered if not c.lacks]
    if meant:
        versions = ", ".join(c.image.version for c in meant[:4])
        message = f"{wanted.spec}: Debian serves {versions} without {meant[0].lacks[0]}, so it cannot be booted"
    else:
        message = f"Debian's archive has no {wanted.flavour} kernel {wanted.version} for {wanted.architecture}"
    series = re.match(r"\d+\.\d+|\d+", wanted.version)
    near = [c for c in usable if series and matches_version(series[0], c.image.version, c.abi)][:8]
    told = [c.image.version for c in near or _newest_of_series(usable).values()]
    if failed:
        reasons = "; ".join(f"{suite}: {why}" for suite, why in sorted(failed.items())[:3])
        return HostError(
            f"{wanted.spec} was not found, and {len(failed)} of the archive's suites could not be read or verified "
            f"({reasons}); the others have: {', '.join(told) or 'none'}",
            CHECK_MIRROR,
        )
    if near or meant or not series:
        return InputError(message, f"{'Of that series it' if near else 'It'} has: {', '.join(told) or 'none'}.")
    return InputError(message, f"It has: {', '.join(told) or 'none'}. {OTHER_WAYS}")


PLUGIN = Debian()
