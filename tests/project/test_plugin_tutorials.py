"""The tutorials of docs/plugins.md: the package that they make is installed, and each of their commands is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from forked import ForkedKduel
from made_kernels import bzimage

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/plugins.md").read_text("utf-8")
FILES = dict(re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", TEXT, re.DOTALL))
"""The page's files by name."""
COMMANDS = re.findall(r"^    kduel (.*)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def outputs(forked_kduel: ForkedKduel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Standard output of each command of the page, in its order, with the package installed as its pyproject.toml says."""
    place = tmp_path_factory.mktemp("tutorial")
    info = place / "site/kduel_example-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kduel-example\nVersion: 1.0\n")
    groups = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in entries.items())
            for group, entries in groups.items()
        )
    )
    for name, content in FILES.items():
        (place / ("site" if name.endswith(".py") else ".") / name).write_text(content)
    for day, release in (("monday", "6.12.1"), ("tuesday", "6.12.2")):
        (place / "kernels" / day).mkdir(parents=True)
        (place / "kernels" / day / "bzImage").write_bytes(bzimage(release))
    (place / "old.txt").write_text("".join(f"open: {1000 + n * 7 % 5} ns\n" for n in range(12)))
    (place / "new.txt").write_text("".join(f"open: {2000 + n * 3 % 5} ns\n" for n in range(12)))
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}:{place / 'site'}",
        "KDUEL_CACHE": str(place / "cache"),
        "NIGHTLY_KERNELS": str(place / "kernels"),
        "NO_COLOR": "1",
    }

    def call(words: str) -> str:
        done = forked_kduel(shlex.split(words), cwd=place, environment=environment)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    found = {words: call(words) for words in COMMANDS}
    found["both"] = call("report both --format json")
    found["theirs"] = call("report theirs --format json")
    return found


def test_every_kind_has_its_tutorial() -> None:
    groups = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    assert {group.removeprefix("kduel.") for group in groups} == {
        "benchmarks", "findings", "fleets", "imported", "kernels", "machines", "report"
    }  # fmt: skip
    assert {f"{where.partition(':')[0]}.py" for entries in groups.values() for where in entries.values()} <= set(
        FILES
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("benchmarks", "sha256"),
        ("sources", "nightly"),
        ("machines", "process"),
        ("fleets", "pair"),
        ("formats", "one-line"),
    ],
)
def test_a_plug_in_is_listed(outputs: dict[str, str], kind: str, name: str) -> None:
    assert re.search(rf"^ *{name}\b", outputs[f"list {kind}"], re.MULTILINE)


@pytest.mark.slow
def test_benchmark_kernels_machine_and_format_make_a_run(outputs: dict[str, str]) -> None:
    assert re.fullmatch(r"sha256-1m/time: \w+ \(n = 4\)\n", outputs["report pipes --format one-line"])


@pytest.mark.slow
def test_the_fleet_carries_out_the_same_study(outputs: dict[str, str]) -> None:
    results = json.loads(outputs["both"])
    assert {trial["machine"] for trial in results["trials"]} == {"left", "right"}
    assert {trial["status"] for trial in results["trials"]} == {"ok"}


@pytest.mark.slow
def test_the_foreign_format_and_the_finding_work_together(outputs: dict[str, str]) -> None:
    assert outputs["report theirs --format one-line"] == "open/time: slower (n = 12)\n"
    (metric,) = json.loads(outputs["theirs"])["metrics"]
    assert "large-effect" in [warning["code"] for warning in metric["warnings"]]
