"""Two real guests on a private link: they exchange load, reach nothing else, and no trial outlives its peer."""

from __future__ import annotations

import io
import os
import shutil
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hostile_payloads as payloads
import msgspec
import pytest
from processes import own_children

from kduel.benchmarks import Raw, benchmark
from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest import link, root
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import resolve
from kduel.machines import Arm, Machine, Needs, Outcome, Trial
from kduel.machines.qemu import PLUGIN

pytestmark = [pytest.mark.guest, pytest.mark.network]
SPEC = "debian:6.1-cloud"
UNUSED = {"fio", "linux-perf", "rt-tests", "stress-ng", "sysbench"}
"""Packages of every root that no step here calls: without them and what they need, a root is made in half of the time."""
PACKAGES = ("apache2-utils", "ethtool", "iperf3", "iproute2", "netperf", "nginx-light")
ALONE = """
set +e
ls /sys/class/net
busybox ip route
for there in 10.213.0.1 10.213.0.2 10.213.0.3 10.0.2.2 10.0.2.3 8.8.8.8; do
    busybox ping -c 1 -W 2 $there >/dev/null 2>&1 && echo "reached $there"
done
busybox arping -q -f -c 2 -w 2 -I eth0 10.0.2.2 && echo "something answers"
ls -d /sys/bus/pci/devices/*/virtio*/net | wc -l
"""
IN_PEER = """
peer <<'EOF'
uname -r
busybox ip route
busybox ping -c 1 -W 2 10.0.2.2 >/dev/null 2>&1 && echo "reached the host"
ls /sys/class/net
EOF
echo 'echo out; echo err >&2; exit 7' | peer || echo $?
"""
EXCHANGES: list[tuple[str, dict[str, Any]]] = [
    ("nginx", {"requests": 300}),
    ("iperf3", {"path": "link", "time": 1}),
    ("netperf", {"path": "link", "transactions": 200}),
    ("netperf", {"path": "link", "test": "tcp_crr", "transactions": 200}),
    ("netperf", {"path": "link", "test": "udp_rr", "transactions": 200}),
    ("nginx", {"path": "link", "connections": "new", "requests": 300}),
    ("nginx", {"connections": "new", "requests": 300}),
]
"""nginx's server of the first and the last step runs beside its server of the link."""


def step_of(name: str, table: dict[str, Any]) -> ScriptStep:
    which = benchmark(name)
    given = which.read_parameters(table)
    return ScriptStep(
        label=which.label(given),
        script=which.script(given),
        timeout=which.timeout(given),
        service=which.service(given),
        peer=which.needs_peer(given),
    )


@pytest.fixture(scope="module")
def linked() -> tuple[Machine, Arm]:
    cache = Cache()
    arm = Arm(Contender(kernel=SPEC), resolve(SPEC, cache=cache, progress=Progress()))
    table = {"accel": "tcg", "memory": "512M", "cpus": 1, "boot_deadline": 900.0, "peer": {"memory": "384M"}}
    needs = Needs(packages=PACKAGES, peer=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root, "PACKAGES", tuple(name for name in root.PACKAGES if name not in UNUSED))
        return PLUGIN.prepare(PLUGIN.read_settings(table), [arm], needs, cache=cache, progress=Progress()), arm


def boot(linked: tuple[Machine, Arm], into: Path, steps: list[ScriptStep]) -> Outcome:
    machine, arm = linked
    script = compose(steps, settle=Settle(mode="fixed", seconds=0), link=machine.link)
    for _ in range(3):
        into.mkdir()
        outcome = machine.boot(Trial(id="t", arm=arm, script=script, deadline=1800, into=into))
        assert guests_by_side() == {}
        # A host that starves a guest's clock shows that first; a run would repeat the trial.
        if "wrong-clock" not in f"{outcome.void} {outcome.message}":
            break
        shutil.rmtree(into)
    return outcome


def guests_by_side() -> dict[str, int]:
    """Processes of QEMU that this process started, by their side of the link."""
    return {
        side: pid
        for pid, words in own_children().items()
        for side in "12"
        if f"mac=52:54:00:00:00:0{side}".encode() in words
    }


@contextmanager
def once_in_step(into: Path, step: str, do: Callable[[], None]) -> Iterator[None]:
    """`do` is called in a thread when the trial's guest has begun a step."""
    over, log = threading.Event(), into / "console.log"

    def wait() -> None:
        while not over.wait(0.2):
            if log.exists() and f"step {step}" in log.read_text(errors="replace"):
                do()
                over.set()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_guests_exchange_load_and_reach_nothing_else(linked: tuple[Machine, Arm], tmp_path: Path) -> None:
    looking = [
        ScriptStep(label="alone", script=ALONE, timeout=900),
        ScriptStep(label="in-peer", script=f"set +e\n{IN_PEER}", timeout=900, peer=True),
    ]
    into = tmp_path / "trial"
    outcome = boot(linked, into, [*looking, *(step_of(name, table) for name, table in EXCHANGES)])
    assert outcome.void == "", outcome.message
    told = (into / "01-alone/stdout").read_text().splitlines()
    route = "10.213.0.0/30 dev eth0 scope link  src 10.213.0.{} "
    assert told == ["eth0", "lo", route.format(1), "reached 10.213.0.1", "reached 10.213.0.2", "1"]
    release = linked[1].kernel.release
    answered = (into / "02-in-peer/stdout").read_text().splitlines()
    assert [line for line in answered if line] == [release, route.format(2), "eth0", "lo", "out", "err", "7"]
    for number, (name, table) in enumerate(EXCHANGES, 3):
        step = into / f"{number:02d}-{step_of(name, table).label}"
        status = msgspec.json.decode((step / "exit.json").read_bytes())["status"]
        assert status == 0, (step / "stderr").read_text()
        which = benchmark(name)
        assert which.parse(Raw.read(step), which.read_parameters(table))
    peer, facts = outcome.facts["peer"], linked[0].facts
    assert peer["ended"] == "off" and {"home", "ready", "off"} <= peer["timings"].keys()
    assert (into / "peer/environment/uname").exists() and (into / "peer/console.log").exists()
    assert facts["peer"]["release"] == release and facts["peer"]["cpus"] == 1
    assert len({*facts["pinned"], *facts["peer"]["pinned"]}) == 2


def test_a_peer_that_hangs_ends_its_trial(
    linked: tuple[Machine, Arm], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a step that would go on for an hour: the peer is asked beside it."""
    into = tmp_path / "hung"
    machine = linked[0]
    quick = machine.link.replace(f"link_look={link.LOOK_SECONDS}", "link_look=3")
    monkeypatch.setattr(machine, "link", quick.replace(f"link_patience={link.PATIENCE_SECONDS}", "link_patience=10"))
    asks = ScriptStep(label="asks", script="sleep 3000", timeout=3600, peer=True)
    with once_in_step(into, "01-asks", lambda: os.kill(guests_by_side()["2"], signal.SIGSTOP)):
        outcome = boot(linked, into, [asks, ScriptStep(label="next", script="true", timeout=300)])
    assert outcome.void == "peer-hung", outcome.message
    assert "in or after the step 01-asks: " in outcome.message, outcome.message
    assert msgspec.json.decode((into / "01-asks/exit.json").read_bytes())["seconds"] < 600
    assert not (into / "02-next/exit.json").exists()


def evil_names() -> bytes:
    """Results with names of KDuel's own files, and one that leads out of the trial."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("trial.json", "manifest.sha256", "../../escaped"):
            tar.addfile(tarfile.TarInfo(name))
    return out.getvalue()


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("hijack 'cat /dev/zero'; sleep 100", "flood"),
        (
            f"hijack '{payloads.shell(payloads.sealed(evil_names()))}'; echo o >/proc/sysrq-trigger; sleep 100",
            "broken-envelope",
        ),
        (
            r"printf 'Kernel panic - not syncing: \033[31mforged\n' >/dev/console; echo o >/proc/sysrq-trigger; sleep 100",
            "panic",
        ),
    ],
    ids=["flood", "names", "forged"],
)
def test_a_hostile_peer_costs_its_own_trial(
    linked: tuple[Machine, Arm], tmp_path: Path, attack: str, said: str
) -> None:
    into = tmp_path / "trials" / "trial"
    into.parent.mkdir()
    script = f"set +e\npeer <<'KDUEL_ATTACK'\n{payloads.HIJACK}{attack}\nKDUEL_ATTACK\nsleep 5"
    outcome = boot(linked, into, [ScriptStep(label="attack", script=script, timeout=60, peer=True)])
    assert outcome.void.startswith("peer-") and said in outcome.message, (outcome.void, outcome.message)
    assert [
        path.name for path in tmp_path.rglob("*") if path.name in ("escaped", "trial.json", "manifest.sha256")
    ] == []
    assert sum(path.stat().st_blocks * 512 for path in into.rglob("*")) < 40 << 20


def test_a_peer_that_does_not_answer_is_late(
    linked: tuple[Machine, Arm], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, arm = linked
    scripts = link.own_file
    monkeypatch.setattr(link, "own_file", lambda name: b"exit 1" if name == "peer.sh" else scripts(name))
    monkeypatch.setattr(machine, "link", machine.link.replace(f"link_bound={link.MEET_SECONDS}", "link_bound=3"))
    outcome = boot((machine, arm), tmp_path / "trial", [])
    assert outcome.void == "peer-late", outcome.message
