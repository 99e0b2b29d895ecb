"""krequest on this host, and requests whose counts are not those of the guest's clock."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.request import SHARES
from kduel.core.cache import Cache
from kduel.guest import programs

REQUEST = benchmark("request")
PARAMETERS = REQUEST.read_parameters({"application": "redis-get", "conditions": 0})


def ask(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "request").write_text("a line\n")
    # No pipe holds it: a command that ends at once is certain to cut it off.
    (tmp_path / "long").write_text("a line\n" * 100_000)
    program = programs.build("krequest", platform.machine(), cache=Cache())
    command = [str(program), "--count", "2", *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def line(samples: list[int]) -> str:
    mean = sum(samples) / len(samples)
    return json.dumps({
        "operation": "request", "mode": "exact", "unit": "instructions", "count": len(samples), "samples": samples,
        "empty": 0, "hops": 1, "region": 1, "median": mean, "mean": mean, "min": min(samples), "max": max(samples),
    })  # fmt: skip


@pytest.mark.slow
def test_a_request_is_answered_by_a_command_or_is_its_run(tmp_path: Path) -> None:
    for words in (("--send", "request", "--command", "cat"), ("--command", "true")):
        told = json.loads(ask(tmp_path, *words).stdout)
        assert (told["count"], len(told["samples"]), told["region"]) == (2, 2, 1)


def test_what_does_not_answer_or_fails_is_an_error(tmp_path: Path) -> None:
    for words, said in (
        (("--send", "request", "--command", "true"), "no answer"),
        (("--send", "long", "--command", "true"), "no answer"),
        (("--command", "false"), "the command failed"),
        (("--port", "1"), "usage"),
    ):
        done = ask(tmp_path, *words)
        assert done.returncode == 1 and said in done.stderr


def test_kernel_and_user_code_are_apart() -> None:
    counts = '{"region":2,"operations":[[9,9],[9,9]]}\n{"region":1,"operations":[[40,970],[42,1088]]}\n'
    raw = Raw(stdout=line([1000, 1120]) + "\n", stderr="", exit_status=0, files={SHARES: counts})
    assert REQUEST.parse(raw, PARAMETERS) == {
        "instructions": 1029,
        "instructions-mean": 1029,
        "instructions-user": 41,
    }


def under(number: int, samples: list[int]) -> str:
    condition = {"number": number, "phase": 0, "times": 1, "environment": 0, "layout": 0, "held": 0, "before": ""}
    return json.dumps(json.loads(line(samples)) | {"condition": condition}) + "\n"


@pytest.mark.parametrize("other", [[1000, 1120], [1003, 1121]])
def test_conditions_may_have_the_same_counts_or_nearly(other: list[int]) -> None:
    """Each is the next one of the plug-in's; counts of another step stand before them."""
    parameters = REQUEST.read_parameters({"application": "redis-get", "conditions": 2})
    counts = [
        [[9, 9]],
        [[40, 970], [42, 1088]],
        [[40, 970 + other[0] - 1000], [42, 1088 + other[1] - 1120]],
        [[8, 8]],
    ]
    text = "".join(json.dumps({"region": 1, "operations": one}) + "\n" for one in counts)
    raw = Raw(stdout=under(0, [1000, 1120]) + under(1, other), stderr="", exit_status=0, files={SHARES: text})
    details = REQUEST.details(raw, parameters).conditions
    assert [*details["instructions"].values()] == [1029, (sum(other) - 62) / 2]


@pytest.mark.parametrize("counted", ["[[40,970],[42,988]]", "[[40,970]]", "[[40,900],[42,1088]]"])
def test_counts_that_are_not_those_of_the_clock_are_refused(counted: str) -> None:
    raw = Raw(
        stdout=line([1000, 1120]) + "\n",
        stderr="",
        exit_status=0,
        files={SHARES: f'{{"region":1,"operations":{counted}}}\n'},
    )
    with pytest.raises(ParseError, match="counted 0 times"):
        REQUEST.parse(raw, PARAMETERS)
