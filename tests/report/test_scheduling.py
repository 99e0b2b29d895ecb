"""The scheduler's counters as tables: on the command line, as JSON, and on the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factor_runs import COMMAND, HEAD, JOB, KERNELS, make_factor_run

from kduel.benchmarks.support import delays, schedstat
from kduel.judge.evaluate import judge_run
from kduel.report.content.scheduling import counter_tables, counters_text
from kduel.report.html import PLUGIN as HTML

BEFORE, AFTER = (Path(__file__).parents[1] / "benchmarks/schedstat-6.1.txt").read_text().split("---\n")
STUDY = HEAD + KERNELS + JOB.replace('use = "command"', 'use = "command"\nschedstat = true') + COMMAND
TWO_LEVELS = '{"cpu_model": "a CPU", "topology": {"domains": ["0: 2 4", "1: 2 4", "2: 2 4", "3: 2 4"]}}'


def counted(levels: dict[str, str], draw: np.random.Generator) -> dict[str, str]:
    """Counters of a step, of which the new kernel has twice as many at the level of all four CPUs."""
    lines = []
    for before, after in zip(BEFORE.splitlines(), AFTER.splitlines(), strict=True):
        name, *words = after.split()
        fixed = {"version": 1, "timestamp": 1, "cpu": 0, "domain": 1}[name.rstrip("0123456789")]
        scale = 2000 if levels["kernel"] == "installed-new" and name == "domain1" else 1000
        for place in range(fixed, len(words)):
            first = int(before.split()[1 + place])
            grown = (int(words[place]) - first) * scale * np.exp(0.02 * draw.standard_normal())
            words[place] = str(first + round(grown))
        lines.append(" ".join([name, *words]))
    waits = "impossible io 5 9000000000" if levels["kernel"] == "installed-new" else "io 9 3000000"
    return {
        schedstat.BEFORE: BEFORE, schedstat.AFTER: "\n".join(lines) + "\n", schedstat.SWITCH: "1\n",
        delays.KEPT: f"version 14\nswitch 1\ntasks 5\nlongest 7000000\ncpu 9 10000000\n{waits}\ncopy 0 0\n",
    }  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scheduling") / "run"
    return make_factor_run(place, STUDY, lambda *_: 10.0, blocks=8, files=counted, environment=TWO_LEVELS)


def test_each_level_has_its_counters_and_what_changed(run: Path) -> None:
    (table,) = counter_tables(judge_run(run))
    assert (table.step, table.baseline, table.contender) == ("job", "installed-old", "installed-new")
    assert [heading for heading, _ in table.parts] == [
        "wake-ups", "running and waiting",
        "delays of tasks; not counted by both: delay-io, delay-swap, delay-reclaim, delay-thrash, delay-compact, delay-irq",
        "domains of level 0, 2 CPUs", "domains of level 1, 4 CPUs",
    ]  # fmt: skip
    waits, near, far = ({row.name: row for row in rows} for _, rows in table.parts[2:])
    assert waits.keys() == {"tasks", "task-wait, ms", "task-wait-longest, ms", "delay-copy, ms"}
    assert waits["task-wait, ms"].cells[1:3] == ("2", "2") and waits["delay-copy, ms"].cells[1:3] == ("0", "0")
    assert far["wakeups-remote"].word == "higher" and 80 < float(far["wakeups-remote"].change[1:-2]) < 120
    assert near["wakeups-remote"].word != "higher"
    # What never happened in either kernel has no verdict.
    assert near["newidle-pulled"].cells == ("newidle-pulled", "0", "0", "", "", "")
    text = counters_text([table])
    assert "domains of level 1, 4 CPUs\n" in text and max(map(len, text.splitlines())) < 120


def test_the_command_prints_it_without_a_boot_and_names_what_there_is(
    run: Path, kduel: Callable[..., Any], tmp_path: Path
) -> None:
    done = kduel("explain", run, "--scheduler", "-b", "job")
    assert done.returncode == 0 and done.stdout.startswith("job: installed-new against installed-old"), done.stderr
    done = kduel("explain", run, "--scheduler", "--format", "json")
    names = [one["metric"] for one in json.loads(done.stdout)]
    assert "sched-domain1-newidle-pulled" in names and "time" not in names
    done = kduel("explain", run, "--scheduler", "-b", "jab")
    assert done.returncode == 2 and "Did you mean job?" in done.stderr
    done = kduel("explain", run, "--scheduler", "--cost")
    assert done.returncode == 2 and "--scheduler does not go with --cost" in done.stderr
    done = kduel("explain", "a", "b", "--scheduler")
    assert done.returncode == 2 and "Name a RUN" in done.stderr
    old = {schedstat.BEFORE: BEFORE, schedstat.AFTER: AFTER, schedstat.SWITCH: "1\n", delays.KEPT: "absent none\n"}
    without = make_factor_run(
        tmp_path / "without", STUDY, lambda *_: 10.0, blocks=2, files=lambda *_: old, environment=TWO_LEVELS
    )
    done = kduel("explain", without, "--scheduler")
    assert "delays of tasks" not in done.stdout, "the program may not have been there"
    bare = make_factor_run(tmp_path / "bare", HEAD + KERNELS + JOB + COMMAND, lambda *_: 10.0, blocks=1)
    done = kduel("explain", bare, "--scheduler")
    assert done.returncode == 2 and "schedstat = true" in done.stderr


def test_the_page_has_the_table_once(run: Path) -> None:
    page = HTML.render(judge_run(run))
    assert page.count("What the scheduler did") == 1 and page.count("domains of level 1, 4 CPUs") == 1
    # Counters of levels are in this table alone.
    assert "sched-domain1" not in page and "sched-wakeups-local" in page
