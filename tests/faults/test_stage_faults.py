"""Each stage at a disk that refuses: the kernel, the guest's root, the run, its report, an import, a merged run, an index, a site
and a bundle. Every kind of file that a command writes has a call that fails, once with each of its errors: the error names
the place, nothing is left that is half written, and the same command goes on afterwards."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import Broken, Place, no_traceback, place
from test_disk_faults import ERRORS, EVERY

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.slow]

SOME = 8
"""Faults of a stage, without KDUEL_TEST_FAULTS=all."""

TABLE = "contender,trial,latency [ms: lower]\n" + "".join(
    f"{name},{trial},{base + trial}.5\n" for trial in range(1, 7) for name, base in (("old", 100), ("new", 200))
)
MMDEBSTRAP = """\
#!/bin/sh -e
# In place of mmdebstrap, which takes minutes: the smallest root.
for word; do case $word in */root.tar) tar=$word;; esac; done
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT
python3 -c "import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(6000000))" >"$directory/filler"
mkdir -p "$directory/usr/bin"; echo busybox >"$directory/usr/bin/busybox"; echo 'busybox-static 1' >"$directory/kduel.packages"
tar -C "$directory" -cf "$tar" .
"""


@dataclass(frozen=True)
class Stage:
    """A command, what it needs, and what it makes."""

    words: tuple[str, ...]
    """`@` is the place's directory."""
    makes: tuple[str, ...]
    """Patterns of what is there at the end, whole or not at all. What stands before `!` is compared by its names only."""
    cache: tuple[str, ...] = ()
    """With any, the cache is one of the place's own, and has no other kinds of entries."""
    between: str = ""
    """A file that is another one, and whole, before the end."""
    check: tuple[str, ...] = ()
    """A command that must find what was made in order, too."""
    root: bool = False
    """Whether mmdebstrap is a stand-in."""
    run: bool = False
    """Whether a finished run is there, in `@/runs/a` and `@/runs/b`."""


STAGES = {
    "kernel": Stage(
        ("bundle", "debian:6.12-cloud", "--output", "@/made/b.tar"),
        ("cache/kernels/*", "made/b.tar"), cache=("archive", "root", "programs", "busybox"),
    ),
    "root": Stage(("bundle", "--root", "--output", "@/made/b.tar"), ("cache/root/*", "made/b.tar"), cache=("busybox",), root=True),
    "unpacked bundle": Stage(("bundle", "--unpack", "@/made/b.tar"), ("cache/root/*",), cache=("busybox",), root=True),
    "run": Stage(("run", "@/faults.toml", "--out", "@/run", "--seed", "7", "--offline"), ("run",), check=("verify", "@/run")),
    "page": Stage(("report", "@/runs/a", "--format", "html"), ("runs",), check=("verify", "@/runs/a"), run=True),
    "figures": Stage(
        ("report", "@/runs/a", "--format", "json", "--output", "@/made/r.json", "--figures", "@/made/figures", "--figure-format", "svg"), ("made",), run=True
    ),
    "import": Stage(("import", "@/table.csv", "--out", "@/made/i"), ("made",), check=("verify", "@/made/i")),
    "merged run": Stage(("merge", "@/runs/a", "@/runs/b", "--out", "@/made/m"), ("made",), check=("verify", "@/made/m"), run=True),
    "index": Stage(("query", "--update", "@/runs"), ("runs",), check=("query", "@/runs", "runs"), run=True),
    "site": Stage(("site", "@/runs", "--output", "@/made/site"), ("made",), between="made/site/kduel-site.json", run=True),
    "study": Stage(("init", "@/made/study.toml"), ("made",)),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A call that fails, the kind of file that it writes, and with what."""

    name: str
    number: int
    kind: str
    error: str


def put(stage: Stage, own: Place, kept: Path) -> None:
    """What the stage needs, and nothing that it makes."""
    if stage.cache:
        own.copy_cache(stage.cache)
    if stage.root:
        program = own.program / "mmdebstrap"
        program.write_text(MMDEBSTRAP)
        program.chmod(0o755)
    if stage.words[0] == "bundle":
        (own.program / "qemu-system-x86_64").unlink()  # It is asked what it is, and boots nothing.
    (own.base / "made").mkdir()
    (own.base / "table.csv").write_text(TABLE)
    if stage.run:
        shutil.copytree(kept, own.base / "runs")
    if "--unpack" in stage.words:
        done = own.kduel("bundle", "--root", "--output", own.base / "made/b.tar")
        assert done.returncode == 0, done.stderr
        shutil.rmtree(own.cache / "root")


def given(own: Place, words: tuple[str, ...]) -> list[str]:
    return [word.replace("@", str(own.base)) for word in words]


def carry_out(stage: Stage, own: Place) -> subprocess.CompletedProcess[str]:
    """The command, as a user would type it now."""
    resumed = stage.words[0] == "run" and (own.run / "lock.json").exists()
    return own.kduel("resume", own.run) if resumed else own.kduel(*given(own, stage.words))


def made(stage: Stage, own: Place) -> dict[str, str]:
    """Digests of all files that the stage makes, by their names."""
    paths = [path for pattern in stage.makes for path in own.base.glob(pattern)]
    files = {file for path in paths for file in (path, *path.rglob("*")) if file.is_file()}
    return {str(file.relative_to(own.base)): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}


def logged(own: Place, library: Path, fault: Fault | None = None) -> dict[str, str]:
    """Variables of a command whose calls that write below the place, or into the cache, are logged; one fails."""
    (own.base / "calls").unlink(missing_ok=True)
    call = f"{fault.name}:{fault.number}:{getattr(errno, fault.error)}" if fault else ""
    places = f"{own.base}/:{own.cache}/"
    return {
        "LD_PRELOAD": str(library),
        "FAULT_LOG": str(own.base / "calls"),
        "FAULT_PLACES": places,
        "FAULT_CALL": call,
    }


def lines_of(own: Place) -> list[tuple[str, str, int]]:
    """The calls: name, path and number."""
    text = (own.base / "calls").read_text(errors="replace")
    return [(one[1], one[2], int(one[3])) for one in re.finditer(r"^(\w+)\((.*)\) (\d+)", text, re.MULTILINE)]


def kind_of(own: Place, path: str) -> str:
    """A path without what is of this place, or of one of many alike."""
    path = path.replace(str(own.cache), "cache").replace(str(own.base), "@")
    path = re.sub(r"(/\.[\w.]*?-)[^/]*", r"\1*", path)
    path = re.sub(r"(/lib/modules/).*", r"\1*", path)
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", path)


def faults_of(own: Place) -> list[Fault]:
    """The last call of each kind, for every kind of file, with one of its errors: some of them, or with each error all."""
    found: dict[tuple[str, str], list[Fault]] = {}
    for name, path, number in lines_of(own):
        kind = kind_of(own, path)
        found[name, kind] = [Fault(name, number, kind, error) for error in ERRORS[name]]
    if EVERY:
        return [one for kinds in found.values() for one in kinds]
    chance = random.Random(43)
    told = [chance.choice(kinds) for kinds in found.values()]
    return chance.sample(told, min(len(told), SOME))


def story_of(fault: Fault) -> str:
    return f"{fault.error} at {fault.name} of {fault.kind}"


def check_told(own: Place, fault: Fault, done: subprocess.CompletedProcess[str], path: str) -> None:
    """The status of a host that cannot be written to; the message names the file or a directory of it, and a remedy."""
    story = story_of(fault)
    if done.returncode not in (0, 3):
        raise Broken(f"{story}: status {done.returncode}: {done.stderr[-1500:]}")
    if done.returncode:
        said = done.stderr[done.stderr.rindex("kduel: ") :]
        above = [str(one) for one in (Path(path), *Path(path).parents) if str(one).startswith(str(own.base))]
        above += [str(own.cache)] if path.startswith(str(own.cache)) else []
        named = any(
            f"{one}{end}" in f"{said} " for one in above if one != str(own.base) for end in (" ", ":", "/", ")", "\n")
        )
        final = [re.sub(r"/\.([^/]*)-[^/-]*", r"/\1", one) for one in above]
        if "open files" not in said and not named and not any(one in said for one in final if one != str(own.base)):
            raise Broken(f"{story}: does not name {path}: {said}")
        if "\n" not in said.strip():
            raise Broken(f"{story}: no remedy: {said}")


@pytest.fixture(scope="module")
def library(need: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("library") / "failing.so"
    source = Path(__file__).with_name("failing.c")
    subprocess.run([need("gcc"), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", target, source], check=True)
    return target


@pytest.fixture(scope="module")
def kept_runs() -> Iterator[Path]:
    """The directory of two finished runs, `a` and `b`."""
    with place(seconds=0.05, blocks=1) as own:
        for name, seed in (("a", 7), ("b", 8)):
            own.put_run(own.base / "runs" / name)
            done = own.kduel("run", own.study, "--out", own.run, "--seed", seed)
            assert done.returncode == 0, done.stderr
        yield own.base / "runs"


@pytest.mark.parametrize("name", STAGES)
def test_a_disk_that_refuses_is_told_and_the_same_command_goes_on(
    name: str, library: Path, kept_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = STAGES[name]
    ends: list[dict[str, str]] = []
    faults: list[Fault] = []
    for _ in range(2):
        with place(seconds=0.05, blocks=1) as own:
            put(stage, own, kept_runs)
            own.environment |= logged(own, library)
            done = carry_out(stage, own)
            assert done.returncode == 0, done.stderr
            ends.append(made(stage, own))
            faults = faults_of(own)
    assert ends[0].keys() == ends[1].keys() and faults
    alike = {file for file, digest in ends[0].items() if ends[1][file] == digest}
    broken, hit = [], 0
    for fault in faults:
        with place(seconds=0.05, blocks=1) as own:
            put(stage, own, kept_runs)
            before, plain = made(stage, own), dict(own.environment)
            own.environment |= logged(own, library, fault)
            done = carry_out(stage, own)
            own.environment = plain
            failed = re.search(
                r"^\w+\((.*)\) \d+ \(INJECTED\)", (own.base / "calls").read_text(errors="replace"), re.MULTILINE
            )
            hit += failed is not None
            try:
                no_traceback(story_of(fault), done.stderr)
                check_told(own, fault, done, failed[1] if failed else "")
                check_whole(stage, own, fault, before, ends[0], alike)
                if done.returncode or not failed:
                    check_goes_on(stage, own, fault, ends[0], alike)
            except Broken as error:
                broken.append(str(error))
    with capsys.disabled():
        print(f"\n{name}: {len(faults)} faults, {hit} hit, {len(broken)} broken", flush=True)
    assert not broken, "\n".join(broken)


def check_whole(
    stage: Stage, own: Place, fault: Fault, before: dict[str, str], end: dict[str, str], alike: set[str]
) -> None:
    """Each file is as it was, or as it is at the end, or not there."""
    for file, digest in made(stage, own).items():
        if file == stage.between:
            continue
        if "/." not in f"/{file}" and file in alike and digest not in (before.get(file), end[file]):
            raise Broken(f"{story_of(fault)}: {file} is half written")
        if "/." not in f"/{file}" and file not in end:
            raise Broken(f"{story_of(fault)}: {file} should not be there")


def check_goes_on(stage: Stage, own: Place, fault: Fault, end: dict[str, str], alike: set[str]) -> None:
    """The same command ends as if nothing had happened."""
    story = f"{story_of(fault)}, then again"
    done = carry_out(stage, own)
    if done.returncode:
        raise Broken(f"{story}: status {done.returncode}: {done.stderr[-1500:]}")
    now = made(stage, own)
    if now.keys() != end.keys():
        raise Broken(f"{story}: {sorted(now.keys() ^ end.keys())[:5]} differ")
    if changed := sorted(file for file in alike if now[file] != end[file]):
        raise Broken(f"{story}: other bytes in {changed[:5]}")
    if stage.check and (done := own.kduel(*given(own, stage.check))).returncode:
        raise Broken(f"{story}: {stage.check[0]}: {done.stdout[-500:]} {done.stderr[-500:]}")
    if left := [*own.temporary.iterdir(), *own.base.glob(".[a-z]*")]:
        raise Broken(f"{story}: left behind: {left}")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
@pytest.mark.parametrize(("size", "failed"), [("8m", "cannot be made"), ("14m", "cannot be packed")])
def test_a_disk_that_is_full_for_the_programs_that_make_a_root_is_told(size: str, failed: str) -> None:
    with place(seconds=0.05, blocks=1) as own:
        (own.base / "cache").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", own.base / "cache"], check=True)
        try:
            put(STAGES["root"], own, Path())
            done = carry_out(STAGES["root"], own)
            assert done.returncode == 3, done.stderr
            said = done.stderr[done.stderr.rindex("kduel: ") :]
            assert failed in said, said
            assert f"Free some space in {own.cache}/root" in said, said
            assert not made(STAGES["root"], own)
            subprocess.run(["mount", "-o", "remount,size=64m", own.base / "cache"], check=True)
            assert carry_out(STAGES["root"], own).returncode == 0
        finally:
            subprocess.run(["umount", own.base / "cache"], check=True)
