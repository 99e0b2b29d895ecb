"""What the commands about many runs write: files that appear whole or not at all, and no file of others is touched."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_runs import make_run

from kduel.analysis.campaigns.history import runs_below
from kduel.cli import kduel
from kduel.core.errors import HostError, InputError
from kduel.report.site.write import MARK


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    place = tmp_path / "runs"
    for day in (1, 2):
        make_run(place / f"day{day}", seed=day, day=day, blocks=4, most=4)
    return place


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A full disk of 64 KiB with room for names."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", disk], check=True)
    try:
        with (disk / "filler").open("wb", buffering=0) as stream, pytest.raises(OSError, match="No space"):
            while stream.write(bytes(4096)):
                pass
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def call(*arguments: object) -> str:
    """What `kduel ARGUMENTS...` prints. Raises what it raises."""
    done = CliRunner().invoke(kduel, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    assert not done.exit_code, done.output
    return done.output


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("query", "--update", "{runs}", "--output", "{disk}/index.sqlite"),
        ("init", "{disk}/study.toml"),
        ("query", "--history", "{runs}", "--plot", "{disk}/plot.svg"),
        ("query", "--history", "{runs}", "--plot", "{disk}/plot.png"),
        ("query", "--history", "{runs}", "--output", "{disk}/history.txt"),
        ("report", "{runs}/day1", "--format", "html", "--output", "{disk}/page.html"),
        ("site", "{runs}", "--output", "{disk}/site"),
    ],
    ids=lambda words: " ".join(words).replace("{runs}", "DIR").replace("{disk}/", ""),
)
def test_a_full_disk_is_an_error_and_leaves_nothing_half_made(
    runs: Path, small_disk: Path, words: tuple[str, ...]
) -> None:
    with pytest.raises(HostError) as raised:
        call(*[word.format(runs=runs, disk=small_disk) for word in words])
    assert "No space" in str(raised.value) or "full" in str(raised.value)
    assert files(small_disk) <= {"filler", "site"}
    assert not (small_disk / "site").exists() or not files(small_disk / "site")


def test_a_plot_that_would_show_nothing_is_refused(runs: Path, tmp_path: Path) -> None:
    """It used to be an empty file, and status 0."""
    for name in ("plot.svg", "plot.png"):
        with pytest.raises(InputError, match="nothing to plot"):
            call("query", "--history", runs / "day1", "--plot", tmp_path / name)
        assert not (tmp_path / name).exists()


def test_raw_files_of_a_run_are_not_searched_for_runs(runs: Path) -> None:
    """Each question to an index of 2,000 runs with 40 trials each took six seconds, as every trial was looked into."""
    raw = min((runs / "day1/trials").iterdir())
    (raw / "lock.json").write_text("{}")
    (runs / "trials").mkdir()
    (runs / "day2").rename(runs / "trials/day2")
    assert sorted(path.relative_to(runs).as_posix() for path in runs_below([runs])) == ["day1", "trials/day2"]


def test_a_run_is_found_once_however_many_links_lead_to_it(runs: Path, tmp_path: Path) -> None:
    (runs / "loop").symlink_to(runs)
    (runs / "again").symlink_to(runs / "day1")
    elsewhere = make_run(tmp_path / "elsewhere", seed=3, day=3, blocks=4, most=4)
    (runs / "linked").symlink_to(elsewhere)
    assert sorted(path.resolve().name for path in runs_below([runs, runs / "loop"])) == ["day1", "day2", "elsewhere"]
    assert "3 runs" in call("query", "--history", runs)
    assert "3 runs; 3 judged" in call("query", "--update", runs, "--quiet")
    assert "3 runs; 0 judged" in call("query", "--update", runs, "--quiet")
    assert "3 runs" in call("site", runs, "--output", tmp_path / "site", "--quiet")


def test_a_site_is_written_anew_and_the_files_of_others_are_kept(runs: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    call("site", runs, "--output", site, "--quiet")
    pages = files(site)
    (site / "CNAME").write_text("example.org")
    (site / "images").mkdir()
    (site / "images/logo.svg").write_text("<svg/>")
    (site / "own.html").write_text("mine")
    (site / "benchmark-of-yesterday.html").write_text("an old page")
    mark = (site / MARK).read_text()
    (site / MARK).write_text(mark.replace('"index.html"', '"index.html", "benchmark-of-yesterday.html"'))
    shutil.rmtree(runs / "day2")
    call("site", runs, "--output", site, "--quiet")
    assert files(site) == pages | {"CNAME", "images", "images/logo.svg", "own.html"}
    assert (site / "own.html").read_text() == "mine" and (site / MARK).read_text() == mark


def test_a_site_replaces_no_page_of_others(runs: Path, tmp_path: Path) -> None:
    for present in ("index.html", "notes.txt"):
        site = tmp_path / present
        site.mkdir()
        (site / present).write_text("mine")
        with pytest.raises(InputError, match="no site of KDuel"):
            call("site", runs, "--output", site, "--quiet")
        assert files(site) == {present}
    site = tmp_path / "site"
    call("site", runs, "--output", site, "--quiet")
    (site / MARK).write_text('{"schema": 1, "kduel": "0.1.0", "pages": []}')
    with pytest.raises(InputError, match="did not write it"):
        call("site", runs, "--output", site, "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize(
    "mark", ["", "{", "[" * 100_000, '{"schema": 2, "kduel": "9", "pages": []}', '{"schema": 1, "pages": [1]}']
)
def test_a_mark_that_is_none_makes_no_site(runs: Path, tmp_path: Path, mark: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / MARK).write_text(mark)
    with pytest.raises(InputError, match="site"):
        call("site", runs, "--output", tmp_path / "site", "--quiet")


def test_a_forged_mark_removes_nothing_elsewhere(runs: Path, tmp_path: Path) -> None:
    site, victim = tmp_path / "site", tmp_path / "victim.html"
    victim.write_text("keep")
    site.mkdir()
    (site / "keep.txt").write_text("keep")
    names = ["../victim.html", str(victim), "keep.txt", "..", "."]
    (site / MARK).write_text(f'{{"schema": 1, "pages": {str(names).replace(chr(39), chr(34))}}}')
    call("site", runs, "--output", site, "--quiet")
    assert victim.read_text() == (site / "keep.txt").read_text() == "keep"


def test_a_link_to_a_site_stays_a_link(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    for _ in range(2):
        call("site", runs, "--output", link, "--quiet")
        assert link.is_symlink() and (tmp_path / "real/index.html").is_file()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real", "runs"]
        assert not [name for name in files(tmp_path / "real") if name.startswith(".")]


@pytest.mark.slow
def test_a_terminal_gets_no_control_characters(runs: Path, tmp_path: Path) -> None:
    """Nor do a file and a pipe: somebody looks at them."""
    call("query", "--update", runs, "--quiet")
    query = [
        sys.executable,
        "-m",
        "kduel",
        "query",
        str(runs),
        "SELECT char(155) || '2J' || char(0) || 'é' AS x",
        "-fcsv",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    assert (
        subprocess.run(query, env=environment, stdout=subprocess.PIPE, check=True).stdout
        == b"x\n\\x9b2J\\x00\xc3\xa9\n"
    )
    ours, theirs = pty.openpty()
    subprocess.run(query, env=environment, stdout=theirs, check=True)
    os.close(theirs)
    assert os.read(ours, 1000).decode() == "x\r\n\\x9b2J\\x00é\r\n"
    os.close(ours)


def test_the_site_does_not_date_imported_results_by_their_import(tmp_path: Path):
    source = tmp_path / "theirs.csv"
    lines = [f"{who},{trial},b,time,s,lower,{100 + trial}" for who in ("old", "new") for trial in range(1, 5)]
    source.write_text("contender,trial,benchmark,metric,unit,better,value\n" + "\n".join(lines) + "\n")
    call("import", source, "--out", tmp_path / "runs" / "theirs")
    call("site", tmp_path / "runs", "--output", tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    assert ">measured (UTC)<" in page and ">unknown<" in page
