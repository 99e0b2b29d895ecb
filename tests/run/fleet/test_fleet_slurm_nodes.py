"""Slurm reboots its nodes into the kernels of a study. Slurm is real and on loopback; the reboot is a stand-in
(tests/run/fleet/standin_node): the node's daemon ends, and begins anew where uname and /proc tell of the other kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import NODE_STUDY, SCRIPT, Cluster, started
from test_fleet_runs import records
from waiting import wait_for

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.kernels import installed
from kduel.machines import Arm, Trial
from kduel.machines.remote.ssh_trial import RESTORE, Observation
from kduel.machines.slurm import cluster as asked
from kduel.machines.slurm.trial import NodeConnection, NodeJourney, NodeSettings
from kduel.machines.slurm_node import check_reboot, check_settings

STANDIN = Path(__file__).parent / "standin_node"
HELPER = Path(__file__).parents[3] / "contrib" / "slurm" / "kernel-feature"
OLD, NEW = "6.1.0-1-standin", "6.12.0-1-standin"
FEATURES = ("kernel_6_1_0_1_standin", "kernel_6_12_0_1_standin")
MACHINE = "poll = 0.3\nfree_mib = 1"
BENCHMARK = r"""
label = "release"
command = "echo value: $(cut -d. -f2 /proc/sys/kernel/osrelease)"
primary = ["value"]
metrics = [{ name = "value", unit = "1", better = "higher", regex = "value: ([0-9.]+)" }]
"""


def furnish(directory: Path) -> None:
    """Nodes that Slurm may reboot."""
    for file in STANDIN.iterdir():
        shutil.copy(file, directory)
    (directory / "loopback").symlink_to(SCRIPT)
    # A job's end takes a moment, as on most clusters.
    (directory / "epilog").write_text("#!/bin/sh\nsleep 1\n")
    (directory / "epilog").chmod(0o755)
    (directory / "local.conf").write_text(
        f"NodeFeaturesPlugins=node_features/helpers\nRebootProgram={directory}/reboot\nResumeTimeout=600\n"
        f"Epilog={directory}/epilog\n"
        f"NodeName=DEFAULT Features={','.join(FEATURES)}\n"
    )
    lines = [f"Feature={feature} Helper={directory}/helper\n" for feature in FEATURES]
    (directory / "helpers.conf").write_text("".join(lines) + "BootTime=600\n")


@pytest.fixture(scope="module")
def cluster(need: Callable[..., str]) -> Iterator[Cluster]:
    for program in ("slurmctld", "slurmd", "munged", "sbatch", "srun"):
        need(program)
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace for this user: the stand-in for a boot needs one")
    with started(2, furnish) as own:
        yield own


@pytest.fixture
def node_study(tmp_path: Path, cluster: Cluster, environment: dict[str, str]) -> Callable[..., Path]:
    environment["SLURM_CONF"] = os.environ["SLURM_CONF"]

    def write(new: str = NEW, deadline: int = 550, blocks: int = 2) -> Path:
        path = tmp_path / "nodes.toml"
        path.write_text(
            NODE_STUDY.format(
                machine=MACHINE, benchmark=BENCHMARK, old=OLD, new=new, deadline=deadline, blocks=blocks
            )
        )
        return path

    return write


def test_what_a_trial_leaves_on_one_node_is_not_on_the_other(tmp_path: Path):
    """The stand-ins share this machine. What a crash leaves in /var/lib, the next trial puts back, and it is removed: a trial of
    another node would do so in the middle of the first one's, which is then void for its conditions."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace for this user: the stand-in for a boot needs one")
    furnish(tmp_path)
    left = Path(RESTORE).with_name("kduel-standin-test")

    def on(node: str, line: str) -> int:
        return subprocess.run([tmp_path / "enter", node, "sh", "-c", line], check=False).returncode

    try:
        assert on("n1", f"echo >{left}") == 0
        assert on("n1", f"[ -e {left} ]") == 0, "a disk keeps it over a reboot"
        assert on("n2", f"[ ! -e {left} ]") == 0
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)


@pytest.mark.slow
def test_slurm_reboots_each_node_for_each_trial(kduel, start, node_study, cluster: Cluster, tmp_path: Path):
    run = tmp_path / "run"
    words = ("run", node_study(), "--fleet", "slurm:nodes=2,poll=0.5", "--out", run, "--seed", 7)
    away = cluster.directory / "n2.dead"
    away.touch()
    with start(*words) as controller:
        wait_for(lambda: len(records(run)) >= 1 or controller.poll() is not None, "trial")
        # Its jobs wait for scripts that never come; the next controller ends them.
        controller.kill()
        controller.communicate()
    before = {one["id"] for one in records(run)}
    with start("resume", run) as controller:
        wait_for(lambda: (run / "fleet" / "n2" / "worker.log").exists() or controller.poll() is not None, "worker")
        # Time in which a worker that does not wait for its node fails. A boot of this stand-in has to take some time.
        time.sleep(5)
        away.unlink()
        _, said = controller.communicate(timeout=1800)
    found = records(run)
    voids = [one["void"] for one in found if one["status"] == "void"]
    assert (controller.returncode, voids) == (0, []), "\n".join([said, cluster.logs()])
    assert "n2 is lost" not in said and "Slurm refuses" not in said
    assert before <= {one["id"] for one in found}
    assert [(one["status"], one["member"]) for one in found].count(("ok", "n1")) == 2, said
    assert len({one["facts"]["boot_id"] for one in found}) == len(found) == 4, "a boot of its own for each trial"
    for one in found:
        kernel = (run / "trials" / one["id"] / "environment" / "uname").read_text()
        assert (NEW if "6.12" in one["contender"] else OLD) in kernel
        assert one["facts"]["job"].isdecimal()
        assert one["facts"]["queued_seconds"] > 0
    assert len((cluster.directory / "reboots").read_text().split()) >= 4
    cluster.await_no_job()
    assert "nothing changed afterwards" in kduel("verify", run).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (
            {"new": "6.99.1"},
            3,
            "the node n1 has no feature kernel_6_99_1; it has: kernel_6_1_0_1_standin, kernel_6_12",
        ),
        ({"deadline": 900}, 3, "ResumeTimeout is 600 s, and boot_deadline 900 s"),
    ],
)
def test_what_the_nodes_cannot_do_is_an_error_before_the_first_trial(
    kduel, node_study, tmp_path: Path, change: dict[str, object], status: int, said: str
):
    done = kduel("run", node_study(**change), "--fleet", "slurm:nodes=1", "--out", tmp_path / "run")
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert said in " ".join(done.stderr.split()) and not (tmp_path / "run").exists()


def test_a_user_who_may_not_reboot_is_told_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("takes another user's id")
    cluster.directory.chmod(0o755)
    original = subprocess.run
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    monkeypatch.setattr(
        asked.subprocess, "run", lambda words, **rest: original([*as_nobody, *words], **rest, cwd="/")
    )
    spec = f"installed:{OLD}"
    kernel = installed.PLUGIN.resolve(spec, cache=Cache(tmp_path), progress=Progress())
    arm = Arm(Contender(name="old", kernel=spec), kernel)
    with pytest.raises(HostError, match="refuses to reboot n1 into kernel_6_1_0_1_standin for this user"):
        check_reboot(NodeSettings(node="n1"), [arm])


@pytest.mark.slow
def test_a_node_that_does_not_return_is_told_with_slurms_reason(kduel, node_study, cluster: Cluster, tmp_path: Path):
    (cluster.directory / "n2.dead").touch()
    run = tmp_path / "run"
    done = kduel("run", node_study(deadline=5, blocks=1), "--fleet", "slurm:nodelist=n2,poll=0.5", "--out", run)
    (cluster.directory / "n2.dead").unlink()
    assert done.returncode == 1, done.stderr
    assert "no-return: Slurm did not bring n2 up within 5 s" in done.stderr and "Traceback" not in done.stderr
    assert "no-node: n2 is IDLE+NOT_RESPONDING+POWERING_UP" in " ".join(done.stderr.split())
    assert {one["status"] for one in records(run)} == {"void"}


def test_a_node_with_its_default_kernel_is_told_with_both_reasons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    spec = f"installed:{NEW}"
    kernel = installed.PLUGIN.resolve(spec, cache=Cache(tmp_path), progress=Progress())
    trial = Trial(
        id="0001", arm=Arm(Contender(name="new", kernel=spec), kernel), script="", deadline=1, into=tmp_path
    )
    monkeypatch.setattr(NodeJourney, "last_words", lambda _: "")
    journey = NodeJourney(
        NodeSettings(node="n1"), NodeConnection("n1"), trial, boot="slurm", entries={}, cmdline="", programs={}
    )
    outcome = journey.measure(Observation("boot", OLD, "x86_64", 1.0, 1.0, "", 1.0))
    assert outcome.void == "fell-back"
    assert "did not boot" in outcome.message and "or its helper could not choose that kernel" in outcome.message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"NodeFeaturesPlugins": "(null)"}, "NodeFeaturesPlugins is \\(null\\), and must have node_features/helpers"),
        ({"RebootProgram": "(null)"}, "RebootProgram is \\(null\\)"),
        ({"ResumeTimeout": "60 sec"}, "ResumeTimeout is 60 s, and boot_deadline 600 s"),
    ],
)
def test_settings_that_are_missing_are_named(changed: dict[str, str], said: str):
    good = {
        "NodeFeaturesPlugins": "node_features/helpers",
        "RebootProgram": "/sbin/reboot",
        "ResumeTimeout": "600 sec",
        "ReturnToService": "2",
        "BootTime": "300",
        "ExecTime": "60",
    }
    assert check_settings(good, 600.0) == []
    with pytest.raises(HostError, match=said):
        check_settings(good | changed, 600.0)
    (note,) = check_settings(good | {"ReturnToService": "1"}, 600.0)
    assert "stays DOWN" in note
    (note,) = check_settings(good | {"BootTime": "900"}, 600.0)
    assert "more than ResumeTimeout" in note
    (note,) = check_settings(good | {"ExecTime": "10"}, 600.0)
    assert "ExecTime in helpers.conf is 10 s" in note


def test_the_shipped_helper_names_and_chooses_kernels(tmp_path: Path):
    release = "6.1.0-40-amd64"
    (tmp_path / f"vmlinuz-{release}").touch()
    (tmp_path / "grub.cfg").write_text(
        "menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-0aa1' {\n}\n"
        "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-0aa1' {\n"
        f"\tmenuentry 'Debian GNU/Linux, with Linux {release}' --class debian "
        f"$menuentry_id_option 'gnulinux-{release}-advanced-0aa1' {{\n\t}}\n"
        f"\tmenuentry 'Debian GNU/Linux, with Linux {release} (recovery mode)' --class debian "
        f"$menuentry_id_option 'gnulinux-{release}-recovery-0aa1' {{\n\t}}\n}}\n"
    )
    for name, line in (("grub-reboot", 'echo "$@"'), ("uname", f"echo {release}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "BOOT": str(tmp_path),
        "GRUB_CFG": str(tmp_path / "grub.cfg"),
    }

    def helper(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([HELPER, *words], env=environment, capture_output=True, text=True, check=False)

    feature = NodeSettings().feature("any", release)
    assert helper().stdout == feature + "\n" == "kernel_6_1_0_40_amd64\n"
    assert helper(feature).stdout == f"gnulinux-advanced-0aa1>gnulinux-{release}-advanced-0aa1\n"
    wrong = helper("kernel_9")
    assert wrong.returncode == 1 and "no kernel in" in wrong.stderr
