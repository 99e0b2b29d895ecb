"""What may be continued, and from where; the message names what differs."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
from cut_runs import cut_run
from made_kernels import bzimage, module

from kduel.cli.execute import default_out
from kduel.cli.report import command as report
from kduel.core.errors import InputError
from kduel.store import collect
from kduel.store.documents import Lock, study_of
from kduel.store.identity import (
    check_same_run,
    check_same_study,
    differences,
    differences_text,
    protocol_differences,
    same_study,
    study_differences,
)
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import assemble

STUDY = """
[study]
name = "letters"
[[contender]]
kernel = "./old/bzImage"
[[contender]]
kernel = "new/bzImage"
[machine]
kind = "process"
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 2
[[benchmark]]
use = "outside-letters"
primary = ["letters"]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a study of two kernel images that are named by relative paths."""
    place = tmp_path / "studies"
    for number, name in enumerate(("old", "new")):
        (place / name).mkdir(parents=True)
        (place / name / "bzImage").write_bytes(bzimage(f"6.{number}.0"))
    (place / "study.toml").write_text(STUDY)
    return place


def trials(run: Path) -> list[Path]:
    """The trials that are there, in the order of time."""
    return sorted((run / "trials").iterdir())


def shorten(run: Path) -> None:
    """As if the runner had been killed after the second trial."""
    cut_run(run, [trial.name for trial in trials(run)[2:]])


def test_a_relative_path_is_one_of_where_the_command_is_given(kduel, place: Path, tmp_path: Path):
    """It was that of a run of the same name where the run had been started."""
    assert kduel("run", "study.toml", "--out", "run", cwd=place).returncode == 0
    other = shutil.copytree(place / "run", tmp_path / "elsewhere/run")
    shorten(other)
    shorten(place / "run")
    for path in (other, other.parent):
        done = kduel("resume", "." if path == other else "run", cwd=path)
        assert done.returncode == 0, done.stderr
        assert (len(trials(other)), len(trials(place / "run"))) == (4, 2)
        shorten(other)


@pytest.mark.slow
def test_a_run_is_continued_from_anywhere_while_its_kernels_are_the_same(kduel, place: Path, tmp_path: Path):
    """Relative paths are those of the directory in which it was started, or, where that is gone, of the present one."""
    assert kduel("run", "study.toml", "--out", "run", cwd=place).returncode == 0
    run = place / "run"
    shorten(run)
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    assert len(trials(run)) == 4

    # The same command; what only describes the study may have changed.
    shorten(run)
    (place / "study.toml").write_text(STUDY.replace('name = "letters"', 'name = "letters"\ntitle = "Letters"'))
    assert kduel("run", "study.toml", "--out", "run", cwd=place).returncode == 0
    assert len(trials(run)) == 4

    shorten(run)
    place = place.rename(tmp_path / "moved")
    done = kduel("resume", "run", cwd=place)
    assert done.returncode == 0, done.stderr
    assert len(trials(place / "run")) == 4

    shorten(place / "run")
    (place / "new/bzImage").write_bytes(bzimage("6.9.0"))
    done = kduel("resume", "run", cwd=place)
    assert done.returncode == 2
    assert "kernels.new/bzImage.release: 6.1.0 in the run, 6.9.0 now" in done.stderr
    assert "kernels.new/bzImage.sha256: " in done.stderr and "kernels.old/bzImage" not in done.stderr
    assert len(trials(place / "run")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", ["resume", "run"])
def test_a_trial_that_was_removed_is_not_measured_again(kduel, write_study, tmp_path: Path, command: str):
    """Whoever dislikes a value could draw another."""
    run, words = tmp_path / "run", ("run", write_study(), "--out", tmp_path / "run")
    assert kduel(*words).returncode == 0
    again = ("resume", run) if command == "resume" else words
    whole = trials(run)
    for gone, why in ((whole[0], "though later trials are there"), (whole[-1], "which results.json has")):
        copy = gone.rename(tmp_path / "copy")
        done = kduel(*again)
        assert done.returncode == 2, done.stderr
        assert f"trials/{gone.name} is missing, {why}" in done.stderr
        assert "restore it from a copy" in done.stderr and "another --out" in done.stderr
        assert trials(run) == [one for one in whole if one != gone]
        told = " ".join(kduel("report", run).stdout.split())
        assert (
            "The run was changed afterwards" in told
            and "The run is not finished: 2 of 3 blocks are complete." in told
        )
        assert "kduel resume" not in told and "continue the run" not in told
        said = kduel("status", run).stdout
        assert "not running, 2 of 3 blocks" in said and f"{gone.name} is missing, {why}" in said
        assert "kduel resume" not in said
        copy.rename(gone)

    for one in whole:
        one.rename(tmp_path / one.name)
    done = kduel(*again)
    assert done.returncode == 2 and "(and 5 more)" in done.stderr, done.stderr
    for one in whole:
        (tmp_path / one.name).rename(one)

    results = run / "results.json"
    kept = results.read_bytes()
    for damaged in (b"", b"[]", b'{"schema": 2}'):
        results.write_bytes(damaged)
        whole[-1].rename(copy)
        done = kduel(*again)
        assert done.returncode == 2 and f"cannot read {results}" in done.stderr, done.stderr
        copy.rename(whole[-1])
    results.write_bytes(kept)

    cut_run(run, [whole[-1].name])
    assert kduel(*again).returncode == 0, "what was not measured yet is measured"
    assert trials(run) == whole
    assert kduel("verify", run).returncode == 0


@pytest.mark.slow
def test_a_run_is_not_continued_with_other_modules(kduel, place: Path):
    """They are below modules=, and the image is the same."""
    release, modules = "6.0.0", place / "installed/lib/modules/6.0.0"
    (modules / "kernel/fs").mkdir(parents=True)
    driver = modules / "kernel/fs/ext4.ko"
    driver.write_bytes(module(release))
    text = STUDY.replace('"./old/bzImage"', f'"./old/bzImage"\nmodules = "{place / "installed"}"')
    (place / "study.toml").write_text(text)
    done = kduel("run", "study.toml", "--out", "run", cwd=place)
    assert done.returncode == 0, done.stderr
    run = place / "run"
    shorten(run)
    (modules / "modules.dep").write_text("what depmod writes is no module")
    packed = gzip.compress(driver.read_bytes())
    driver.unlink()
    driver.with_suffix(".ko.gz").write_bytes(packed)
    assert kduel("resume", run).returncode == 0, "a module that is compressed is the same one"

    shorten(run)
    driver.with_suffix(".ko.gz").write_bytes(gzip.compress(module(release, depends="jbd2")))
    done = kduel("resume", run)
    assert done.returncode == 2 and len(trials(run)) == 2
    assert "kernels.old/bzImage.modules: " in done.stderr and "kernels.new/bzImage" not in done.stderr

    shutil.rmtree(modules / "kernel/fs")
    done = kduel("resume", run)
    assert done.returncode == 2 and "kernels.old/bzImage.modules: " in done.stderr


def test_modules_are_compared(unpack: Callable[[str], Path]):
    path = unpack("qemu")
    lock = RunDir.open(path).lock()

    def having(*modules: str | None) -> Lock:
        known = [msgspec.structs.replace(one, modules=of) for one, of in zip(lock.kernels, modules, strict=True)]
        return msgspec.structs.replace(lock, kernels=known)

    check_same_run(having("a" * 64, "none"), having("a" * 64, "none"), path)
    with pytest.raises(InputError, match=r"kernels\.\S+\.modules: none in the run, b"):
        check_same_run(having("a" * 64, "none"), having("a" * 64, "b"), path)


def test_where_no_directory_is_given_only_the_same_study_continues_an_unfinished_run(
    unpack: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
):
    run = unpack("interrupted")
    study = study_of(RunDir.open(run).lock(), "")
    monkeypatch.chdir(run.parent)
    Path("kduel-runs").mkdir()
    wanted = default_out(study)
    run.rename(wanted)
    assert default_out(study) == wanted
    CliRunner().invoke(report, [str(wanted), "--format", "html"], catch_exceptions=False)
    assert (wanted / "report/index.html").is_file()
    assert default_out(study) == wanted, "a page of what is there so far does not end the run"
    (wanted / "results.json").write_text("{}")
    assert default_out(study) != wanted, "the results are written at the end"
    (wanted / "results.json").unlink()
    for key, value in (
        ("blocks", msgspec.structs.replace(study.blocks, max=9)),
        ("about", msgspec.structs.replace(study.about, delta=2.0)),
        ("machine_settings", study.machine_settings | {"memory": "1G"}),
        ("steps", study.steps[:1]),
    ):
        assert default_out(msgspec.structs.replace(study, **{key: value})) != wanted, key


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["complete", "incomplete"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_run_is_not_continued_with_another_baseline(kduel, place: Path, count: int, whole: bool):
    """The first contender is the one that verdicts are about: in another order faster is slower."""
    contenders = [f'[[contender]]\nkernel = "outside:{name}"\n' for name in ("old", "new", "third")[:count]]
    head, tail = STUDY.partition("[[contender]]")[0], STUDY[STUDY.index("[machine]") :]

    def run(order: list[str]) -> Any:
        (place / "study.toml").write_text(head + "".join(order) + tail)
        return kduel("run", "study.toml", "--out", "run", cwd=place)

    assert run(contenders).returncode == 0
    if not whole:
        shorten(place / "run")
    before = len(trials(place / "run"))
    other = contenders[1:2] + contenders[:1] + contenders[2:]
    done = run(other)
    assert done.returncode == 2 and "order of the contenders: " in done.stderr, done.stderr
    more = run([*contenders, '[[contender]]\nkernel = "outside:fourth"\n'])
    assert more.returncode == 2 and "contenders.outside-fourth: " in more.stderr, more.stderr
    assert len(trials(place / "run")) == before
    assert run(contenders).returncode == 0


@pytest.mark.parametrize("kind", ["qemu", "interrupted", "icount"])
def test_one_rule_says_whether_a_run_is_of_a_study(unpack: Callable[[str], Path], kind: str):
    """Whether it may be continued, and the message that says why not, cannot disagree."""
    path = unpack(kind)
    lock = RunDir.open(path).lock()
    study = study_of(lock, "")
    assert same_study(lock, study)
    check_same_study(lock, study, path)
    for key, value in (
        ("contenders", study.contenders[::-1]),
        ("contenders", study.contenders[:1]),
        ("machine", "another"),
        ("machine_settings", study.machine_settings | {"memory": "3G"}),
        ("settle", msgspec.structs.replace(study.settle, seconds=77)),
        ("blocks", msgspec.structs.replace(study.blocks, max=9, fixed=9)),
        ("about", msgspec.structs.replace(study.about, alpha=0.01)),
        ("steps", study.steps[:-1]),
    ):
        other = msgspec.structs.replace(study, **{key: value})
        assert not same_study(lock, other), key
        with pytest.raises(InputError):
            check_same_study(lock, other, path)
        swapped = msgspec.structs.replace(lock, contenders=lock.contenders[::-1], kernels=lock.kernels[::-1])
        assert differences(lock, swapped) and protocol_differences(lock, swapped)


@pytest.mark.parametrize(
    ("began", "machine", "stated", "same"),
    [
        (20, "", None, True),
        (1, "", None, True),
        (1, "scheduling = true", None, True),
        (1, "scheduling = true", 20, True),
        (1, "", 20, False),
        (20, "", 1, False),
        (9, "", None, False),
    ],
)
def test_an_exact_run_goes_on_with_the_usual_number_of_blocks_that_it_began_with(
    unpack: Callable[[str], Path], began: int, machine: str, stated: int | None, same: bool
):
    """The usual number has changed, and not the runs that have it."""
    lock = RunDir.open(unpack("icount")).lock()
    text = f"""
[study]
name = "x"
[machine]
kind = "icount"
{machine}
[blocks]
{"" if stated is None else f"max = {stated}"}
[[contender]]
kernel = ["one", "two"]
[[benchmark]]
use = "tasks"
speed = 36
mix = "audio"
"""
    study = assemble(parse_study(text, "x.toml"), text, "x.toml")
    begun = msgspec.structs.replace(lock, blocks=msgspec.structs.replace(lock.blocks, max=began, fixed=None))
    assert ("study.max" not in [name for name, *_ in study_differences(begun, study)]) is same


def changed(lock: Lock, **facts: Any) -> Lock:
    """The lock with some of the machine's facts replaced."""
    machine = msgspec.structs.replace(lock.machine, facts=lock.machine.facts | facts)
    return msgspec.structs.replace(lock, machine=machine)


def test_each_fact_that_differs_is_named(unpack: Callable[[str], Path]):
    path = unpack("qemu")
    lock = RunDir.open(path).lock()
    with pytest.raises(InputError) as caught:
        check_same_run(lock, changed(lock, qemu="9.1.0", pinned=[1]), path)
    assert (
        "machine.facts.qemu: 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3) in the run, 9.1.0 now" in caught.value.message
    )
    assert "machine.facts.pinned: [0,1] in the run, [1] now" in caught.value.message
    settings = msgspec.structs.replace(lock, machine=msgspec.structs.replace(lock.machine, settings={"memory": "1G"}))
    with pytest.raises(InputError, match=r"machine\.settings\.memory: 512M in the run, 1G now"):
        check_same_run(lock, settings, path)


@pytest.mark.slow
def test_each_output_is_parsed_once_by_the_runner(output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And once by the report, which reads raw files only."""
    parsed: list[Path] = []
    parse = collect.parse_step

    def count(directory: Path, *rest: Any) -> dict[str, float]:
        parsed.append(directory)
        return parse(directory, *rest)

    monkeypatch.setattr(collect, "parse_step", count)
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace("./old/bzImage", "outside:old").replace("new/bzImage", "outside:new"))
    monkeypatch.chdir(tmp_path)
    output("run", study, "--out", tmp_path / "run", "--quiet")
    by_runner = [path for path in parsed if path.parent.name.startswith(".new-")]
    assert len(by_runner) == 4 and len(set(by_runner)) == 4
    assert len(parsed) == 8


def test_an_interrupted_runner_leaves_nothing_half_written(
    unpack: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes between the making of a trial's directory and the boot."""
    from kduel.core.progress import Progress
    from kduel.run import runner

    run = RunDir.open(shutil.copytree(unpack("qemu"), tmp_path / "run"))

    def interrupted(*_: object, **__: object) -> None:
        assert run.stage().is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "make_trials", interrupted)
    monkeypatch.setattr(runner, "open_run", lambda *_, **__: run)
    nothing: Any = None
    with pytest.raises(KeyboardInterrupt):
        runner.run_study(nothing, run.path, origin="", seed=0, progress=Progress(), watch=nothing)
    assert not list(run.trials.glob(".new-*"))


def test_of_long_values_the_words_that_differ_are_named() -> None:
    """Cut at the same length, the values of two processors with many features looked alike."""
    features = ",".join(f"-feature{number}" for number in range(20))
    found = [("machine.facts.cpu", f"max,{features},-rdrand", f"max,{features},-la57,-avx2")]
    assert (
        differences_text(found, ("in the run", "now"))
        == "  machine.facts.cpu: -rdrand only in the run; -la57, -avx2 only now"
    )
    assert differences_text([("a", "x" * 80, "x,y" * 3)], ("in the run", "now")).startswith("  a: " + "x" * 50)
