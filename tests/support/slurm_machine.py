"""A node of a Slurm cluster that reboots for real: the test machine of tests/machines/remote with Debian's slurmd and munge, and
with a menu of GRUB's as update-grub writes it. It reaches the controller, and is reached, by QEMU's user network alone."""

from __future__ import annotations

import io
import re
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import build_machine
from build_machine import COMMAND_LINE
from loopback import Cluster, started
from real_machine import UP, Real

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.machines.slurm.trial import NodeSettings

IDENTITY = "0b7c5e0a-1f4e-4a7c-9a51-5f3f3b0c9d11"
"""Of the root file system, in the names of GRUB's entries; nothing else depends on it."""
SHIPPED = Path(__file__).parents[2] / "contrib" / "slurm"
CONTROLLER = "10.0.2.2"
"""Where the machine finds this host's loopback."""
RESUME = 3600
"""Seconds that Slurm waits for a boot. On a host whose processors others have, an emulated one took more than eight minutes."""
SETTINGS = """# Sessions with srun come through QEMU's user network, which leads to loopback.
CommunicationParameters=NoCtldInAddrAny
# An emulator takes its time.
SlurmdTimeout=300
MessageTimeout=60
BatchStartTimeout=300
# The machines find the controller elsewhere than it does itself.
DebugFlags=NO_CONF_HASH
"""
START = """set -e
hostname "$(cat /etc/hostname)"
chown munge: /etc/munge/munge.key
: >/etc/resolv.conf
mkdir -p /var/spool/slurmd
systemctl restart munge
systemctl enable --now slurmd
sync
"""


def menu(releases: list[str]) -> str:
    """GRUB's configuration, in short: the default, and every kernel in a submenu, whose commands see exported variables only."""

    def entry(indent: str, title: str, name: str, release: str) -> str:
        return (
            f"{indent}menuentry '{title}' --class debian --class os $menuentry_id_option '{name}' {{\n"
            f"{indent}\tlinux /boot/vmlinuz-{release} {COMMAND_LINE}\n{indent}}}\n"
        )

    listed = "".join(
        entry("\t", f"Debian GNU/Linux, with Linux {one}", f"gnulinux-{one}-advanced-{IDENTITY}", one)
        for one in releases
    )
    return (
        'load_env\nset timeout=0\nset default="0"\n'
        'if [ "${next_entry}" ] ; then\n  set default="${next_entry}"\n  set next_entry=\n  save_env next_entry\nfi\n'
        'menuentry_id_option="--id"\nexport menuentry_id_option\n'
        + entry("", "Debian GNU/Linux", f"gnulinux-simple-{IDENTITY}", releases[0])
        + "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option "
        + f"'gnulinux-advanced-{IDENTITY}' {{\n{listed}}}\n"
    )


class SlurmMachine(Real):
    """The machine `name`, whose slurmd listens on `slurmd_port`, here and there."""

    cpus = 1

    def __init__(self, place: Path, name: str, slurmd_port: int) -> None:
        self.name = name
        self.forwarded = (slurmd_port,)
        super().__init__(place)

    def image(self) -> Path:
        return build_machine.machine(Cache(), Progress(), ("munge", "slurmd"))

    def furnish_as(self, directory: Path) -> None:
        """What the administrator of a cluster installs, from the controller's `directory` and from contrib/slurm."""
        files = {
            "boot/grub/grub.cfg": (menu(self.releases).encode(), 0o644),
            "etc/hostname": (f"{self.name}\n".encode(), 0o644),
            "etc/hosts": (f"127.0.0.1 localhost {self.name}\n".encode(), 0o644),
            "etc/munge/munge.key": ((directory / "munge.key").read_bytes(), 0o400),
            "etc/slurm/slurm.conf": (node_settings((directory / "slurm.conf").read_text()).encode(), 0o644),
            "etc/slurm/helpers.conf": ((directory / "helpers.conf").read_bytes(), 0o644),
            # The machine has no D-Bus, by which slurmd would ask systemd for a control group.
            "etc/slurm/cgroup.conf": (b"IgnoreSystemd=yes\n", 0o644),
            "usr/local/sbin/kernel-feature": ((SHIPPED / "kernel-feature").read_bytes(), 0o755),
            "root/start": (START.encode(), 0o755),
        }
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, (data, mode) in files.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(data), mode
                tar.addfile(member, io.BytesIO(data))
        command = "tar -C / --no-overwrite-dir -xf - && sh /root/start"
        done = subprocess.run(
            self.argv(command), input=packed.getvalue(), capture_output=True, timeout=UP, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")


def node_settings(controller: str) -> str:
    """slurm.conf as the machines need it: the controller is elsewhere, and paths are Debian's."""
    changed = re.sub(r"^(SlurmctldHost=.*)\(.*\)$", rf"\1({CONTROLLER})", controller, flags=re.MULTILINE)
    own = {
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmdPidFile": "/run/slurmd.pid",
        "SlurmdLogFile": "/var/log/slurmd.log",
    }
    lines = [line for line in changed.splitlines() if line.partition("=")[0] not in (*own, "AuthInfo")]
    return "\n".join([*(f"{key}={value}" for key, value in own.items()), *lines]) + "\n"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Rebooted:
    """A cluster whose nodes Slurm reboots."""

    def __init__(self, cluster: Cluster, machines: dict[str, SlurmMachine]) -> None:
        self.cluster, self.machines = cluster, machines
        self.releases = next(iter(machines.values())).releases
        self.longest = 1200.0
        """Seconds of the longest reboot that was seen; until then a guess."""

    def states(self) -> dict[str, str]:
        """Of the nodes, in Slurm's words."""
        lines = self.cluster.ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return {words[0]: words[1] for words in map(str.split, lines)}

    def await_idle(self) -> None:
        """Wait until Slurm can use every node."""
        self.await_that(lambda: set(self.states().values()) == {"idle"})

    def await_that(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + UP
        while not condition():
            assert time.monotonic() < end, f"{self.states()}\n{self.cluster.log('slurmctld')[-3000:]}"
            time.sleep(2)


@contextmanager
def rebooted(place: Path, count: int = 2) -> Iterator[Rebooted]:
    """A cluster of machines n1, n2, ..., set up as contrib/slurm says, each kernel a node feature."""
    machines = {f"n{number}": port for number, port in enumerate(free_ports(count), 1)}
    with ExitStack() as held:
        booting = {}
        for name, port in machines.items():
            (place / name).mkdir()
            booting[name] = SlurmMachine(place / name, name, port)
            held.callback(booting[name].switch_off)
            booting[name].switch_on()
        own = next(iter(booting.values())).releases
        examples = re.findall(r"kernel_\w+", (SHIPPED / "helpers.conf").read_text())
        features = {old: NodeSettings().feature("", release) for old, release in zip(examples, own, strict=True)}

        def shipped(name: str) -> str:
            text = (SHIPPED / name).read_text()
            for old, new in features.items():
                text = text.replace(old, new)
            return text

        def furnish(directory: Path) -> None:
            nodes = shipped("slurm.conf.part").replace("NodeName=n[1-2]", "NodeName=DEFAULT")
            nodes = nodes.replace("ResumeTimeout=600", f"ResumeTimeout={RESUME}")
            for name, port in machines.items():
                nodes += f"NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN\n"
            partition = f"PartitionName=bare Nodes=n[1-{count}] Default=YES OverSubscribe=EXCLUSIVE State=UP\n"
            (directory / "local.conf").write_text(SETTINGS + nodes + partition)
            (directory / "helpers.conf").write_text(shipped("helpers.conf"))

        cluster = held.enter_context(started(0, furnish))
        for machine in booting.values():
            machine.wait()
            machine.furnish_as(cluster.directory)
        found = Rebooted(cluster, booting)
        found.await_idle()
        yield found
