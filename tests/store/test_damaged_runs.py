"""Every file of a run, damaged in every way: each command that reads a run ends in a result or in an error that names
the file, never in a traceback. One damage at a time, so that the file named is the file damaged."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kduel.cli import kduel as command
from kduel.core.errors import KduelError

READERS = ("report", "report-json", "diff", "verify", "history", "boot", "plan", "resume", "explain", "sizes")
WORDS = {
    "report-json": ("report", "--format", "json"),
    "resume": ("resume", "--offline", "--quiet"),
    "boot": ("report", "--boot"),
    "history": ("query", "--history"),
    "explain": ("explain", "--offline", "--benchmark", "pipe"),
}

WRONG = (None, "x", -1, 10**30, [], {}, True)
"""Values for a key; one key gets every second of them, and the next key the others."""


def damages(data: bytes, name: str, draw: random.Random) -> Iterator[tuple[str, bytes | None]]:
    """A file's content after each damage; None for a file that is gone."""
    yield "missing", None
    yield "empty", b""
    yield "cut", data[: len(data) // 2]
    yield "binary", bytes(draw.randrange(256) for _ in range(200))
    yield "null", b"null"
    yield "list", b"[]\n"
    yield "object", b"{}\n"
    yield "deep", b"[" * 100_000
    yield "number", b"9" * 5_000 + b"\n"
    if name.endswith(".json"):
        found = json.loads(data)
        for number, key in enumerate(found):
            for wrong in WRONG[number % 2 :: 2]:
                yield f"{key} = {wrong!r:.20}", json.dumps(found | {key: wrong}).encode()
            yield f"no {key}", json.dumps({k: v for k, v in found.items() if k != key}).encode()


def ended_well(words: tuple[object, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """How a command ended: `ok`, `changed`, or the message of an error that it means to give."""
    try:
        command.main([*map(str, words)], standalone_mode=False)
    except KduelError as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - a traceback is what this looks for
        return f"TRACEBACK {type(error).__name__}: {error}"
    finally:
        capsys.readouterr()
    return "ok"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["lock.json", "plan.jsonl", "study.toml", "trial", "environment", "exit", "stdout", "manifest"]
)
def test_one_damaged_file_is_an_error_that_names_it_or_does_no_harm(
    unpack: Callable[[str], Path], outside: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys, name: str
):
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    run = unpack("icount")
    trial = min((run / "trials").iterdir())
    path = {
        "trial": trial / "trial.json",
        "environment": trial / "environment.json",
        "exit": min(trial.glob("[0-9]*")) / "exit.json",
        "stdout": min(trial.glob("[0-9]*")) / "stdout",
        "manifest": trial / "manifest.sha256",
    }.get(name, run / name)
    data = path.read_bytes() if path.is_file() else b"x"
    draw = random.Random(17)
    every = list(damages(data, path.name, draw))
    tried = 0
    for what, damaged in [*every, ("directory", None)]:
        path.unlink(missing_ok=True)
        if what == "directory":
            path.mkdir()
        elif damaged is not None:
            path.write_bytes(damaged)
        # Every command for the plain damages; for wrong values of single keys, in turn.
        readers = READERS if " " not in what else (READERS[tried % len(READERS)],)
        for reader in readers:
            ended = ended_well((*WORDS.get(reader, (reader,)), run), capsys)
            assert "TRACEBACK" not in ended, f"{reader} with {name} {what}: {ended}"
            tried += 1
        if path.is_dir():
            shutil.rmtree(path)
    assert tried > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "lock.json",
        "study.toml",
        "plan.jsonl",
        "results.json",
        "*/trial.json",
        "*/manifest.sha256",
        "*/*/stdout",
        "*/console.log",
    ],
)
def test_a_sparse_file_of_any_size_is_not_read_whole(
    unpack: Callable[[str], Path], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A tebibyte of zeros takes a few bytes of an archive."""
    run = unpack("icount")
    path = next(iter((run / "trials").glob(name))) if "/" in name else run / name
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    for words in (("report",), ("report", "--format", "json"), ("verify",), ("status",)):
        said = ended_well((*words, run), capsys)
        assert "TRACEBACK" not in said, (words, said)
        assert said == "ok" or path.name in said or words == ("verify",), (words, said)


FORGED = "x\nkduel: nothing was changed"


def forge(run: Path, what: str) -> None:
    """Put a line of our own into a name of the run."""
    trial = min((run / "trials").iterdir())
    path, key = {"plan": (run / "plan.jsonl", "contender"), "lock": (run / "lock.json", "kduel")}.get(
        what, (trial / "trial.json", what)
    )
    if what == "directory":
        trial.rename(trial.with_name(FORGED))
    elif what == "plan":
        first, *rest = path.read_text().splitlines()
        path.write_text("\n".join([json.dumps(json.loads(first) | {key: FORGED}), *rest]))
    elif what in ("name", "label"):
        found = json.loads((run / "lock.json").read_text())
        found["contenders" if what == "name" else "steps"][0][what] = FORGED
        (run / "lock.json").write_text(json.dumps(found))
    else:
        found = json.loads(path.read_text()) | {key: FORGED} | ({"schema": 77} if what == "lock" else {})
        path.write_text(json.dumps(found))


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["id", "contender", "member", "status", "started\n", "lock", "name", "label", "plan", "directory"]
)
def test_a_name_in_a_run_cannot_forge_a_line(
    unpack: Callable[[str], Path], capsys: pytest.CaptureFixture[str], what: str
) -> None:
    run = unpack("icount")
    forge(run, what)
    said = ""
    for words in (("report",), ("diff",), ("verify",), ("status",), ("resume", "--offline")):
        with contextlib.suppress(KduelError, SystemExit):
            command.main([*words, str(run)], standalone_mode=False)
        shown = capsys.readouterr().out
        message = ended_well((*words, run), capsys)
        assert "TRACEBACK" not in message and "\nkduel: nothing" not in shown + message, (words, shown, message)
        said += shown + message
    assert "nothing was changed" in said or what == "started\n", said
