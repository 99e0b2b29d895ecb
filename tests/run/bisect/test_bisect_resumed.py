"""What a search that was killed leaves behind: the checkout and its objects, kernels, half-written files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.progress import Progress, UniqueMessages
from kduel.run.bisect import exact, kernels
from kduel.run.bisect.build import UNFINISHED, Builder, Unbuildable, remove_unfinished
from kduel.run.bisect.exact import CommitCounter, ExactResult, ExactSearch, ExactStep, bisect
from kduel.run.bisect.git import check_out, git, worktree
from kduel.run.bisect.kernels import CommitKernels

PERSON = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def repository(place: Path, files: list[dict[str, str]]) -> list[str]:
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    for number, contents in enumerate(files):
        for name, text in contents.items():
            (place / name).write_text(text)
        for words in (["add", "."], ["commit", "-q", "-m", f"Commit {number}"]):
            subprocess.run(["git", "-C", str(place), *words], check=True, env=os.environ | PERSON)
    return git(place, "rev-list", "--reverse", "HEAD").splitlines()


def killed(tree: Path, place: Path, commit: str) -> None:
    """Leave what a killed search leaves."""
    git(tree, "worktree", "add", "--quiet", "--detach", str(place), commit)


def test_a_checkout_that_a_killed_search_left_is_used_again_so_that_nothing_is_built_twice(tmp_path: Path) -> None:
    tree, place = tmp_path / "linux", tmp_path / "work" / "source"
    commits = repository(tree, [{"same.c": "1", "other.c": "1"}, {"other.c": "2"}])
    killed(tree, place, commits[0])
    os.utime(place / "same.c", (1e9, 1e9))
    (place / "other.c").unlink()
    Path(git(place, "rev-parse", "--absolute-git-dir"), "index.lock").touch()
    git(place, "bisect", "start", check=False)
    with worktree(tree, place, commits[1]) as taken:
        check_out(taken, commits[1])
        assert (taken / "same.c").stat().st_mtime == 1e9
        assert (taken / "other.c").read_text() == "2"
        check_out(taken, commits[0])
        assert (taken / "other.c").read_text() == "1"
    assert not place.exists()


@pytest.mark.parametrize("end", [KeyboardInterrupt(), HostError("the disk is full")])
def test_an_interrupted_search_leaves_its_checkout_so_that_nothing_is_built_twice(
    tmp_path: Path, end: BaseException
) -> None:
    """A build that was cut off is of no known commit: all files of a fresh checkout would be newer than its objects."""
    tree, place = tmp_path / "linux", tmp_path / "work" / "source"
    commits = repository(tree, [{"same.c": "1"}, {"other.c": "2"}])
    with pytest.raises(type(end)), worktree(tree, place, commits[0]):
        os.utime(place / "same.c", (1e9, 1e9))
        raise end
    with worktree(tree, place, commits[1]) as taken:
        check_out(taken, commits[1])
        assert (taken / "same.c").stat().st_mtime == 1e9
    assert not place.exists(), "at its end nothing is left"


def test_a_later_search_builds_only_what_differs_from_the_commit_that_was_built_last(tmp_path: Path) -> None:
    tree, work = tmp_path / "linux", tmp_path / "work"
    make = "olddefconfig:\n\t@:\nbzImage: $O/a $O/b\n$O/%: %.c\n\t@echo $* >>$O/made; cp $< $@\n"
    commits = repository(tree, [{"Makefile": make, "a.c": "1", "b.c": "1"}, {"b.c": "2"}, {"a.c": "3"}])
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    builder = Builder(source=work / "source", build=work / "build", config=tmp_path / "config", log=tmp_path / "log")
    made: list[str] = []
    for commit in (commits[0], commits[1], commits[1], commits[2]):
        with worktree(tree, builder.source, commits[0], builder.built_commit()) as place:
            check_out(place, commit)
            builder.make()
            builder.note_commit(commit)
        made.append("".join((work / "build" / "made").read_text().split()))
    assert [len(names) for names in made] == [2, 3, 3, 4]
    assert made[-1].endswith("ba")
    assert (work / "build" / "a").read_text() + (work / "build" / "b").read_text() == "32"


def test_the_checkout_of_another_tree_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "work" / "source"
    first, second = tmp_path / "first", tmp_path / "second"
    killed(first, place, repository(first, [{"a.c": "first"}])[0])
    commits = repository(second, [{"a.c": "second"}])
    with worktree(second, place, commits[0]) as taken:
        assert (taken / "a.c").read_text() == "second"


def test_objects_of_a_build_that_was_killed_are_removed_and_headers_stay(tmp_path: Path) -> None:
    old, new = (1e9, 1e9), (2e9, 2e9)
    times = {
        "a.o": old,
        "b.o": new,
        "fs/c.o": new,
        "include/generated/h.h": new,
        ".config": new,
        UNFINISHED: (1.5e9,) * 2,
    }
    for name, when in times.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, when)
    remove_unfinished(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"a.o", "include/generated/h.h", ".config", UNFINISHED}
    (tmp_path / UNFINISHED).unlink()
    (tmp_path / "b.o").write_text("new")
    remove_unfinished(tmp_path)
    assert (tmp_path / "b.o").exists()


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from kduel.run.bisect.build import Builder

work = Path(sys.argv[1])

def interrupt():
    while not (work / "build" / "slow").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), int(sys.argv[2]))

threading.Thread(target=interrupt, daemon=True).start()
Builder(source=work / "source", build=work / "build", config=work / "config", log=work / "log", jobs=1).make()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "again"), [(signal.SIGINT, ["slow"]), (signal.SIGKILL, ["whole", "slow"])])
def test_what_was_whole_when_a_build_was_interrupted_is_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals, again: list[str]
) -> None:
    """After Ctrl-C make removes what it had begun. Killed, it cannot, and nobody knows what was whole."""
    source = tmp_path / "source"
    source.mkdir()
    make = (
        "olddefconfig:\n\t@:\nbzImage: $O/whole $O/slow\n$O/whole:\n\t@echo whole >>$O/made; echo 1 >$@; sleep 3\n"
        "$O/slow:\n\t@echo slow >>$O/made; echo half >$@; $(WAIT); echo 2 >$@\n"
    )
    (source / "Makefile").write_text(make)
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WAIT": "sleep 600"}
    program = [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(int(how))]
    assert subprocess.run(program, env=environment, capture_output=True, check=False, timeout=120).returncode != 0
    made = tmp_path / "build" / "made"
    assert made.read_text().split() == ["whole", "slow"]
    monkeypatch.setenv("WAIT", ":")
    made.unlink()
    Builder(source=source, build=tmp_path / "build", config=tmp_path / "config", log=tmp_path / "log", jobs=1).make()
    assert made.read_text().split() == again
    assert (tmp_path / "build" / "slow").read_text() == "2\n"


def test_what_is_built_is_not_known_while_a_build_runs_or_after_one_that_failed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text("olddefconfig:\nbzImage:\n\t@exit 1\n")
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    builder = Builder(source=source, build=tmp_path / "build", config=tmp_path / "config", log=tmp_path / "log")
    assert builder.built_commit() == ""
    (tmp_path / "build").mkdir()
    builder.note_commit("0" * 40)
    assert builder.built_commit() == "0" * 40
    with pytest.raises(Unbuildable):
        builder.make()
    assert builder.built_commit() == ""


def test_only_a_build_that_ended_counts_as_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[BaseException | None] = [KeyboardInterrupt(), Unbuildable("bad"), None]
    seen: list[bool] = []
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    build = tmp_path / "build"

    def run(self: Any, *words: str) -> None:
        if "bzImage" in words:
            seen.append((build / UNFINISHED).exists())
            if error := ends.pop(0):
                raise error

    monkeypatch.setattr("kduel.kernels.compile.make.Make.run", run)
    builder = Builder(source=tmp_path / "source", build=build, config=tmp_path / "config", log=tmp_path / "log")
    for error, left in ((KeyboardInterrupt, True), (Unbuildable, False)):
        with pytest.raises(error):
            builder.make()
        assert (build / UNFINISHED).exists() == left
    assert builder.make() == f"tree:{build}"
    assert not (build / UNFINISHED).exists()
    assert seen == [True, True, True]


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        ("ld: final link failed: No space left on device", HostError, "No space left"),
        ("gcc: fatal error: Killed signal terminated program cc1", HostError, "Killed"),
        ("$PWD/kernel/a.c:1:2: error: bad", Unbuildable, "^kernel/a.c:1:2: error: bad"),
    ],
)
def test_a_full_disk_is_not_taken_for_a_commit_that_does_not_build(
    tmp_path: Path, said: str, error: type[Exception], told: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text(
        "olddefconfig:\n\nbzImage:\n\t@echo '" + said.replace("$PWD", str(source)) + "' >&2; exit 1\n"
    )
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    builder = Builder(source=source, build=tmp_path / "build", config=tmp_path / "config", log=tmp_path / "log")
    with pytest.raises(error, match=told):
        builder.make()
    by_command = structs.replace(builder, command=f"make -C {source} bzImage", image="k")
    with pytest.raises(error, match=told):
        by_command.make()


def test_a_build_speaks_english_whatever_the_language_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux's make does not export LC_ALL: where LANG stays, a full disk is told in another language, and is not recognised."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text(
        "unexport LC_ALL\nolddefconfig:\n\nbzImage:\n\t@echo $$LANG$$LANGUAGE$$LC_MESSAGES >>$O/said\n"
    )
    (tmp_path / "config").write_text("CONFIG_X86=y\n")
    for name in ("LANG", "LANGUAGE", "LC_MESSAGES", "LC_ALL"):
        monkeypatch.setenv(name, "de_DE.UTF-8")
    Builder(source=source, build=tmp_path / "build", config=tmp_path / "config", log=tmp_path / "log").make()
    assert (tmp_path / "build" / "said").read_text().strip() == ""


def test_a_message_is_passed_on_once() -> None:
    told: list[str] = []

    class Listening(Progress):
        def warn(self, text: str) -> None:
            told.append(text)

        info = warn

    once = UniqueMessages(Listening())
    for _ in range(2):
        once.warn("low memory")
        once.info("KVM does not work")
    assert told == ["low memory", "KVM does not work"]


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    tree = tmp_path / "linux"
    costs = ["100", "100", "bad", "100", "104", "104"]
    return tree, repository(tree, [{"cost": cost, "number": str(n)} for n, cost in enumerate(costs)])


def counting(
    tree: Path,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: str = "pipe",
    explained: list[Any] | None = None,
) -> tuple[CommitCounter, list[str]]:
    """A trier whose counts are what the commit's file says, and the list of what it built. What is to be explained is
    added to `explained`."""
    built: list[str] = []
    explained = [] if explained is None else explained

    def resolve(spec: str, **_: Any) -> Any:
        built.append(git(place, "rev-parse", "HEAD"))
        return SimpleNamespace(release="6.1", image=Path(spec), config=None, modules=None, vmlinux=None)

    def make_ready(pair: list[str], **_: Any) -> Any:
        benchmark = "boot-instructions" if operation == "boot" else "kbench"
        study = SimpleNamespace(steps=[SimpleNamespace(label=operation, benchmark=benchmark, parameters={})])
        arm = SimpleNamespace(contender=None, text=Path(pair[0]).read_text())
        return SimpleNamespace(arms=[arm], setup=SimpleNamespace(script=lambda *_: None), study=study)

    def count_arm(machine: Any, arm: Any, *_: Any, boot: bool = False, **__: Any) -> exact.CountedTrial:
        monkeypatch.setattr(exact.CountedTrial, "step", lambda self, *_: SimpleNamespace(median=float(self.name)))
        directory = tmp_path / f"counted-{arm.text.strip()}"
        if operation == "boot":
            # What a guest leaves of the boot's count, which is no line of kbench.
            step = directory / "trial" / "01-boot"
            step.mkdir(parents=True, exist_ok=True)
            for name, text in (("stdout", f"{int(arm.text):015}\n"), ("stderr", ""), ("exit.json", '{"status": 0}')):
                (step / name).write_text(text)
        dump = "by function" if boot else None
        return exact.CountedTrial(name=arm.text, directory=directory, dump=dump, symbols=None)  # type: ignore[arg-type]

    monkeypatch.setattr(kernels, "resolve", resolve)
    monkeypatch.setattr(exact, "make_ready", make_ready)
    monkeypatch.setattr(exact, "operation_study", lambda specs, *_: specs)
    monkeypatch.setattr(exact, "exact_machine", lambda _: None)
    monkeypatch.setattr(exact, "count_arm", count_arm)
    monkeypatch.setattr(exact, "replace", lambda counted, **_: counted)
    monkeypatch.setattr(exact, "explain_step", lambda _, both, __: explained.extend(both))
    builder = Builder(
        source=place, build=tmp_path / "build", log=tmp_path / "log", image="k",
        command="grep -v bad cost >$KDUEL_BUILD/k",
    )  # fmt: skip
    kept = CommitKernels(builder, cache=Cache(tmp_path / "cache"), progress=Progress())
    return CommitCounter(
        lambda commit: str(kept(commit)), operation, "instructions", cache=kept.cache, progress=Progress()
    ), built


@pytest.mark.slow
def test_exact_searches_build_no_commit_twice_and_give_the_document_of_timed_ones(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, commits = history
    place = tmp_path / "source"
    for first in (True, False):
        with worktree(tree, place, commits[0]):
            trier, built = counting(tree, place, tmp_path, monkeypatch)
            result = bisect(place, commits[0], commits[-1], trier, progress=Progress())
        assert bool(built) == first
        assert len(set(built)) == len(built)
    document = result.outcome(commits[0], commits[-1], "pipe instructions").document()
    assert document["set"] == [commits[4]]
    assert document["probability"] == 1.0
    assert document["effect_pct"] == document["ci_low_pct"] == document["ci_high_pct"] == pytest.approx(4.0)
    status = {level.commit: level.status for level in document["levels"]}
    assert status[commits[0]] == "good" and status[commits[-1]] == "bad"
    assert status[commits[3]] == "before" and status[commits[4]] == "after"
    assert document["measurements"] == sum(level.n for level in document["levels"])


def test_skipped_commits_are_in_the_exact_document(history: tuple[Path, list[str]]) -> None:
    _, commits = history
    steps = [ExactStep(commit=commits[2], subject="", judgement="skip", why="does not build: bad")]
    found = ExactSearch(found=ExactResult(commits=commits[2:4], steps=steps), old_value=100, new_value=104)
    document = found.outcome(commits[0], commits[-1], "pipe instructions").document()
    assert document["set"] == commits[2:4] and document["effect_pct"] is None
    assert [level.status for level in document["levels"]] == ["good", "skipped: does not build: bad", "bad"]
    assert document["measurements"] == 2
