"""`kduel run A B` with --command or --benchmark: what the command line names, without a study file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.cli.advice import advise_in_words, as_words
from kduel.cli.own_study import own_study
from kduel.core.errors import InputError
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.steps import read_steps


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench"
    path.write_text('#!/bin/sh\necho "took $1 ms"\n')
    path.chmod(0o755)
    return path


@pytest.mark.slow
def test_a_program_of_this_host_is_brought_along_and_locked(kduel, bench: Path, tmp_path: Path) -> None:
    words = ["run", "outside:old", "outside:new", "--machine", "process", "--blocks", "1", "--out", tmp_path / "run",
             "--command", f"{bench} 7", "--regex", "took ([0-9.]+) ms", "--unit", "ms"]  # fmt: skip
    done = kduel(*words)
    # The machine of the tests brings nothing along: what counts is what it is asked to run.
    lock = json.loads((tmp_path / "run/lock.json").read_text())
    assert lock["study"]["title"] == "bench 7"
    [step] = lock["steps"]
    assert step["parameters"]["command"] == "bench 7"
    assert list(step["parameters"]["files"]) == [str(bench)]
    assert step["parameters"]["metrics"][0]["unit"] == "ms" and step["parameters"]["metrics"][0]["better"] == "lower"
    bench.write_text("#!/bin/sh\necho changed\n")
    again = kduel("resume", tmp_path / "run")
    assert again.returncode == 2 and "is not the file with the SHA-256" in again.stderr, done.stderr + again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["outside:old", "outside:new", "--regex", "x"], "--regex describes what --command prints"),
        (["outside:old", "outside:new", "--command", "true", "--suite", "quick"], "takes the place of a suite"),
        (["study.toml", "--command", "true"], "takes the place of a suite or a study file"),
        (["outside:old", "outside:new", "--command", "echo 'x"], "Check its quotes"),
        (["outside:old", "outside:new", "--command", " "], "command"),
        (["outside:old", "outside:new", "--command", "./nope 7"], "there is no file ./nope"),
        (
            ["outside:old", "outside:new", "--sweep", "sysctl=vm.swappiness=10,20"],
            "--sweep sysctl=vm.swappiness=10,20:",
        ),
        (
            ["outside:old", "outside:new", "--command", "true", "--regex", "no group"],
            "--regex 'no group' has 0 groups",
        ),
        (
            ["outside:old", "outside:new", "--command", "true", "--regex", "a(b)[z-a]"],
            "--regex 'a(b)[z-a]' is no regular expression of RE2 (invalid character class range at character 6: z-a)",
        ),
        (
            ["outside:old", "outside:new", "--command", "true", "--regex", "(a"],
            "--regex '(a' is no regular expression of RE2 (missing ))",
        ),
        (["outside:old", "outside:new", "-b", "redis", "--suite", "quick"], "--benchmark takes the place of a suite"),
        (["outside:old", "outside:new", "-b", "redis", "--command", "true"], "exclude each other"),
        (["outside:old", "outside:new", "-b", "nosuch"], "there is no benchmark 'nosuch'"),
        (["outside:old", "outside:new", "-b", "redis:primary=zzz"], "There are: requests-per-second"),
        (
            ["outside:old", "outside:new", "-b", "redis:primary=request-per-second"],
            "Did you mean requests-per-second?",
        ),
        (
            ["outside:old", "outside:new", "-b", "redis", "--machine", "qemu:llc=2"],
            "--machine: machine qemu: there is no key `llc`",
        ),
        (["debian:6.12", "debian:6.12,slice=3ms", "-b", "kload"], "policy=slice:3ms"),
        (["outside:old", "outside:new", "-b", "unixbench"], "nearest operation of kbench"),
        (["outside:old", "outside:new", "-b", "redis:primary="], "has no metric ''"),
        (["outside:old", "outside:new", "-b", "redis:primary=sched-wakeups"], "redis has no metric 'sched-wakeups'"),
        (["outside:old", "outside:new", "-b", "redis:primary=sched-wakeups"], "NAME:schedstat=true"),
        (["outside:old", "outside:new", "-b", "sharing"], "`operation` is missing; give one of "),
        (
            ["outside:old", "outside:new", "-b", "sharing:operation=pipe"],
            "two CPUs at least: --machine icount:cpus=2",
        ),
        (["outside:old", "outside:new", "-b", "redsi"], "Did you mean redis?"),
        (["outside:old", "outside:new", "-b", "redis:clients=10,clients=20"], "clients is given twice"),
        (["outside:old", "outside:new", "-b", "redis:5"], "'5' has no key"),
        (["outside:old", "outside:new", "-b", "redis:use=fio"], "use is given by the name"),
        (["outside:old", "outside:new", "-b", "pipe:operation=tcp"], "operation is given by the name"),
        (["outside:old", "outside:new", "-b", "redis:clients=[1"], "clients"),
        (["outside:old", "outside:new", "-b", "fio:rw=sideways"], "rw"),
        (["outside:old", "outside:new", "-b", "redis", "-b", "redis"], "label"),
        (["outside:old", "outside:new", "-b", "redis-get", "--machine", "qemu"], "Give --machine icount"),
        (["outside:old", "outside:new", "-b", "kernel-size", "--machine", "qemu"], "takes the machine build"),
        (["study.toml", "-b", "redis"], "--benchmark takes the place of a suite or a study file"),
    ],
)
def test_what_does_not_fit_is_an_error(kduel, words: list[str], said: str) -> None:
    done = kduel("run", *words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "machine", "steps"),
    [
        (["redis"], "qemu", {"redis-get": ["requests-per-second"]}),
        (["redis:primary=*"], "qemu", {"redis-get": ["requests-per-second", "latency-p50", "latency-p99"]}),
        (
            ["fio:rw=randread,time=5", "cyclictest:primary=latency-max"],
            "qemu",
            {"fio-randread-4k-5s": ["read-bandwidth"], "cyclictest-idle-1t": ["latency-max"]},
        ),
        (["pipe"], "qemu", {"pipe": ["time"]}),
        (["pipe:mode=exact"], "icount", {"pipe": ["instructions"]}),
        (["mmap+brk/threads/own"], "icount", {"mmap-against-brk-threads": ["lines"]}),
        (["redis-get", "nginx-new"], "icount", {"redis-get": ["instructions"], "nginx-new": ["instructions"]}),
        (["kernel-size"], "build", {"size": ["compressed"]}),
    ],
)
def test_benchmarks_are_named_with_what_decides(words: list[str], machine: str, steps: dict[str, list[str]]) -> None:
    """An operation or a request has the name by which `kduel explain` knows it, and what counts takes the machine that does."""
    own = own_study(words, None, None, None, None)
    assert own is not None
    file = parse_study(own.text, own.option)
    assert file.machine["kind"] == machine
    found, _ = read_steps(file.benchmark, own.option)
    assert {step.label: step.primary for step in found} == steps


def test_a_dry_run_refuses_what_the_run_would(kduel) -> None:
    done = kduel("run", "outside:old", "outside:new", "--dry-run", "-b", "redis-get", "--machine", "qemu")
    assert done.returncode == 2 and "Give --machine icount" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-b", "redis", "-b", "redis"], "a label of its own: --benchmark NAME:label=LABEL."),
        (["-b", "redis:slices=x"], "Give --benchmark NAME:slices=4, or leave it out."),
        (["-b", "redis:primary=1"], "Give --benchmark NAME, and --benchmark NAME:primary=METRIC."),
        (["-b", "sharing:operation=futex,workers=threads"], "Give futex-wake, or --benchmark NAME:workers=processes and"),
        (["-b", "sharing:operation=page"], "benchmark sharing: operation: 'page' is not possible"),
        (["-b", "mmap/thread"], "Did you mean threads?"),
        (["--suite", "exact-schedulin"], "Did you mean exact-scheduling?"),
        (["-b", "redis:label=a/b"], "Give --benchmark NAME:label=LABEL of at most"),
        (["-b", "redis-get", "--machine", "qemu"], "or --benchmark NAME:mode=time."),
        (["-b", "kernel-size", "--machine", "qemu"], "Give --machine build; or leave the step out."),
    ],
)  # fmt: skip
def test_advice_is_in_the_form_in_which_the_user_writes(kduel, words: list[str], said: str) -> None:
    done = kduel("run", "outside:old", "outside:new", "--dry-run", *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert " = " not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ('write kernel = "installed:RELEASE"; or use boot = "kexec".', "write installed:RELEASE; or use --machine KIND:boot=kexec."),
        ('Give [machine] node = "NAME", or several.', "Give --machine KIND:node=NAME, or several."),
        ('Add scheduler = "scx_...".', "Add KERNEL,scheduler=scx_...."),
        ('Write turns = "off" in [blocks], or give --turns off; or leave it.', "Give --turns off; or leave it."),
        ("Give --blocks 2, or fixed = 2 in [blocks].", "Give --blocks 2."),
        ('write unit = "load" in [blocks].', 'write unit = "load" in [blocks]. That takes a study file: `kduel init` writes one.'),
        ("Allow more, with slices = 4.", "Allow more, with --benchmark NAME:slices=4."),
    ],
)  # fmt: skip
def test_a_setting_is_advised_where_the_command_line_has_it(remedy: str, words: str) -> None:
    assert as_words(remedy) == words


def test_a_benchmarks_advice_is_put_into_words_once(monkeypatch) -> None:
    def refuse(_table: object) -> None:
        raise InputError("it cannot be cut", "Give slices in [blocks].")

    @advise_in_words
    def command(contenders: tuple[str, ...]) -> None:
        own_study(["fio"], None, None, None, None)

    monkeypatch.setattr("kduel.study.steps.expand", refuse)
    with pytest.raises(InputError) as caught:
        command(contenders=("old", "new"))
    assert caught.value.remedy == "Give slices in [blocks]. That takes a study file: `kduel init` writes one."


def test_a_study_file_is_advised_in_toml(kduel, tmp_path: Path) -> None:
    (tmp_path / "twice.toml").write_text(
        '[study]\nname = "a"\n[[contender]]\nkernel = "a"\n[[contender]]\nkernel = "b"\n'
        + 2 * '[[benchmark]]\nuse = "redis"\n'
    )
    done = kduel("run", tmp_path / "twice.toml", "--dry-run")
    assert done.returncode == 2 and 'label = "..."' in done.stderr, done.stderr


SWEEP = ["outside:old", "outside:new", "--dry-run", "-b", "redis:size=10", "--sweep"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["size=1,2"], "--benchmark redis:size=10 and --sweep size=1,2 both give size"),
        (["clients=1,2", "--sweep", "clients=3,4"], "--sweep clients=1,2 and --sweep clients=3,4 vary the same key"),
        (["clients=abc"], "--sweep clients=abc has only the level 'abc'"),
        (["clients=1,2,1"], "--sweep clients=1,2,1 has the level '1' twice"),
        (["clients=1,abc"], "clients=1,abc: abc is no value for it: benchmark redis: clients: this must be a whole number"),
        (["clients=1,0"], "--sweep clients=1,0: 0 is no value for it: benchmark redis: clients: this must be"),
        (["cleints=1,2"], "Did you mean clients?"),
        (["=1,2"], "--sweep =1,2 is no factor"),
        ([""], "--sweep '' is no factor"),
    ],
)  # fmt: skip
def test_a_sweep_that_cannot_be_meant_is_refused_in_its_own_words(kduel, words: list[str], said: str) -> None:
    done = kduel("run", *SWEEP, *words)
    assert done.returncode == 2 and said in done.stderr and "level(s)" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["machine.cpus=2,4,8"], ""),
        (["machine.topology=two-llc,2 nodes x 2 cores"], ""),
        (["machine=2,4"], "--sweep machine=2,4: name the setting of the machine that varies"),
        (["machine.cpu=2,4"], "machine.cpu cannot be a contender's own on the machine qemu"),
        (["machine.cpus=2,4", "--machine", "local"], "machine.cpus cannot be a contender's own on the machine local"),
        (["machine.cpus=2,many"], "cpus=many: machine qemu: cpus: this must be a whole number, and is text"),
        (["machine.cpus=2,4", "--machine", "qemu:topology=smt"], "cpus = 2, and the topology 'smt' has 4"),
        (["machine.topology=smt,flat"], "topology = 'flat' is not understood"),
    ],
)
def test_settings_of_the_machine_vary_where_it_has_them(kduel, words: list[str], said: str) -> None:
    done = kduel("run", "outside:old", "--dry-run", "-b", "redis", "--sweep", *words)
    assert done.returncode == (2 if said else 0) and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("numbers", "said"),
    [("4,8,16", ""), ("3,6", ""), ("2,3", "2, 3 CPUs cannot all have one speed"), ("1,2", "scheduling takes two CPUs at least")],
)  # fmt: skip
def test_exact_cpus_vary_where_all_can_have_one_speed(kduel, numbers: str, said: str) -> None:
    words = ["-b", "wakeup", "--machine", "icount:cpus=2,scheduling=true", "--sweep", f"machine.cpus={numbers}"]
    done = kduel("run", "outside:old", "--dry-run", *words)
    assert done.returncode == (2 if said else 0) and said in done.stderr, done.stderr


def test_one_exact_cpu_is_not_compared_with_several(kduel) -> None:
    words = ["-b", "sharing:operation=read", "--machine", "icount:cpus=2", "--sweep", "machine.cpus=1,2"]
    done = kduel("run", "outside:old", "--dry-run", *words)
    assert done.returncode == 2 and "one CPU counts instructions" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["a:x", "b:x", "-b", "hackbench:pipe=true"], "hackbench-10g-pipe-a-x-vs-b-x"),
        (["a:x", "b:x", "-b", "hackbench:groups=1"], "hackbench-1g-a-x-vs-b-x"),
        (["a:x", "b:x", "-b", "hackbench"], "hackbench-a-x-vs-b-x"),
        (["a:x", "-b", "hackbench", "--sweep"], "hackbench-a-x"),
        ([f"a:{46 * 'x'}", f"b:{42 * 'y'}", "-b", "hackbench"], f"hackbench-a-{46 * 'x'}"),
    ],
)
def test_a_runs_own_directory_names_what_differs(words: list[str], name: str) -> None:
    from kduel.cli.execute import default_out
    from kduel.study.load import assemble

    contenders = words[: words.index("-b")]
    own = own_study([words[words.index("-b") + 1]], None, None, None, None)
    assert own is not None
    text = own.text + contender_tables(contenders, False)
    if "--sweep" in words:
        text += '[[factor]]\nname = "machine.cpus"\nlevels = [2, 4, 8, 16]\n'
    study = assemble(parse_study(text, "own"), text, "own")
    assert default_out(study).name == name


@pytest.mark.parametrize("words", ["", ":size=1"])
def test_a_benchmark_without_a_name_is_told_so(kduel, words: str) -> None:
    done = kduel("run", *SWEEP[:3], "-b", words)
    assert done.returncode == 2 and f"--benchmark {words!r} names no benchmark" in done.stderr, done.stderr


def test_one_kernel_is_enough_for_a_sweep_over_a_key_of_contenders(kduel) -> None:
    """`kduel run debian:6.12 --sweep policy=...` asked for a second kernel, though the policies are the contenders."""
    taken = kduel("run", "outside:old", "--dry-run", "-b", "redis", "--sweep", "policy=other,fifo:50")
    assert taken.returncode == 0 and "2 contenders" in taken.stdout and "policy=fifo:50" in taken.stdout, taken.stderr
    refused = kduel("run", "outside:old", "--dry-run", "-b", "redis", "--sweep", "clients=1,2")
    assert refused.returncode == 2 and "outside-old is one contender; a comparison needs two" in refused.stderr
    assert "`kduel run debian:6.12 --sweep policy=other,fifo:50`" in refused.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two-llc", "Did you mean the study studies/two-llc.toml?"),
        ("studies/two-llc", "Did you mean the study studies/two-llc.toml?"),
        ("two-llc.toml", "Did you mean studies/two-llc.toml?"),
        ("studies/two_llc.toml", "Did you mean studies/two-llc.toml?"),
        ("nothing.toml", "Name a study file;"),
    ],
)
def test_a_study_without_its_folder_or_ending_is_named(kduel, name: str, said: str) -> None:
    done = kduel("run", name, "--dry-run")
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_sweep_varies_what_a_command_leaves_open(kduel) -> None:
    refused = kduel("run", *SWEEP[:3], "--command", "job", "--sweep", "command=a,b")
    assert refused.returncode == 2 and "--command and --sweep command=a,b both give command" in refused.stderr
    taken = kduel("run", *SWEEP, "clients=1,2")
    assert taken.returncode == 0 and "2 steps of a trial" in taken.stdout, taken.stderr
