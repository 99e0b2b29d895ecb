"""What -o and --plot name is written, and never in place of what a command reads or a run keeps."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

Kduel = Callable[..., "CompletedProcess[str]"]
CSV = "contender,trial,benchmark,metric,unit,better,value\n" + "".join(
    f"{name},{trial},b,m,s,lower,{10 + trial % 3}\n" for name in ("old", "new") for trial in range(1, 9)
)


@pytest.fixture
def place(
    kduel: Kduel, unpack: Callable[[str], Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A directory with the run `run`, the import `import`, an index of both and the file my.csv: a copy for each test."""
    made = tmp_path_factory.getbasetemp() / "place"
    if not made.exists():
        new = tmp_path / "new"
        shutil.copytree(unpack("icount"), new / "run")
        (new / "my.csv").write_text(CSV)
        assert kduel("import", "my.csv", "--out", "import", cwd=new).returncode == 0
        assert kduel("query", "--update", ".", cwd=new).returncode == 0
        new.replace(made)
    return shutil.copytree(made, tmp_path / "place", dirs_exist_ok=True)


@pytest.mark.slow
def test_an_index_in_a_run_changes_no_run(kduel: Kduel, place: Path) -> None:
    """A run is a directory of runs, too: "restore it from a copy" was said of it then."""
    found = []
    for name in ("run", "import"):
        found.append(kduel("verify", name, cwd=place).stdout)
        assert kduel("query", "--update", ".", cwd=place / name).returncode == 0
        assert (place / name / "kduel-index.sqlite").is_file()
        found.append(kduel("verify", name, cwd=place).stdout)
    assert found[0] == found[1] and found[2] == found[3], found


def contents(place: Path) -> dict[Path, bytes]:
    """Every file below, with what is in it."""
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def refused(kduel: Kduel, place: Path, *words: str) -> str:
    """What a command says that is wrong use, and changes no file."""
    before = contents(place)
    done = kduel(*words, cwd=place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert contents(place) == before
    return done.stderr


INPUTS = [
    ("report my.csv -f markdown", "my.csv"),
    ("report my.csv -f markdown", "link.csv"),
    ("report my.csv -f markdown", "hard.csv"),
    ("plan my.csv", "my.csv"),
    ("verify run --against my.csv", "my.csv"),
    ("diff run import --claims my.csv", "my.csv"),
    ("explain my.csv my.csv -b pipe", "my.csv"),
    ("query kduel-index.sqlite runs", "kduel-index.sqlite"),
    ("query . runs", "kduel-index.sqlite"),
    ("history . --index", "kduel-index.sqlite"),
    ("bundle ./my.csv,cmdline=quiet ./other --offline", "my.csv"),
    ("bundle other.deb,my.csv ./other --offline", "my.csv"),
    ("bundle git:other,config=my.csv ./other --offline", "my.csv"),
    ("bundle git:other,config=my.csv+guest ./other --offline", "my.csv"),
    ("bundle debian:6.1 debian:6.12 --machine board:my.csv,cpus=2 --offline", "my.csv"),
    *(
        (f"bundle {name}.toml --offline", "my.csv")
        for name in ("kernel", "board", "files", "factor", "levels", "ssh")
    ),
]
STUDIES = {
    "kernel": '[[contender]]\nkernel = ["debian:6.1", "./my.csv"]\n',
    "board": '[machine]\nkind = "board"\nplace = "my.csv"\n',
    "ssh": '[machine]\nkind = "ssh"\nidentity = "my.csv"\n',
    "files": '[[benchmark]]\nuse = "command"\nfiles = { "my.csv" = "0" }\n',
    "factor": '[[factor]]\nname = "kernel"\nlevels = ["debian:6.1", "./my.csv"]\n',
    "levels": '[[factor]]\nname = "built"\nlevels = { old = { kernel = "git:x,config=my.csv" } }\n',
    "tree": '[[contender]]\nkernel = "tree:linux"\n',
    "modules": '[[contender]]\nkernel = "bzImage"\nmodules = "linux"\n',
}
"""By name, the table of a study that names something to be read."""


@pytest.mark.slow
@pytest.mark.parametrize(("words", "output"), INPUTS)
def test_an_input_is_not_overwritten(kduel: Kduel, place: Path, words: str, output: str) -> None:
    (place / "link.csv").symlink_to("my.csv")
    os.link(place / "my.csv", place / "hard.csv")
    for name, table in STUDIES.items():
        (place / f"{name}.toml").write_text(table)
    said = refused(kduel, place, *words.split(), "-o", output)
    assert f"{output} is what this command reads" in said and "Give another --output." in said


TREES = [
    ("sizes tree:linux tree:other", "linux/vmlinux"),
    ("sizes tree:other tree:linux --by symbol", "linux/arch/boot/bzImage"),
    ("sizes tree:other tree:link", "linux/vmlinux"),
    ("sizes tree:linux tree:other", "link/vmlinux"),
    ("sizes tree:~/linux tree:other", "linux/vmlinux"),
    ("explain git:linux#v1,config=defconfig git:linux#v2 -b pipe", "linux/fork.c"),
    ("bundle ./my.csv,modules=linux ./other --offline", "linux/vmlinux"),
    ("bundle ./my.csv,modules=root ./other --offline", "root/lib/modules/m.ko"),
    ("bundle tree.toml --offline", "linux/vmlinux"),
    ("bundle modules.toml --offline", "linux/vmlinux"),
]


@pytest.fixture
def linux(place: Path, environment: dict[str, str]) -> Path:
    """A tree of a kernel, with a link to it, in what is the home directory, too; and studies that name it."""
    kernels = ("linux/vmlinux", "linux/fork.c", "linux/arch/boot/bzImage", "root/lib/modules/m.ko")
    for name in (*kernels, "root/mine", "linux/before.svg"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("a kernel's")
    (place / "link").symlink_to("linux")
    for name, table in STUDIES.items():
        (place / f"{name}.toml").write_text(table)
    environment["HOME"] = str(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("words", "output"), TREES)
def test_no_file_of_a_kernels_tree_is_overwritten(kduel: Kduel, linux: Path, words: str, output: str) -> None:
    said = refused(kduel, linux, *words.split(), "-o", output)
    assert f"{output} is in " in said and "which this command reads" in said
    assert "Remove it if it is no part of that, or give another --output." in " ".join(said.split())


def test_a_tree_in_shared_memory_is_one_too(kduel: Kduel, linux: Path) -> None:
    with TemporaryDirectory(dir="/dev/shm") as place:
        (tree := Path(place) / "linux").mkdir()
        (tree / "vmlinux").write_text("a kernel's")
        assert "which this command reads" in refused(kduel, linux, "sizes", f"tree:{tree}", "-o", tree / "vmlinux")
        assert (tree / "vmlinux").read_text() == "a kernel's"


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("sizes tree:linux tree:other", "linux/sizes.txt"),  # new, as where a developer works in the tree
        ("sizes tree:linux tree:other", "linux/before.svg"),  # as written by the same command before
        ("explain git:link#v1 git:link#v2 -b pipe", "linux/before.svg"),
        ("sizes tree:linux tree:other", "root/mine"),
        ("bundle ./my.csv,modules=root ./other --offline", "root/mine"),  # root is as installed: lib/modules is read
    ],
)
def test_a_file_that_is_none_of_a_trees_is_no_reason(kduel: Kduel, linux: Path, words: str, output: str) -> None:
    """The command ends where it looks at its kernels, which are none."""
    assert "reads" not in refused(kduel, linux, *words.split(), "-o", output)


@pytest.mark.parametrize(
    "words",
    [
        "calibrate --runs 100 --noise normal -o a.svg --plot a.svg",
        "calibrate --runs 100 --noise normal --plot ./a.svg -o a.svg",
        "calibrate --runs 100 --noise normal -o link.svg --plot real.svg",
        "calibrate --runs 100 --noise normal -o real.svg --plot hard.svg",
        "history . --plot new/../a.svg -o a.svg",
        "explain debian:6.1 debian:6.12 -b pipe -o a.svg --plot a.svg",
    ],
)
def test_two_outputs_are_two_files(kduel: Kduel, place: Path, words: str) -> None:
    (place / "new").mkdir()
    (place / "real.svg").write_text("")
    (place / "link.svg").symlink_to("real.svg")
    os.link(place / "real.svg", place / "hard.svg")
    said = refused(kduel, place, *words.split())
    assert "--output and --plot name one file" in " ".join(said.split())


KEPT = [
    *(
        ("report run -f markdown -o", f"run/{name}")
        for name in ("lock.json", "plan.jsonl", "study.toml", "trials/new", "new.txt", "report", "explain")
    ),
    ("report import -f markdown -o", "import/import.json"),
    ("report import -f markdown -o", "link/import.json"),
    ("report my.csv -f markdown -o", "run/lock.json"),
    ("verify run -o", "run/lock.json"),
    ("verify run -o", "run/results.json"),
    ("report run -f text -o", "run/results.json"),
    ("report import -f json -o", "run/results.json"),
    ("diff run import -o", "run/lock.json"),
    ("sizes run -o", "run/lock.json"),
    ("plan import -o", "import/import.json"),
    ("calibrate import -o", "import/import.json"),
    ("history . -o", "import/imported/01/my.csv"),
    ("history . --plot", "import/imported/01/my.svg"),
    ("bundle --root --offline -o", "run/study.toml"),
    ("index . --rebuild -o", "import/import.json"),
    ("index . -o", "run/trials/index"),
    ("index run -o", "run/index"),
    ("init", "run/my.toml"),
    ("diff run import -o", "import/report"),
    ("report run --figures", "run/trials/figures"),
    ("report my.csv --figures", "run/figures"),
    ("site . -o", "run/trials"),
    ("import my.csv --out", "run/trials/import"),
    ("import my.csv --out", "run/sub"),
    ("run debian:6.1 debian:6.12 --out", "run/sub"),
    ("merge run import --out", "run/both"),
    ("merge run import --out", "run/report/both"),
    ("merge run run --out", "run/runs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "output"), KEPT)
def test_what_a_run_keeps_is_not_overwritten(kduel: Kduel, place: Path, words: str, output: str) -> None:
    (place / "link").symlink_to("import")
    said = refused(kduel, place, *words.split(), output)
    run = place / ("run" if output.startswith("run") else "import")
    assert f"{output} would change the run {run}" in said
    assert "outside the run" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "made"), [("report run -f markdown -o", True), ("verify run -o", False), ("merge run run --out", False)]
)
def test_the_place_for_reports_is_named_where_it_is(kduel: Kduel, place: Path, words: str, made: bool) -> None:
    """`kduel report` makes it in the run that it reads; no directory is in one."""
    shutil.rmtree(place / "run/report", ignore_errors=True)
    said = refused(kduel, place, *words.split(), "run/new")
    assert (f"in {place}/run/report." in said) is made
    (place / "run/report").mkdir()
    said = refused(kduel, place, *words.split(), "run/new")
    assert (f"in {place}/run/report." in said) is ("--out" not in words)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("report run -f json", "run/results.json"),
        ("report run -f html", "run/report/other.html"),
        ("report run/../run -f markdown", "run/report/words.md"),
        ("history run", "run/report/words.md"),
        ("report run -f markdown", "run/explain/words.md"),
        ("plan my.csv", "plan"),
        ("query . runs", "runs"),
        ("index .", "kduel-index.sqlite"),
        ("index . --rebuild", "kduel-index.sqlite"),
        ("history .", "words"),
    ],
)
def test_what_is_derived_is_written_and_written_again(kduel: Kduel, place: Path, words: str, output: str) -> None:
    (place / "run/explain").mkdir(exist_ok=True)
    if not words.startswith("report"):
        (place / "run/report").mkdir(exist_ok=True)
    for _ in range(2):
        done = kduel(*words.split(), "-o", output, cwd=place)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (place / output).stat().st_size


@pytest.mark.parametrize("name", ["lock.json", "import.json", "merge.json"])
def test_a_directory_with_a_file_of_such_a_name_is_no_run(kduel: Kduel, place: Path, name: str) -> None:
    (place / "runs").mkdir()
    (place / name).write_text('{"lockfileVersion": 3}')
    done = kduel("report", "my.csv", "-f", "markdown", "-o", "runs/words.md", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "runs/words.md").stat().st_size


def test_standard_output_is_no_file(kduel: Kduel, place: Path) -> None:
    (place / "-").write_text("mine")
    done = kduel("report", "my.csv", "-f", "markdown", "-o", "-", cwd=place)
    assert done.returncode == 0 and "old" in done.stdout
    assert (place / "-").read_text() == "mine"


@pytest.mark.parametrize("words", ["index . -o", "bundle --root --offline -o", "site . -o", "import my.csv --out"])
def test_what_needs_a_name_is_not_written_to_standard_output(kduel: Kduel, place: Path, words: str) -> None:
    assert "needs a name" in refused(kduel, place, *words.split(), "-")
    assert not (place / "-").exists()


def test_a_study_to_start_from_is_printed(kduel: Kduel, place: Path) -> None:
    assert kduel("init", "new.toml", cwd=place).returncode == 0
    printed = kduel("init", "-", cwd=place)
    assert printed.returncode == 0 and printed.stdout == (place / "new.toml").read_text()
    assert not (place / "-").exists()


@pytest.mark.parametrize(
    "words", ["report my.csv -f markdown -o", "index . -o", "bundle --root --offline -o", "init"]
)
def test_a_place_where_no_file_can_be_is_wrong_use(kduel: Kduel, place: Path, words: str) -> None:
    below = kduel(*words.split(), "my.csv/output", cwd=place)
    assert below.returncode == 2 and "my.csv/output cannot be used: Not a directory" in below.stderr
    assert "Give another path." in below.stderr
    absent = kduel(*words.split(), "absent/output", cwd=place)
    assert absent.returncode == 2 and "there is no absent" in absent.stderr
    assert not (place / "absent").exists()


def test_a_fifo_takes_the_report_of_whoever_reads_it_and_of_nobody_else(kduel: Kduel, place: Path) -> None:
    os.mkfifo(place / "fifo")
    alone = kduel("report", "my.csv", "-f", "markdown", "-o", "fifo", cwd=place)
    assert alone.returncode == 2 and "nobody reads the FIFO fifo" in alone.stderr
    with subprocess.Popen(["cat", place / "fifo"], stdout=subprocess.PIPE) as reader:
        while (done := kduel("report", "my.csv", "-f", "markdown", "-o", "fifo", cwd=place)).returncode == 2:
            pass  # It has not opened it yet.
        assert done.returncode == 0, done.stderr
        assert reader.stdout is not None and b"new" in reader.stdout.read()


SIMULATES = ("plan", "--simulate", "--runs", "100", "--noise", "normal", "--effects", "0")


def test_a_place_that_takes_no_file_is_told_before_the_work(kduel: Kduel, place: Path) -> None:
    (place / "pages.svg").mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(place / "socket"))
    assert "socket is no file" in refused(kduel, place, *SIMULATES, "-o", "socket")
    assert "pages.svg is a directory" in refused(kduel, place, *SIMULATES, "--plot", "pages.svg")


@pytest.mark.parametrize("name", ["output", "old"])
def test_a_directory_that_takes_no_file_is_told_before_the_work(kduel: Kduel, place: Path, name: str) -> None:
    """Nothing can be made in /proc/sys/kernel, whoever asks."""
    (place / "closed").symlink_to("/proc/sys/kernel")
    output = "closed/output" if name == "output" else "/proc/version"
    done = kduel("query", "--update", ".", "-o", output, cwd=place)
    assert done.returncode == 3 and f"cannot write {output}: " in done.stderr, done.stderr


@pytest.mark.parametrize("output", ["pages", "/dev/null", "fifo"])
def test_where_no_site_can_be_no_run_is_judged(kduel: Kduel, place: Path, output: str) -> None:
    (place / "kduel-index.sqlite").unlink()
    (place / "pages").mkdir()
    (place / "pages/mine").write_text("mine")
    os.mkfifo(place / "fifo")
    refused(kduel, place, "site", ".", "-o", output)


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/dev/null", "-"])
def test_devices_are_written_to(kduel: Kduel, place: Path, output: str) -> None:
    done = kduel("report", "my.csv", "-f", "markdown", "-o", output, cwd=place)
    assert done.returncode == 0, done.stderr
    assert ("old" in done.stdout) is (output != "/dev/null")
