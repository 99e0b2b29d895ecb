"""A kernel test robot's report as a study that asks the same question here, and the claim that a run of it tests."""

import os
import re
import shlex
import tomllib
from importlib import resources
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple, get_args

from kduel.benchmarks.stress_ng import Stressor
from kduel.cli.output import STDOUT, emit, write
from kduel.core.errors import InputError
from kduel.core.text import printable
from kduel.guest.topology import parse_topology
from kduel.store.imported import Source, bring_in
from kduel.store.imported.lkp import better_of
from kduel.store.imported.robot_mail import PLUGIN, RobotReport, read_report
from kduel.study.contenders import as_toml
from kduel.study.file import parse_study
from kduel.study.load import assemble

STRESSOR = re.compile(r"[a-z0-9][a-z0-9-]{0,40}", re.ASCII)
COMMAND = (
    "stress-ng --{} {} --timeout 2s --temp-path . --yaml metrics.yaml --metrics-brief >/dev/null && cat metrics.yaml"
)
RATE = (
    '[{ name = "operations-per-second", unit = "ops/s", better = "higher", '
    "regex = '^ {6}bogo-ops-per-second-real-time: ([0-9.]+)$' }]"
)
WRITTEN_BESIDE = ("-claims.toml", "-exact.toml", "-exact-claims.toml", "-lines.toml", "-published")
"""Ends of the names of what is written beside the study."""
OF_THE_QUEUE = frozenset(
    ("suite", "category", "job_origin", "queue", "testbox", "branch", "commit", "job_file", "id", "queuer_version")
)
"""Keys of a job.yaml that say nothing of what was measured."""
NOT_COUNTED = "Instructions are counted: neither waiting nor caches."
WITHOUT_TREE = (
    "Without a tree: two releases as the contenders' kernel and name; docs/robot-reports.md says what that shows."
)
MOST_CPUS = 64
MOST_TASKS = 1000
MOST_STREAMS = 128
"""As many as iperf3 takes."""


class NearestTest(NamedTuple):
    """The [[benchmark]] table of the question, the metric that decides, and how near it is in words."""

    table: dict[str, Any]
    primary: str
    nearness: str
    scale: str
    """How many tasks of what kind there are here, and were there."""
    left_out: str = ""
    """What the report's test has and this has not: what may lie in it is not contradicted here."""


def write_from_report(mail: Path, file: Path, tree: str, test: int = 1) -> None:
    """Write the study of one of the mail's tests; beside it the claim, the published figures, and studies that count a single
    operation of the kernel."""
    whole = read_report(mail)
    tests = [whole, *whole.further]
    if not 1 <= test <= len(tests):
        listed = "; ".join(f"{number}: {one.heading}" for number, one in enumerate(tests, 1))
        raise InputError(
            f"{mail.name} has no test {test}", printable(f"Give --test with a number of: {listed}.")[:1000]
        )
    report = tests[test - 1]
    threads, sockets = size_of(report.machine)
    cpus = max(1, min(os.cpu_count() or 1, MOST_CPUS, threads or MOST_CPUS))
    nodes = min(sockets, cpus)
    machine = {"topology": f"{nodes} nodes x {cpus // nodes} cores"} if nodes > 1 else {"cpus": cpus}
    asked = asked_of(report, tasks_here(report, machine))
    text = study_text(report, asked, machine, tree)
    study = assemble(parse_study(text, file.name), text, file.name)
    if file == STDOUT:
        emit(text)
        return
    base = file.name.removesuffix(".toml")
    claims, exact, exact_claims, lines, published = (file.with_name(f"{base}{end}") for end in WRITTEN_BESIDE)
    run, exact_run = file.with_name(f"{base}-run"), file.with_name(f"{base}-exact-run")
    label = study.steps[0].label
    documents = {file: text}
    if report.side:
        documents[claims] = claim_text(report, f"{label}/{asked.primary}", asked.left_out)
    if asked.table["use"] == "kbench":
        documents[exact] = exact_text(report, asked, tree)
        if report.side:
            left_out = f"{asked.left_out} {NOT_COUNTED}".strip()
            documents[exact_claims] = claim_text(report, f"{label}/instructions", left_out)
        if report.testcase == "will-it-scale":
            documents[lines] = lines_text(report, asked, tree)
    for path in (*documents, published):
        if os.path.lexists(path):
            raise InputError(f"{path} exists already", "Give another name: kduel init --from-report MAIL NAME.toml.")
    imported = test == 1 and bool(report.table.figures)
    if imported:
        bring_in([Source(mail)], published, format_name=PLUGIN.name)
    for path, content in documents.items():
        write(path, content.encode())
    diff = "kduel diff {} --claims {}"
    answer = f"kduel report {shell_word(run)} -f mail. There is no claim: the mail does not say in which direction it went."
    count, counted = f"kduel run {shell_word(exact)} --out {shell_word(exact_run)}", ""
    if report.side:
        answer = diff.format(shell_word(run), shell_word(claims))
        counted = f"; {diff.format(shell_word(exact_run), shell_word(exact_claims))}"
    place = f" ({report.tree})" if report.tree else ""
    steps = [
        f"What differs from the robot's measurement is said in {file}.",
        *(f"The mail names another test, {number}: {one.heading}. Its study: --test {number}"
          for number, one in enumerate(tests, 1) if number != test),
        f"The mail's figures: kduel report {shell_word(published)}" if imported
        else "The mail's figures of this test are not imported." if report.table.figures else "The mail has no figures.",
        f"1. A kernel tree with both commits, as {tree}{place}: git -C {shlex.quote(tree)} cat-file -t {report.commit}",
        f"   {WITHOUT_TREE}",
        f"2. kduel run {shell_word(file)} --out {shell_word(run)}",
        f"3. The answer: {answer}",
        f"   Exact on any host, 2 and 3: {count}{counted}" if exact in documents else "",
        f"   kduel run {shell_word(lines)}, for the cache lines that many tasks share" if lines in documents else "",
    ]  # fmt: skip
    emit("\n".join(filter(None, map(printable, steps))) + "\n")


def shell_word(path: Path) -> str:
    return shlex.quote(str(path))


def size_of(machine: str) -> tuple[int, int]:
    """Number of threads and of sockets of the robot's machine; 0 and 1 where it does not say them."""
    threads, sockets = (
        re.search(r"\b(\d{1,5}) threads", machine),
        re.search(r"\b(\d{1,3}) (?:sockets|nodes)", machine),
    )
    return int(threads[1]) if threads else 0, max(1, int(sockets[1])) if sockets else 1


def tasks_here(report: RobotReport, machine: dict[str, Any]) -> int:
    """Number of tasks that is to this guest's CPUs as the robot's was to its machine's; 1 where it does not say it."""
    cpus = machine.get("cpus") or parse_topology(machine["topology"]).cpus
    given = report.parameters.get("nr_task") or report.parameters.get("nr_threads") or ""
    found = re.fullmatch(r"(\d{1,6})(%?)", given, re.ASCII)
    whole = 100 if found and found[2] else size_of(report.machine)[0]
    return max(1, min(MOST_TASKS, round(int(found[1]) * cpus / whole))) if found and whole else 1


def asked_of(report: RobotReport, tasks: int) -> NearestTest:
    """The benchmark that measures the test here. Raises InputError for a test to which nothing is near."""
    facts, suite = report.parameters, report.testcase
    test = facts.get("test", "all")
    if test == "all" and report.metric.count(".") == 2:
        test = report.metric.split(".")[1]
    known = tomllib.loads((resources.files("kduel.cli") / "robot_tests.toml").read_text("utf-8")).get(suite, {})
    near_to = known.get(test) or known.get(test.rstrip("0123456789"), "")
    operation = near_to if isinstance(near_to, str) else near_to["operation"]
    many = f"{tasks} {'task' if tasks == 1 else 'tasks'} here, to this guest's CPUs as many as there"
    table: dict[str, Any] = {}
    if operation == "sysbench-cpu":
        near = f"{test} stays in user space, and so does sysbench's calculation of primes, {tasks} threads."
        return NearestTest({"use": operation, "threads": tasks}, "events-per-second", near, many)
    if operation:
        near = f"{suite}'s {test} is measured by its nearest operation, kbench's {operation}."
        differs = "" if isinstance(near_to, str) else near_to["differs"]
        return kbench_asked(report, operation, near, differs)
    if suite == "stress-ng" and STRESSOR.fullmatch(test):
        near = f"stress-ng itself, {tasks} instances. One operation differs between its versions, and so do figures."
        table = {"use": "stress-ng", "stressor": test, "instances": tasks}
        if test not in get_args(Stressor):
            table = {"use": "command", "label": f"stress-ng-{test}", "command": COMMAND.format(test, tasks)}
            table |= {"packages": ["stress-ng"], "metrics": tomllib.loads(f"metrics = {RATE}")["metrics"]}
        return NearestTest(table | {"time": 2}, "operations-per-second", near, many)
    if suite == "hackbench":
        table = {"use": "hackbench", "groups": tasks, "threads": facts.get("mode", "").startswith("thread")}
        near = f"hackbench itself, {tasks} groups: the time of 100 loops in place of a throughput."
        return NearestTest(table | {"pipe": facts.get("ipc") == "pipe"}, "time", near, many)
    if suite == "netperf" and test in ("TCP_RR", "TCP_CRR", "UDP_RR"):
        near = "netperf itself over loopback, one request at a time."
        return NearestTest(
            {"use": "netperf", "test": test.lower()}, "transactions-per-second", near, "1 connection here"
        )
    if suite == "netperf" and test in ("TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE"):
        streams = min(tasks, MOST_STREAMS)
        near = f"netperf's {test} is measured by iperf3's TCP over loopback, {streams} streams."
        return NearestTest({"use": "iperf3", "streams": streams}, "throughput", near, many)
    if suite == "fio-basic" and "rw" in facts:
        return fio_asked(report, tasks, many)
    raise InputError(
        f"nothing here is near to the report's test, {printable(f'{suite}, {test}')[:100]}",
        'Write a study (kduel init) with use = "command" and the program itself; kduel import takes the mail\'s figures.',
    )


def kbench_asked(report: RobotReport, operation: str, near: str, differs: str) -> NearestTest:
    """An operation, once at a time; beside a sleeping thread where the test's tasks are threads, which share files and memory."""
    table: dict[str, Any] = {"use": "kbench", "operation": operation}
    mode, tasks = report.parameters.get("mode", ""), report.parameters.get("nr_task", "")
    scale = "1 task here"
    if report.testcase == "will-it-scale" and mode.startswith("thread"):
        table["threaded"] = True
        scale += " beside a thread that sleeps"
    alone = tasks == "1" or (not tasks and report.testcase != "will-it-scale")
    of_many = "" if alone else f"One task is measured, not {tasks or 'many'} at once."
    return NearestTest(table, "time", near, scale, " ".join(filter(None, (of_many, differs))))


def fio_asked(report: RobotReport, tasks: int, scale: str) -> NearestTest:
    """One pattern of fio on the scratch disk."""
    facts, metric = report.parameters, report.metric
    engine = facts.get("ioengine", "")
    engine = engine if engine in ("sync", "libaio", "io_uring") else "psync"
    table: dict[str, Any] = {"use": "fio", "rw": facts["rw"], "bs": facts.get("bs", "4K").upper(), "ioengine": engine}
    way = "write" if "write" in (metric if facts["rw"].endswith("rw") else facts["rw"]) else "read"
    kind = "latency-p50" if "lat" in metric else "bandwidth" if "bw" in metric else "iops"
    near = f"fio itself with {engine}, {tasks} jobs on files of 64 MiB on the scratch disk."
    table |= {"numjobs": tasks, "direct": facts.get("direct") == "direct"}
    return NearestTest(table, f"{way}-{kind}", near, scale)


def study_text(report: RobotReport, asked: NearestTest, machine: dict[str, Any], tree: str) -> str:
    """The study as TOML, headed by what is the same as in the robot's measurement and what is not."""
    given = ", ".join(f"{key} = {value}" for key, value in report.parameters.items() if key not in OF_THE_QUEUE)
    title = f" ({report.title})" if report.title else ""
    half = round(abs(float(report.change or 2)) / 2, 1)
    lines = [
        f"From the kernel test robot: {report.headline}.",
        f"Commit {report.commit}{title}, against {report.parent}.",
        f"The report has it at {report.tree}" if report.tree else "",
        f"Measured there on {report.machine or 'a machine that the report does not name'}.",
        f"With {given or 'parameters that the report does not name'}"[:1500] + ".",
        "",
        f"Here: {asked.nearness}",
        tasks_text(report, asked),
        f"The machine becomes a guest with {', '.join(f'{key} {value}' for key, value in machine.items())}.",
        "The kernels have the tree's default configuration; the robot's is linked in its mail: config=FILE+guest.",
        "Its governor, compiler, root, disks and file systems are not repeated.",
    ]
    return (
        "".join(map(comment, lines))
        + study_head(report, asked, "", min(5.0, max(0.5, half)), "  # half of the reported change, from 0.5 to 5")
        + contenders_text(report, tree)
        + '\n[machine]\nkind = "qemu"\n'
        + lines_of(machine)
        + f"\n[[benchmark]]\n{lines_of(asked.table | {'primary': [asked.primary]})}"
    )


def exact_text(report: RobotReport, asked: NearestTest, tree: str) -> str:
    """The study of the operation's path length."""
    table = asked.table | {"mode": "exact", "primary": ["instructions"]}
    about = f"The instructions of the operation, counted exactly: no cache misses, no waiting. {tasks_text(report, asked)}"
    # Only kernels with as much memory use huge pages by themselves.
    memory = {"memory": "1024M"} if asked.table["operation"] == "mmap-large" else {}
    return counted_text(report, asked, tree, about, "-exact", {"cpus": 1} | memory, table)


def lines_text(report: RobotReport, asked: NearestTest, tree: str) -> str:
    """The study of the cache lines that two CPUs share in the operation."""
    operation = asked.table["operation"]
    # futex wakes a thread of its own, which takes processes.
    threads = report.parameters.get("mode", "").startswith("thread") and operation != "futex"
    workers = "threads" if threads else "processes"
    table = {"use": "sharing", "operation": operation, "workers": workers, "primary": ["lines"]}
    about = "The cache lines that two CPUs share in the operation, counted exactly: what many tasks at once wait for."
    asked = asked._replace(scale=f"2 {workers} here")
    return counted_text(report, asked, tree, about, "-lines", {"cpus": 2}, table)


def counted_text(
    report: RobotReport,
    asked: NearestTest,
    tree: str,
    about: str,
    end: str,
    machine: dict[str, Any],
    table: dict[str, Any],
) -> str:
    """A study on exact CPUs."""
    return (
        f"{comment(about)}{study_head(report, asked, end, 1.0)}{contenders_text(report, tree)}"
        f'\n[machine]\nkind = "icount"\n{lines_of(machine)}\n[settle]\nmode = "fixed"\nseconds = 3\n\n[blocks]\nmax = 1\n'
        f"\n[[benchmark]]\n{lines_of(table)}"
    )


def tasks_text(report: RobotReport, asked: NearestTest) -> str:
    """Comment on the part of the report's mode and number of tasks that is repeated."""
    given = [
        f"{key} = {report.parameters[key]}" for key in ("mode", "nr_task", "nr_threads") if key in report.parameters
    ]
    there = " and ".join(given) or "a number of tasks that the report does not state"
    return f"In place of {there}: {asked.scale}. {asked.left_out}".strip()


def comment(line: str) -> str:
    return "".join(f"# {part}".rstrip() + "\n" for part in wrap(printable(line), 116) or [""])


def study_head(report: RobotReport, asked: NearestTest, end: str, delta: float, why: str = "") -> str:
    title = printable(f"Does it happen here: {report.headline}? In place of the robot's tasks: {asked.scale}.")[:200]
    return f'\n[study]\nname = "robot-{report.commit[:10]}{end}"\ntitle = {as_toml(title)}\ndelta = {delta}{why}\n'


def contenders_text(report: RobotReport, tree: str) -> str:
    """The parent and the commit, built from a tree that has both."""
    commits = zip(names_of(report), (report.parent, report.commit), strict=True)
    return f"\n# {WITHOUT_TREE}\n" + "".join(
        "\n[[contender]]\n" + lines_of({"name": name, "kernel": f"git:{tree}#{commit},config=defconfig+guest"})
        for name, commit in commits
    )


def names_of(report: RobotReport) -> tuple[str, str]:
    """The contenders' names: the digits of the commits, or the tag that the parent is."""
    return "parent" if "~" in report.parent else report.parent[:10], report.commit[:10]


def lines_of(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {RATE if key == 'metrics' else as_toml(value)}\n" for key, value in table.items())


def claim_text(report: RobotReport, metric: str, left_out: str) -> str:
    """The claim in terms of a study's own metric, `label/name`."""
    better = "lower" if metric.endswith(("/time", "/instructions")) or "latency" in metric else "higher"
    same = better == better_of(report.metric.partition(".")[2])
    side = report.side if same else {"higher": "lower", "lower": "higher"}[report.side]
    before, after = names_of(report)
    table: dict[str, Any] = {"says": printable(report.headline), "metric": metric, "before": before, "after": after}
    table |= {"side": side, "commits": [report.parent, report.commit]}
    table |= {"leaves_out": printable(left_out)} if left_out else {}
    return (
        "# kduel diff RUN --claims FILE: supported is reproduced here; not supported, and contradicted, is not reproduced;\n"
        "# not testable is no answer: other kernels than these commits, or what the robot's test has and this has not.\n"
        f"\n[[claim]]\n{lines_of(table)}"
    )
