"""What kload accounts, against the kernel's other accounts, in guests that count instructions: no host is in between."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.machines.icount import IcountMachine
from kduel.run.prepare import make_lock, make_ready
from kduel.run.records import Records
from kduel.run.trials import Trials
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import assemble
from kduel.study.plan import make_plan

pytestmark = [pytest.mark.guest, pytest.mark.network]

KLOAD = '"$KDUEL_PROGRAMS/kload" --cgroup /sys/fs/cgroup --verify --dir "$KDUEL_SCRATCH" --size 16384 --io buffered'
ACCOUNTS = f"""
perf stat -x, -e task-clock -o perf.txt {KLOAD} --kind cpu --processes 12 --iterations 1000000
sed 's/^/perf /' perf.txt
{KLOAD} --kind io --processes 20 --transfers 400
{KLOAD} --kind mixed --processes 20 --transfers 50 --iterations 100000
{KLOAD} --kind blocks --processes 6 --iterations 23
echo value 1
"""
STUDY = f"""
[study]
name = "accounts"
[[contender]]
kernel = ["debian:6.1-cloud", "debian:6.12-cloud"]
[machine]
kind = "icount"
[settle]
mode = "fixed"
seconds = 3
[blocks]
fixed = 1
[[benchmark]]
use = "kload"
processes = 5
iterations = 1000
[[benchmark]]
use = "command"
packages = ["linux-perf"]
command = '''{ACCOUNTS}'''
metrics = [{{ name = "value", unit = "1", better = "none", regex = 'value (\\d+)' }}]
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the command printed, by contender, in one boot: that a second one is the same is tested with the exact machine."""
    made = assemble(parse_study(STUDY, "test"), STUDY, "test")
    ready = make_ready(made, cache=Cache(), progress=Progress())
    run = RunDir.create(
        tmp_path_factory.mktemp("accounts") / "run", STUDY, make_lock(ready, 1, "test"), make_plan(made, 1)
    )
    records = Records(run, run.lock())
    trials = Trials.for_run(records, Progress())
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IcountMachine, "boot", IcountMachine.boot_once)
        for boot in records.missing_boots():
            for ended in trials.carry_out(ready, boot):
                directory, record = ended.staged, ended.record
                assert record.status == "ok", record
                (step,) = directory.glob("*-command-*")
                found[record.contender] = (step / "stdout").read_text()
    assert len(found) == 2
    return found


def documents(text: str) -> dict[str, dict[str, Any]]:
    """kload's documents, by kind of work."""
    decoder = json.JSONDecoder()
    starts = [match.start() for match in re.finditer(r'^\{"kload":1', text, re.MULTILINE)]
    return {out["kind"]: out for out in (decoder.raw_decode(text, start)[0] for start in starts)}


def used(out: dict[str, Any]) -> float:
    """CPU seconds of the processes and their driver."""
    return float(sum(out[who][what] for who in ("life", "driver") for what in ("user_s", "system_s")))


def test_cpu_time_is_the_cgroups_for_every_kind_of_work(said: dict[str, str]) -> None:
    for name, text in said.items():
        for kind in ("cpu", "io", "mixed"):
            out = documents(text)[kind]
            group = (out["cgroup"]["user_us"] + out["cgroup"]["system_us"]) / 1e6
            assert used(out) == pytest.approx(group, rel=0.02), (name, kind)


def test_cpu_time_is_that_of_perf_stat(said: dict[str, str]) -> None:
    for name, text in said.items():
        out = documents(text)["cpu"]
        clock = re.search(r"^perf ([\d.]+),msec,task-clock", text, re.MULTILINE)
        assert clock, text[:500]
        assert used(out) == pytest.approx(float(clock[1]) / 1000, rel=0.02), name


def test_switches_are_exactly_those_of_proc_status(said: dict[str, str]) -> None:
    for name, text in said.items():
        for kind, out in documents(text).items():
            counted = {"voluntary": out["voluntary"], "involuntary": out["involuntary"]}
            assert out["status"] == counted, (name, kind)


def test_a_process_that_blocks_23_times_counts_23(said: dict[str, str]) -> None:
    for name, text in said.items():
        assert [row[4] for row in documents(text)["blocks"]["each"]["rows"]] == [23] * 6, name
