"""Whatever a trial leaves behind, the run goes on, and what was left is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.core.plugins import plugins
from kduel.core.untrusted import MOST_DIGITS, MalformedError, decode, exit_status, whole_number
from kduel.guest.environment import read_environment
from kduel.store.collect import parse_step

STEP = """
[[benchmark]]
use = "command"
label = "attack"
command = '''{}'''
metrics = [{{ name = "x", unit = "1", better = "none", regex = "x=([0-9]+)" }}]
"""
DEEP = "printf '[%.0s' $(seq 100000)"
LONG = "head -c 5000 /dev/zero | tr '\\0' 1"
OUT = '"$KDUEL_STEP/.."'
LOST = {
    "nested": f"{DEEP} >exit.json",
    "digits": f'echo "{{\\"status\\": $({LONG})}}" >exit.json',
    "stateless": "echo '{}' >exit.json",
    "binary": "printf '\\377{' >exit.json",
    "directory": "rm exit.json; mkdir exit.json",
    "stdout": "rm stdout; mkdir stdout",
    "gone": "rm -r ../??-letters-gone",
}
"""By the step that is attacked: what is done in its directory."""
ENVIRONMENT = (
    f"cd {OUT}; rm -r environment; mkdir -p environment/uname environment/config.gz gates/x.before setup/exit.json; "
    f'echo "/proc/meminfo:MemTotal: $({LONG}) kB" >environment/files'
)


def carried_out(kduel, write_study, run: Path, commands: list[str]):
    study = write_study(blocks="fixed = 1")
    texts = json.dumps(["untouched", *LOST])
    text = study.read_text().replace('["hello", "longer"]', texts)
    study.write_text(text + STEP.format("\n".join(["echo x=1", *commands])))
    done = kduel("run", study, "--out", run)
    assert "Traceback" not in done.stderr and "cannot write" not in done.stderr, done.stderr
    return done, [json.loads(path.read_text()) for path in sorted(run.glob("trials/*/trial.json"))]


def test_a_step_that_failed_gives_no_value_though_its_output_has_one(tmp_path: Path) -> None:
    chosen = benchmark("command")
    metric = {"name": "x", "unit": "1", "better": "none", "regex": "x=([0-9]+)"}
    parameters = chosen.read_parameters({"command": "true", "metrics": [metric]})
    (tmp_path / "stdout").write_text("x=7\n")
    (tmp_path / "stderr").write_text("first\nout of memory\n")
    (tmp_path / "exit.json").write_text('{"status": 0}')
    assert parse_step(tmp_path, chosen, parameters) == {"x": 7}
    for status in (1, 124, 255):
        (tmp_path / "exit.json").write_text(f'{{"status": {status}}}')
        with pytest.raises(ParseError, match=f"it ended with status {status}: out of memory"):
            parse_step(tmp_path, chosen, parameters)


@pytest.mark.slow
def test_what_cannot_be_read_gives_no_value_and_all_else_does(kduel, write_study, tmp_path):
    attacks = [f"(cd {OUT}/??-letters-{victim}; {attack})" for victim, attack in LOST.items()]
    done, records = carried_out(kduel, write_study, tmp_path / "run", [*attacks, f"({ENVIRONMENT})"])
    assert done.returncode == 0, done.stderr
    assert len(records) == 2
    for record in records:
        assert set(record["failed_steps"]) == {f"letters-{victim}" for victim in LOST}
        assert (tmp_path / "run/trials" / record["id"] / "guest.sh").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["mkdir -p {0}/x", "ln -s /nowhere/at/all {0}"], ids=["directory", "link"])
def test_a_trial_that_takes_our_names_is_void_and_kept(kduel, write_study, tmp_path, way):
    attacks = [f"(cd {OUT}; {way.format(name)})" for name in ("trial.json", "environment.json")]
    done, records = carried_out(kduel, write_study, tmp_path / "run", attacks)
    assert done.returncode == 1
    assert [record["status"] for record in records] == ["void"]
    void = records[0]["void"]
    assert void["code"] == "broken-envelope"
    assert "trial.json, environment.json" in void["message"] and void["message"] in done.stderr
    (attack,) = (tmp_path / "run/trials" / records[0]["id"]).glob("??-attack/stdout")
    assert attack.read_text() == "x=1\n"


HOSTILE = {
    "deep list": "[" * 100_000,
    "deep table": '{"a":' * 100_000,
    "long number": '{"a": ' + "9" * 5000 + "}",
    "long numbers in known keys": json.dumps(dict.fromkeys(("status", "pages", "kib", "count", "median"), 0)).replace(
        "0", "9" * 400
    ),
    "superscript": "²",
    "no JSON": "\udcff{".encode("utf-8", "surrogateescape").decode("latin-1"),
    "empty": "",
    "a million lines": "1\n" * 1_000_000,
    "digits": "9" * 1_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_parser_gives_a_value_or_raises_anything_else_for(text, tmp_path):
    (tmp_path / "exit.json").write_text('{"status": 0}')
    for name in (
        "stdout",
        "stderr",
        "fio.json",
        "metrics.yaml",
        "turbostat",
        "energy",
        "meminfo",
        "boot-message",
        "killed",
    ):
        (tmp_path / name).write_text(text, "utf-8", errors="replace")
    for name, chosen in plugins("benchmarks").items():
        if name == "command":
            continue
        try:
            parameters = chosen.read_parameters({})
        except Exception:  # noqa: BLE001 - one that has no defaults
            continue
        with pytest.raises(ParseError):
            parse_step(tmp_path, chosen, parameters)


def test_a_parsers_own_fault_costs_its_step_alone(tmp_path):
    class Faulty(type(benchmark("kbench"))):
        def parse(self, raw: Raw, parameters: object) -> dict[str, float]:
            raise AttributeError("'NoneType' object has no attribute 'group'")

    chosen = Faulty()
    for name in ("stdout", "stderr"):
        (tmp_path / name).write_text("")
    (tmp_path / "exit.json").write_text('{"status": 0}')
    with pytest.raises(ParseError, match=r"the parser of kbench failed .*AttributeError"):
        parse_step(tmp_path, chosen, chosen.read_parameters({"operation": "null-call"}))


def test_files_of_a_step_are_read_when_they_are_asked_for(tmp_path):
    for name in ("stdout", "stderr", "perf.data"):
        (tmp_path / name).write_text("text")
    (tmp_path / "exit.json").write_text('{"status": 3}')
    raw = Raw.read(tmp_path, limit=2)
    (tmp_path / "perf.data").write_text("later")
    assert raw.files["perf.data"] == "la" and raw.stdout == "te" and raw.exit_status == 3
    assert list(raw.files) == ["perf.data"] and "fio.json" not in raw.files


@pytest.mark.parametrize("text", ["²", "٣", "1_000", " 1", "1" * 19, "", "+1", "1.0", "0x1"])
def test_a_whole_number_is_plain_and_short(text):
    with pytest.raises(MalformedError):
        whole_number(text)


def test_json_is_bounded_in_depth_digits_and_size(tmp_path):
    assert decode('{"a": [1, 2]}', dict[str, list[int]]) == {"a": [1, 2]}
    for text in ("[" * 2000 + "]" * 2000, "9" * (MOST_DIGITS + 1), '{"a": 1', b"\xff", "1e999"):
        with pytest.raises(MalformedError):
            decode(text, object)
    with pytest.raises(MalformedError, match="bytes of JSON"):
        decode("[1, 2, 3]", list[int], most=5)
    for status in ("-1", "256", "null", "1.5", '"0"'):
        (tmp_path / "exit.json").write_text(f'{{"status": {status}}}')
        with pytest.raises(MalformedError):
            exit_status(tmp_path)


def test_an_environment_of_anything_is_a_table(tmp_path):
    (tmp_path / "config.gz").mkdir()
    (tmp_path / "files").write_bytes(b"/proc/meminfo:MemTotal: " + b"9" * 5000 + b" kB\n/proc/cpuinfo:" + bytes(100))
    (tmp_path / "uname").write_bytes(b"\xff\x1b[2J a b c d")
    assert "memory_kib" not in read_environment(tmp_path)
