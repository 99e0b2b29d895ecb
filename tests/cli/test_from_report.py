"""`kduel init --from-report`: mails of the kernel test robot become studies that ask the same question."""

from __future__ import annotations

import os
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.analysis.campaigns.claims import judge_claims, read_claims
from kduel.analysis.campaigns.columns import columns
from kduel.cli.from_report import WRITTEN_BESIDE, asked_of, exact_text, lines_text, study_text
from kduel.cli.init import command
from kduel.cli.run import command as run
from kduel.core.errors import InputError
from kduel.store.imported import Source, bring_in
from kduel.store.imported.robot_mail import RobotReport, read_report
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

FIXTURES = Path(__file__).parents[1] / "store/imported/fixtures"
ASKED: dict[str, dict[str, Any]] = {
    "robot-mail-context-switch.txt": {"use": "kbench", "operation": "pipe", "threaded": True, "primary": ["time"]},
    "robot-mail-brk2-without-tabs.txt": {"use": "kbench", "operation": "brk", "primary": ["time"]},
    "robot-mail-two-tests.txt": {"use": "kbench", "operation": "pwrite-4k", "primary": ["time"]},
    "cases/robot-mail-no-figures.txt": {"use": "kbench", "operation": "sched-yield", "primary": ["time"]},
    "robot-mail-aim9.txt": {"use": "kbench", "operation": "brk", "primary": ["time"]},
    "robot-mail-aim9-three-commits.txt": {"use": "kbench", "operation": "brk", "primary": ["time"]},
    "robot-mail-stress-ng-msg.txt": {"use": "command", "label": "stress-ng-msg", "packages": ["stress-ng"], "time": 2},
    "robot-mail-hackbench-answered.txt": {"use": "hackbench", "groups": 1, "threads": False, "pipe": False},
    "robot-mail-netperf-raw.txt": {"use": "netperf", "test": "tcp_crr", "primary": ["transactions-per-second"]},
    "robot-mail-fio.txt": {
        "use": "fio", "rw": "write", "bs": "4K", "ioengine": "psync", "numjobs": 1, "primary": ["write-iops"]
    },
    "cases/robot-job.yaml": {"use": "netperf", "test": "tcp_crr"},
}  # fmt: skip
"""By file: what the study's [[benchmark]] table holds."""
COMMITS = {
    "robot-mail-context-switch.txt": ("e8f331bcc270354a", "5e963f2bd4654a202a8a05aa3a86cb0300b10e6c"),
    "robot-mail-hackbench-answered.txt": ("d9ad181b93f83b36", "ddb3b1126fe93e8d6e059600488"),
    "robot-mail-netperf-raw.txt": ("0123456789abcdef", "16c610162d1f1c332209de1c91ffb09b659bb65d"),
    "robot-mail-aim9-three-commits.txt": ("fc21959f74bc1138", "cacded5e42b9609b07b22d80c10f0076d439f7d1"),
    "cases/robot-mail-no-figures.txt": (
        "47b8ff194c1fd73d58dc339b597d466fe48c8958~1", "47b8ff194c1fd73d58dc339b597d466fe48c8958"
    ),
    "cases/robot-job.yaml": (
        "a0918006f9284b77397ae4f163f055c3e0f987b2~1", "a0918006f9284b77397ae4f163f055c3e0f987b2"
    ),
}  # fmt: skip
CLAIMED = {
    "robot-mail-context-switch.txt": ("pipe-threaded/time", "lower"),
    "robot-mail-stress-ng-msg.txt": ("stress-ng-msg/operations-per-second", "lower"),
    "robot-mail-hackbench-answered.txt": ("hackbench-1g/time", "higher"),
    "robot-mail-netperf-raw.txt": ("netperf-tcp-crr-loopback/transactions-per-second", "lower"),
    "cases/robot-mail-no-figures.txt": ("sched-yield/time", "higher"),
}


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def init(place: Path, mail: str | Path, *words: str) -> Result:
    arguments = ["--from-report", str(FIXTURES / mail), str(place / "robot.toml"), *words]
    return CliRunner().invoke(command, arguments)


def study_of(text: str) -> Study:
    return assemble(parse_study(text, "robot.toml"), text, "robot.toml")


@pytest.mark.parametrize("mail", ASKED)
def test_a_report_becomes_a_study_of_the_same_question(mail: str, tmp_path: Path) -> None:
    done = init(tmp_path, mail)
    assert done.exit_code == 0, done.exception
    text = (tmp_path / "robot.toml").read_text()
    (table,) = tomllib.loads(text)["benchmark"]
    assert table.items() >= ASKED[mail].items()
    study = study_of(text)
    assert len(study.steps) == 1 and study.steps[0].primary == table["primary"]
    assert max(map(len, text.splitlines())) <= 200
    assert str(tmp_path / "robot.toml") in done.output
    place = read_report(FIXTURES / mail).tree
    assert f"as linux{f' ({place})' if place else ''}: git" in done.output and "robot-reports.md" in done.output
    for file in (tmp_path / f"robot{end}.toml" for end in ("", "-exact", "-lines")):
        assert not file.exists() or "two releases as the contenders' kernel" in file.read_text()


@pytest.mark.parametrize("mail", COMMITS)
def test_the_contenders_are_the_commit_and_its_parent(mail: str, tmp_path: Path) -> None:
    init(tmp_path, mail, "--tree", "my tree")
    kernels = [one.kernel for one in study_of((tmp_path / "robot.toml").read_text()).contenders]
    assert kernels == [f"git:my tree#{commit},config=defconfig+guest" for commit in COMMITS[mail]]


@pytest.mark.parametrize("mail", CLAIMED)
def test_the_claim_is_about_the_studys_own_metric(mail: str, tmp_path: Path) -> None:
    init(tmp_path, mail)
    (claim,) = tomllib.loads((tmp_path / "robot-claims.toml").read_text())["claim"]
    study = study_of((tmp_path / "robot.toml").read_text())
    assert (claim["metric"], claim["side"]) == CLAIMED[mail]
    if study.steps[0].benchmark == "kbench":
        (counted,) = tomllib.loads((tmp_path / "robot-exact-claims.toml").read_text())["claim"]
        left_out = f"{claim['leaves_out']} Instructions are counted: neither waiting nor caches."
        expected = {"metric": claim["metric"].replace("/time", "/instructions"), "leaves_out": left_out}
        assert counted == claim | expected
    assert [claim["before"], claim["after"]] == study.names


@pytest.mark.parametrize(
    ("factor", "standing"), [(0.975, "supported"), (1.0, "not testable"), (1.025, "not testable")]
)
def test_a_run_of_the_study_answers_the_claim(factor: float, standing: str, tmp_path: Path) -> None:
    init(tmp_path, "robot-mail-context-switch.txt")
    values = [5000.0 + step for step in (3, 8, -2, 5, -7, 1, -4, 6, -1, 2)]
    arms: dict[str, list[float]] = {
        "e8f331bcc2": [*values],
        "5e963f2bd4": [factor * value for value in reversed(values)],
    }
    lines = [
        f"{name},{n},pipe-threaded,time,ns,lower,{v}\n" for name, own in arms.items() for n, v in enumerate(own, 1)
    ]
    (tmp_path / "a.csv").write_text("contender,trial,benchmark,metric,unit,better,value\n" + "".join(lines))
    bring_in([Source(tmp_path / "a.csv")], tmp_path / "run")
    (judged,) = judge_claims(read_claims(tmp_path / "robot-claims.toml"), columns([str(tmp_path / "run")]), delta=1.2)
    assert judged.standing == standing, judged
    assert "One task is measured, not 100% at once." in judged.reasons[-1]


MULTI = FIXTURES / "robot-mail-two-tests.txt"


def test_threads_of_the_mail_are_threads_here_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    """A process of one thread takes none of the kernel's paths for shared files."""
    init(tmp_path, "robot-mail-context-switch.txt")
    for name in ("robot", "robot-exact"):
        text = (tmp_path / f"{name}.toml").read_text()
        assert study_of(text).steps[0].parameters["threaded"] is True, name
        said = " ".join(line.removeprefix("# ") for line in text.splitlines())
        assert "In place of mode = thread and nr_task = 100%: 1 task here beside a thread that sleeps." in said
        assert "One task is measured, not 100% at once." in said
        assert "beside a thread" in tomllib.loads(text)["study"]["title"]
    plain = tmp_path / "plain"
    plain.mkdir()
    init(plain, "robot-mail-brk2-without-tabs.txt")
    assert "threaded" not in (plain / "robot-exact.toml").read_text()
    assert (
        "its heap" not in (plain / "robot.toml").read_text() and "by one page" in (plain / "robot.toml").read_text()
    )


def test_other_tests_of_the_mail_are_named_and_can_be_taken(tmp_path: Path) -> None:
    done = init(tmp_path, MULTI)
    assert "another test, 2: 4.6% improvement of unixbench.throughput (test fsbuffer-w, nr_task 100%)" in done.output
    second = tmp_path / "second"
    second.mkdir()
    done = init(second, MULTI, "--test", "2")
    assert done.exit_code == 0, done.exception
    assert "another test, 1: 3.6% improvement of will-it-scale.per_thread_ops" in done.output
    (claim,) = tomllib.loads((second / "robot-claims.toml").read_text())["claim"]
    assert claim["says"] == "4.6% improvement of unixbench.throughput"
    assert (claim["metric"], claim["side"]) == ("pwrite-4k/time", "lower")
    assert not (second / "robot-published").exists() and "not imported" in done.output
    done = init(second, MULTI, "--test", "3")
    assert isinstance(done.exception, InputError) and "2: 4.6% improvement" in done.exception.remedy


def test_each_file_is_named_once_and_there_is_one_answer(tmp_path: Path) -> None:
    done = init(tmp_path, "robot-mail-context-switch.txt")
    assert "Wrote" not in done.stdout and done.stdout.count("The answer") == 1
    assert "Reproduced or not" not in done.output
    assert f"3. The answer: kduel diff {tmp_path}/robot-run --claims {tmp_path}/robot-claims.toml" in done.output


def test_the_page_has_every_test_of_will_it_scale() -> None:
    page = (Path(__file__).parents[2] / "docs/robot-reports.md").read_text()
    assert will_it_scale_table() in page, will_it_scale_table()


def will_it_scale_table() -> str:
    rows = [(name, one, "") if isinstance(one, str) else (name, one["operation"], one["differs"])
            for name, one in KNOWN["will-it-scale"].items()]  # fmt: skip
    lines = [f"| {name} | {operation} | {differs} |".replace("|  |", "| |") for name, operation, differs in rows]
    return "| its test | here | what the test does otherwise |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def test_a_report_without_a_direction_has_no_claim(tmp_path: Path) -> None:
    done = init(tmp_path, "cases/robot-job.yaml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["robot.toml"]
    assert "no claim" in done.output and "has no figures" in done.output
    text = (tmp_path / "robot.toml").read_text()
    assert "netperf-small-threads.yaml" not in text and "cpufreq_governor = performance" in text


def test_a_machine_with_sockets_becomes_nodes_and_tasks_are_scaled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    init(tmp_path, "robot-mail-stress-ng-msg.txt")
    found = tomllib.loads((tmp_path / "robot.toml").read_text())
    assert found["machine"]["topology"] == "2 nodes x 4 cores"
    assert "--msg 8 " in found["benchmark"][0]["command"], "100 % of 8 CPUs"
    (tmp_path / "two").mkdir()
    init(tmp_path / "two", "cases/robot-mail-no-figures.txt")
    assert tomllib.loads((tmp_path / "two/robot.toml").read_text())["machine"]["cpus"] == 8


def test_exact_counts_are_studies_of_their_own(tmp_path: Path) -> None:
    init(tmp_path, "robot-mail-context-switch.txt")
    study = study_of((tmp_path / "robot-lines.toml").read_text())
    assert (study.machine, study.steps[0].label) == ("icount", "pipe-threads")
    study = study_of((tmp_path / "robot-exact.toml").read_text())
    assert (study.machine, study.steps[0].label) == ("icount", "pipe-threaded")
    assert study.steps[0].parameters["mode"] == "exact" and list(study.steps[0].primary) == ["instructions"]


def test_a_huge_page_is_counted_where_the_kernel_has_memory_for_it() -> None:
    for test, memory in (("malloc1", "1024M"), ("mmap1", None)):
        report = RobotReport(commit="a" * 40, testcase="will-it-scale", parameters={"test": test, "mode": "process"})
        text = exact_text(report, asked_of(report, 1), "linux")
        assert study_of(text).steps and tomllib.loads(text)["machine"].get("memory") == memory


KNOWN = tomllib.loads((files("kduel.cli") / "robot_tests.toml").read_text("utf-8"))


@pytest.mark.parametrize("mode", ["thread", "process"])
@pytest.mark.parametrize("suite", KNOWN)
def test_every_known_test_gives_studies_that_can_be_read(suite: str, mode: str) -> None:
    for test in KNOWN[suite]:
        report = RobotReport(commit="a" * 40, testcase=suite, parameters={"test": test, "mode": mode})
        asked = asked_of(report, 1)
        assert study_of(study_text(report, asked, {"cpus": 2}, "linux")).steps
        if "operation" in asked.table:
            assert study_of(lines_text(report, asked, "linux")).steps


def test_iperf3_has_no_more_streams_than_it_takes() -> None:
    report = RobotReport(commit="a" * 40, testcase="netperf", parameters={"test": "TCP_STREAM"})
    assert asked_of(report, 1000).table["streams"] == 128


def test_a_test_to_which_nothing_is_near_is_named(tmp_path: Path) -> None:
    done = init(tmp_path, "cases/robot-mail-sctp.txt")
    assert isinstance(done.exception, InputError) and "SCTP_STREAM" in done.exception.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", WRITTEN_BESIDE)
def test_nothing_is_replaced(end: str, tmp_path: Path) -> None:
    (tmp_path / f"robot{end}").write_text("mine")
    done = init(tmp_path, "robot-mail-context-switch.txt")
    assert isinstance(done.exception, InputError) and f"robot{end}" in done.exception.message
    assert [path.name for path in tmp_path.iterdir()] == [f"robot{end}"]


def test_a_stressor_that_is_shell_is_no_command(tmp_path: Path) -> None:
    mail = tmp_path / "mail.txt"
    text = (FIXTURES / "robot-mail-stress-ng-msg.txt").read_text()
    mail.write_text(text.replace("test: msg", "test: msg;reboot"))
    done = init(tmp_path, mail)
    assert isinstance(done.exception, InputError) and "nothing here is near" in done.exception.message
    assert not (tmp_path / "robot.toml").exists()


def test_a_dry_run_of_the_study_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")
    (tree / "Kconfig").write_text("")
    own = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "1"], ["commit", "-qm", "2", "--allow-empty"]):
        subprocess.run([*own, *words], check=True)
    head = subprocess.run([*own, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    mail = tmp_path / "mail.txt"
    text = (FIXTURES / "cases/robot-mail-no-figures.txt").read_text()
    mail.write_text(text.replace("47b8ff194c1fd73d58dc339b597d466fe48c8958", head))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    assert init(tmp_path, mail).exit_code == 0
    for name in ("robot.toml", "robot-exact.toml", "robot-lines.toml"):
        done = CliRunner().invoke(run, [name, "--dry-run"], catch_exceptions=False)
        assert done.exit_code == 0 and f"{head[:10]}: git:" in done.output, done.output


PIECES = sorted(
    {line for mail in ASKED for line in (FIXTURES / mail).read_text(errors="replace").splitlines()}
    | {
        "parameters:",
        "commit: ",
        "%stddev %change",
        "=" * 20,
        "> > ",
        "±",
        "Content-Type: multipart/mixed; boundary=a",
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=40), st.binary(max_size=20))
def test_a_mangled_mail_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], rest: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "mangled.txt"
    path.write_bytes("\n".join(lines).encode(errors="replace") + rest)
    try:
        report = read_report(path)
    except InputError as error:
        assert error.remedy
    else:
        assert report.commit and report.testcase


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0" * 1000, b"hello\n", b"Subject: x\n\n" + b"> " * 500_000, b"commit: " + b"a" * 1_000_000,
        b"Subject: x\n" + b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(1500)),
        b"suite: x\n" * 20_000, b"%stddev %change\n" * 10_000, b"a/" * 400 + b"a:\n",
    ],
)  # fmt: skip
def test_what_is_no_mail_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "mail").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_report(tmp_path / "mail")
    assert caught.value.remedy
