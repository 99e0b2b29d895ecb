"""Settings of machines that exist: what their [machine] tables have in common, and those of the kind ssh."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kduel.guest.conditions import Bands
from kduel.machines import MachineSettings, Seconds


class DeclaredPeer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [machine.peer]: another machine, which is there already and serves all contenders."""

    address: str = ""
    """By which the measured machine reaches it."""
    own_address: str = ""
    """By which the peer reaches the measured machine, where a step's client is on the peer."""
    shell: str = ""
    """A command, run as root on the measured machine, that runs its standard input as a shell script on the peer: "ssh root@10.0.0.7 sh -e".
    Empty: the servers that the steps need run on the peer already, on their programs' ports."""

    @property
    def lacks(self) -> str:
        """Reason why there is no peer; empty where there is one."""
        return "" if self.address else "the study declares none ([machine.peer] address)"


class RealSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings in the [machine] tables of all real machines."""

    boot_deadline: Seconds = 600.0
    """Seconds from the reboot until the machine answers again."""
    directory: str = "/var/tmp"
    """Where trials work there; on a disk, and its file system is what file benchmarks measure."""
    free_mib: Annotated[int, Meta(ge=0, le=1 << 30)] = 512
    """What must be free there before a trial."""
    clocksource: str = ""
    """What a trial must have; empty: whatever the kernel chooses, shown in the report."""
    conditions: Bands = Bands()
    peer: DeclaredPeer = DeclaredPeer()


class SshSettings(RealSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    place: Annotated[str, Meta(min_length=1)]
    """Destination for ssh: HOST or USER@HOST."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """0: as ~/.ssh/config says."""
    identity: str = ""
    known_hosts: str = ""
    boot: Literal["grub-reboot", "bootctl", "kexec"] = "grub-reboot"
    """How a kernel is chosen for one boot: GRUB, systemd-boot's oneshot, or straight from the running one. A machine that does not come back boots its default when power-cycled."""
