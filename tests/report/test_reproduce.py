"""What was measured stands in every format, and the commands that measure it again do so."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import ALL, simulated

from kduel.core.experiment import MachineRecord
from kduel.core.results import Results, StudyResult
from kduel.report import report_format
from kduel.report.content.answer import answer
from kduel.report.content.provenance import provenance
from kduel.report.content.reproduce import here_document, reproduction
from kduel.store.rundir import RunDir
from kduel.study.contenders import contender_tables
from kduel.study.file import suite_text

Kduel = Callable[..., subprocess.CompletedProcess[str]]
COMMIT = "0123456789ab"
RELEASES = {"debian-6.1": "6.1.0-56-amd64", "debian-6.12": "6.12.117+deb13-amd64"}
VERSIONS = {"debian-6.1": "6.1.192-2", "debian-6.12": "6.12.117-1"}
TEXTS = ("text", "mail", "markdown", "latex", "summary", "html")


def measured() -> Results:
    """A run of the suite quick as it is recorded."""
    results = simulated(blocks=4)
    for one in results.contenders:
        release, version = RELEASES[one.name], VERSIONS[one.name]
        package = {"name": f"linux-image-{release}", "version": version}
        one.kernel, one.release, one.cmdline = one.name.replace("-", ":", 1), release, ""
        one.facts = {"provenance": {"exact": f"debian:{version}-generic-amd64", "packages": [package]}}
    kernels = [one.kernel for one in results.contenders]
    results.study = StudyResult(
        name="quick", origin="quick", seed=7, max=20, delta=2.0, kduel=f"0.1.0+g{COMMIT}", checksum="ab" * 32,
        text=suite_text("quick") + contender_tables(kernels, numbered=False),
    )  # fmt: skip
    results.machine = MachineRecord(
        kind="qemu",
        settings={"cpus": 2, "memory": "1024M"},
        facts={"qemu": "7.2.22 (Debian)", "accelerator": "tcg", "cpus": 2, "memory_mib": 1024,
               "host": {"cpu": "AMD EPYC", "kernel": "6.18.44"}},
    )  # fmt: skip
    results.exact = None
    return results


def plain(text: str) -> str:
    """A report without its folds and its format's escapes."""
    return " ".join(
        text.replace("\\allowbreak{}", "").replace("\\", "").replace("{}", "").replace("&#43;", "+").split()
    )


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_says_what_was_measured(name: str) -> None:
    said = plain(report_format(name).render(measured()))
    for fact in (
        *RELEASES.values(),
        *VERSIONS.values(),
        "7.2.22",
        "tcg",
        "AMD EPYC",
        "6.18.44",
        "2026-03-14",
        COMMIT,
    ):
        assert fact in said, fact


@pytest.mark.parametrize("example", sorted(ALL))
def test_it_is_three_lines_of_any_run(example: str) -> None:
    lines = provenance(ALL[example]())
    assert len(lines) == 3 and all(line.isprintable() and "None" not in line for line in lines)


def test_many_contenders_of_one_kernel_are_one_entry() -> None:
    results = measured()
    results.contenders += [
        type(one)(name=f"{one.name} #{number}", kernel=one.kernel, release=one.release, facts=one.facts)
        for number in range(9)
        for one in results.contenders[:1]
    ]
    (kernels, _, _) = provenance(results)
    assert kernels.count("6.1.192-2") == 1 and "and 6 more" in kernels


def words_of(results: Results) -> list[str]:
    """The words of the command that runs it again."""
    found = reproduction(results)
    assert found is not None
    return next(words for words in found.commands if words[:2] == ["./kduel", "run"])


def test_a_suite_is_repeated_with_the_kernels_that_were_measured() -> None:
    results = measured()
    found = reproduction(results)
    assert found is not None and found.study == "" and found.notes == []
    assert found.commands == [
        ["git", "checkout", COMMIT],
        ["./kduel", "run", "debian:6.1.192-2-generic-amd64", "debian:6.12.117-1-generic-amd64", "--suite=quick",
         "--seed=7", "--out=again"],
        ["./kduel", "report", "again", "--format=mail"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: setattr(r.study, "fixed", 3), ["--blocks=3"]),
        (lambda r: setattr(r.study, "max", 40), ["--max-blocks=40"]),
        (lambda r: setattr(r.study, "delta", 2.5), ["--delta=2.5"]),
        (lambda r: r.machine.settings.update(memory="1G"), ["--machine=qemu:memory=1G"]),
        (lambda r: r.machine.settings.update(accel="kvm", cpus=4), ["--machine=qemu:cpus=4,accel=kvm"]),
        (lambda r: setattr(r, "exact", measured()), []),
        (lambda r: setattr(r.study, "turns", 50), []),
        (lambda r: setattr(r.study, "turns", 20), ["--turns=20"]),
        (lambda r: setattr(r.study, "turns", 0), ["--turns=0"]),
        (lambda r: setattr(r.study, "turns", "off"), ["--turns=off"]),
        (lambda r: (setattr(r.study, "turns", "off"), r.machine.facts.update(accelerator="kvm")), []),
    ],
)
def test_options_of_the_command_line_are_kept(change: Callable[[Results], Any], expected: list[str]) -> None:
    results = measured()
    change(results)
    assert words_of(results)[5:-2] == expected


def test_a_kernel_against_itself_is_repeated_as_such() -> None:
    results = measured()
    for number, one in enumerate(results.contenders, 1):
        one.kernel, one.name = "debian:6.1", f"debian-6.1 #{number}"
        one.facts = {"provenance": {"exact": "debian:6.1.192-2-generic-amd64"}}
    results.study.text = suite_text("quick") + contender_tables(["debian:6.1"] * 2, numbered=True)
    assert words_of(results)[2:5] == ["--aa=2", "debian:6.1.192-2-generic-amd64", "--suite=quick"]


def test_a_study_comes_with_its_text_and_the_kernels_that_were_measured() -> None:
    results = measured()
    results.study.text += 'cmdline = "mitigations=off"\n# größer als 1 %\n'
    found = reproduction(results)
    assert found is not None and words_of(results)[2] == "study.toml"
    assert 'kernel = "debian:6.12.117-1-generic-amd64"\ncmdline = "mitigations=off"' in found.study
    assert '"debian:6.12"' not in found.study and found.study.isascii()
    mail = report_format("mail").render(results)
    assert f"\n{here_document(found.study)[0]}\n" in mail
    assert found.study in mail
    assert "kernel = &#34;debian:6.12.117-1-generic-amd64&#34;" in report_format("html").render(results)
    (test,) = {
        json.dumps(one["misc"]["kduel"]["study"])
        for one in json.loads(report_format("kcidb").render(results))["tests"]
    }
    assert json.loads(test) == found.study.splitlines()


def test_what_nobody_else_has_is_named() -> None:
    results = measured()
    results.contenders[1].facts = {"provenance": {"path": "/x", "commit": "cd" * 20, "modified": True}}
    results.study.kduel = f"0.1.0+g{COMMIT}.d01234567"
    found = reproduction(results)
    assert found is not None and len(found.notes) == 2
    assert "which no commit holds" in found.notes[0] and "cdcdcdcdcdcd, with changes" in found.notes[1]
    assert all(len(line) <= 70 for line in found.lines(70) if line.startswith("#"))
    results.study.kduel = "0.1.0"
    assert ["git", "checkout", COMMIT] not in reproduction(results).commands  # type: ignore[union-attr]


@pytest.mark.parametrize("blank", [" ", "\t", "  \t "])
def test_no_line_of_a_study_ends_its_document_in_a_mail(blank: str, tmp_path: Path) -> None:
    results = measured()
    results.study.text = f"# a study\nEND{blank}\ntouch {tmp_path}/harm\n{blank}END_\nEND__\n"
    mail = report_format("mail").render(results)
    start = mail.index("cat >study.toml")
    for text in (mail[start:], "\n".join(line.rstrip() for line in mail[start:].splitlines())):
        block = text[: text.index("  ./kduel run")]
        subprocess.run(["sh", "-c", block], cwd=tmp_path, check=False, capture_output=True)
        assert not (tmp_path / "harm").exists()
        assert f"touch {tmp_path}/harm" in (tmp_path / "study.toml").read_text()


def test_no_text_of_a_run_becomes_a_command(tmp_path: Path) -> None:
    harm = f"touch {tmp_path}/harm"
    results = measured()
    results.study.text = f"# $({harm}) `{harm}`\nEND\n{harm}\nEND_\n{harm}\n\x1b[31m"
    results.machine.settings = {"memory": f"1G;{harm}", "x y": f"$({harm})"}
    results.contenders[0].kernel = results.contenders[0].name = f"a;{harm}\n{harm}"
    results.contenders[0].facts = {"provenance": {"commit": f"$({harm})\n{harm}"}}
    found = reproduction(results)
    assert found is not None
    for name in ("git", "kduel"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    _, _, commands = report_format("mail").render(results).partition("To reproduce, in a checkout of KDuel:\n")
    commands, _, _ = commands.partition("\nChecksum of the run")
    done = subprocess.run(["sh", "-u"], input=commands, cwd=tmp_path, env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, text=True, capture_output=True)  # fmt: skip
    assert done.returncode == 0 and not done.stderr and not (tmp_path / "harm").exists()
    assert (tmp_path / "study.toml").read_text().count(harm) == results.study.text.count(harm)


def test_imported_and_merged_runs_have_no_commands() -> None:
    results = measured()
    results.study.imported, results.study.seed = True, None  # An import states none.
    assert reproduction(results) is None
    results.study.imported, results.study.seed = False, None
    assert reproduction(results) is None and "To reproduce" not in report_format("mail").render(results)


@pytest.mark.slow
def test_the_commands_of_a_mail_measure_again(kduel: Kduel, write_study: Callable[..., Path], environment: dict[str, str], tmp_path: Path) -> None:  # fmt: skip
    first = tmp_path / "first"
    study = write_study(machine="noisy = true")
    study.write_text(study.read_text().replace("[settle]", '# "quoted" \\ and $HOME, ä\n[settle]'))
    assert kduel("run", study, "--delta", "2.5", "--blocks", "2", "--out", first).returncode == 0
    mail = kduel("report", first, "--format", "mail").stdout
    commands = mail.partition("To reproduce, in a checkout of KDuel:\n")[2].partition("\nChecksum of the run")[0]
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "kduel").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kduel "$@"\n')
    (checkout / "kduel").chmod(0o755)
    commands = "\n".join(line for line in commands.splitlines() if not line.startswith("  git checkout"))
    done = subprocess.run(["sh", "-e"], input=commands, cwd=checkout, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    was, now = RunDir.open(first).lock(), RunDir.open(checkout / "again").lock()
    for field in ("seed", "study", "blocks", "settle", "machine", "contenders", "steps"):
        assert getattr(now, field) == getattr(was, field), field
    assert (checkout / "again/plan.jsonl").read_bytes() == (first / "plan.jsonl").read_bytes()


def test_what_was_measured_once_is_measured_again_by_a_command_to_paste() -> None:
    """`the same command with --blocks 10` was no command."""
    results = measured()
    results.study.fixed = 1
    for metric in results.metrics:
        metric.verdict, metric.n = "undecided", 1
    results.trials, results.blocks = results.trials[:2], results.blocks[:1]
    words = answer(results, "'my runs/one'").command.split(" ", 3)
    assert words[:2] == ["kduel", "run"] and "--blocks=10" in words[3] and "--blocks=1 " not in words[3]
    assert shlex.split(" ".join(words))[2] == "my runs/one/study.toml", "the study that lies in the run"
    assert " --out=./../10-blocks" in answer(results, ".").command, "not in the run, to which that would be a change"
    results.trials[0].machine = "rack1"
    assert answer(results, "one").command == "", (
        "a fleet's run has several machines, a merged one no study of its own"
    )
    results.trials[0].machine, results.study.text = "", ""
    assert answer(results, "one").command == "", "nothing is invented where the study is not known"
