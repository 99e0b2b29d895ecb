"""Operations that need a module, a file system or a namespace, in real guests: they do what their names say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from counting import CONDITIONS, COUNT, count_both, quick, ready_to_count, trial_of

from kduel.benchmarks.support.operations import OPERATIONS
from kduel.explain.profile import profile
from kduel.run.exact.measure import CountedTrial, exact_machine
from kduel.run.prepare import Ready
from kduel.study.contenders import contender_tables

pytestmark = [pytest.mark.guest, pytest.mark.network]

KERNELS = [quick("debian:6.1-cloud"), quick("debian:6.12-cloud")]
DOES = {
    "cgroup-attach": ["cgroup_attach_task"],
    "tmpfs-create": ["shmem_mknod", "shmem_evict_inode"],
    "tmpfs-fsync": ["shmem_mknod", "vfs_fsync_range"],
    "ext4-create": ["ext4_create", "ext4_evict_inode"],
    "ext4-fsync": ["ext4_sync_file", "jbd2_journal_commit_transaction", "brd_submit_bio [brd]"],
    "netfilter-100": ["nft_do_chain [nf_tables]", "udp_sendmsg"],
    "module-load": ["load_module"],
}
"""Functions that each of them executes once or more in every call, in both kernels."""


def test_these_are_all_operations_of_subsystems() -> None:
    first = OPERATIONS.index("cgroup-attach")
    assert tuple(DOES) == OPERATIONS[first : OPERATIONS.index("mmap-touch")]


@pytest.fixture(scope="module")
def ready() -> Ready:
    return ready_to_count(tuple(DOES), contender_tables(KERNELS, False))


@pytest.fixture(scope="module")
def counted(ready: Ready) -> list[CountedTrial]:
    return count_both(ready)


@pytest.mark.parametrize("operation", DOES)
def test_an_operation_executes_what_it_is_named_after(
    ready: Ready, counted: list[CountedTrial], operation: str
) -> None:
    index = list(DOES).index(operation)
    for one in counted:
        line = one.step(index, ready.study.steps[index].label)
        found = profile(one.dump, one.symbols, line.region)
        assert found.operations == (1 + 5) * COUNT
        executed: Counter[str] = Counter()
        for (_, function), instructions in found.functions().items():
            executed[function] += instructions
        assert not {name: executed[name] for name in DOES[operation] if executed[name] < found.operations}


def test_every_rule_of_the_filter_is_looked_at(ready: Ready, counted: list[CountedTrial]) -> None:
    index = list(DOES).index("netfilter-100")
    for one in counted:
        lines = one.lines(index, ready.study.steps[index].label)
        assert len(lines) == CONDITIONS
        # A datagram to oneself takes some 4,000 instructions; a rule, its header, one load, one comparison.
        assert all(20 * 100 < line.median - 4_000 < 200 * 100 for line in lines)


@pytest.mark.parametrize("operation", ["ext4-create", "ext4-fsync"])
def test_ext4_has_the_processors_checksum(ready: Ready, counted: list[CountedTrial], operation: str) -> None:
    """Debian's cloud kernels have ext4 built in, and computed half of an fsync in software until a filter was loaded."""
    index = list(DOES).index(operation)
    for one in counted:
        found = profile(one.dump, one.symbols, one.step(index, ready.study.steps[index].label).region)
        assert {"crc32c_pcl_intel_update [crc32c_intel]", "crc32_body", "__crc32c_le"} & {
            function for _, function in found.functions()
        } == {"crc32c_pcl_intel_update [crc32c_intel]"}


def test_no_signature_is_checked_when_a_module_is_loaded(ready: Ready, counted: list[CountedTrial]) -> None:
    index = list(DOES).index("module-load")
    for one in counted:
        assert 50_000 < one.step(index, ready.study.steps[index].label).median < 1_000_000


def test_a_module_costs_the_same_whatever_was_loaded_before(tmp_path: Path) -> None:
    """7 prepares 2 MiB for code, and frees them with the last module: a load took three times as much where it came first."""
    orders = [("module-load", "netfilter-100"), ("netfilter-100", "module-load")]
    costs = []
    for number, order in enumerate(orders):
        ready = ready_to_count(order, contender_tables([quick("debian:7-cloud")] * 2, True))
        trial = trial_of(ready, tmp_path / str(number))
        outcome = exact_machine(ready).boot_once(trial)
        assert not outcome.void, outcome.message
        costs.append(ready.prepared.parse(trial.into, order.index("module-load"))["instructions"])
    assert max(costs) < 1.02 * min(costs)
