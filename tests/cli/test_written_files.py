"""What -o and --plot name is written, and never in place of what a command reads or a run keeps."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Kduel = Callable[..., "CompletedProcess[str]"]
CSV = "contender,trial,benchmark,metric,unit,better,value\n" + "".join(
    f"{name},{trial},b,m,s,lower,{10 + trial % 3}\n" for name in ("old", "new") for trial in range(1, 9)
)


@pytest.fixture
def place(kduel: Kduel, unpack: Callable[[str], Path], tmp_path: Path) -> Iterator[Path]:
    """A directory with the run `run`, the import `import`, an index of both and the file my.csv."""
    place = tmp_path / "place"
    shutil.copytree(unpack("icount"), place / "run")
    (place / "my.csv").write_text(CSV)
    assert kduel("import", "my.csv", "--out", "import", cwd=place).returncode == 0
    assert kduel("index", ".", cwd=place).returncode == 0
    return place


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
    ("bundle study.toml --offline", "my.csv"),
]


@pytest.mark.parametrize(("words", "output"), INPUTS)
def test_an_input_is_not_overwritten(kduel: Kduel, place: Path, words: str, output: str) -> None:
    (place / "link.csv").symlink_to("my.csv")
    os.link(place / "my.csv", place / "hard.csv")
    (place / "study.toml").write_text('[[contender]]\nkernel = "./my.csv"\n')
    said = refused(kduel, place, *words.split(), "-o", output)
    assert f"{output} is what this command reads" in said and "Give another --output." in said


KEPT = [
    *(
        ("report run -f markdown -o", f"run/{name}")
        for name in ("lock.json", "plan.jsonl", "study.toml", "trials/new")
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
    ("site . -o", "run/trials"),
    ("import my.csv --out", "run/trials/import"),
    ("merge run run --out", "run/runs"),
]


@pytest.mark.parametrize(("words", "output"), KEPT)
def test_what_a_run_keeps_is_not_overwritten(kduel: Kduel, place: Path, words: str, output: str) -> None:
    (place / "link").symlink_to("import")
    said = refused(kduel, place, *words.split(), output)
    run = place / ("run" if output.startswith("run") else "import")
    assert f"{output} belongs to the run {run}, which would be damaged" in said
    assert f"outside the run, or in {run}/report." in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("report run -f json", "run/results.json"),
        ("report run -f html", "run/report/other.html"),
        ("report run -f markdown", "run/words.md"),
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
    for _ in range(2):
        done = kduel(*words.split(), "-o", output, cwd=place)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (place / output).stat().st_size


def test_a_merged_run_is_in_none_of_its_parts(kduel: Kduel, place: Path) -> None:
    said = refused(kduel, place, "merge", "run", "import", "--out", "run/both")
    assert f"run/both is in the run {place / 'run'}, which this command reads" in said


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


@pytest.mark.parametrize("words", ["report my.csv -f markdown -o", "index . -o", "bundle --root --offline -o"])
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
