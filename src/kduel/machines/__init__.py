"""Machines, one module each, here or behind an entry point of the group `kduel.machines`, that offers `PLUGIN`: where
a trial runs. `boot` is the only verb: one boot, one script, raw files home."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, NotRequired, TypedDict, TypeVar, Unpack

from msgspec import Meta, Struct, field

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.experiment import Contender, Void
from kduel.core.host import HostStep
from kduel.core.plugins import argument_of, convert_table, named_plugin
from kduel.core.progress import Progress
from kduel.core.text import did_you_mean
from kduel.core.turns import StepTurns
from kduel.guest import programs
from kduel.guest.turns import BlockTurns
from kduel.kernels import InstalledKernel, Kernel, find_source, resolve

Seconds = Annotated[float, Meta(gt=0, le=7 * 86_400)]
"""Of a deadline in a machine's settings."""


class Arm(Struct, frozen=True):
    """A contender made concrete."""

    contender: Contender
    kernel: Kernel


class Needs(Struct, frozen=True, kw_only=True):
    """Requirements of a study's steps on a machine."""

    packages: tuple[str, ...] = ()
    commands: tuple[tuple[str, str, str], ...] = ()
    """Commands that scripts run, each with its Debian package and the step that runs it first."""
    programs: tuple[str, ...] = ()
    scratch: bool = False
    modules: tuple[str, ...] = ()
    """Kernel modules that a benchmark loads itself, where the kernel does not have them built in."""
    trial_files: tuple[str, ...] = ()
    """Files of the trial itself that a benchmark reads, of which a machine writes those that it knows how to."""
    peer: bool = False
    """True if a step works with a peer: another machine that the trial's reaches over a network."""
    files: tuple[tuple[str, Path], ...] = ()
    """Further programs of the host's: where below $KDUEL_PROGRAMS, and which file, whose mode is kept."""

    def files_and_programs(self, architecture: str, *, cache: Cache) -> list[tuple[str, Path]]:
        """`files` and our own programs, built for an architecture. Raises HostError, InputError."""
        built = [(name, programs.build(name, architecture, cache=cache)) for name in self.programs]
        return [*self.files, *built]


class Trial(Struct, frozen=True, kw_only=True):
    """One trial to be carried out by a machine."""

    id: str
    arm: Arm
    script: str
    """The guest script (kduel.guest.script): `sh guest.sh OUT` leaves everything in the directory OUT."""
    deadline: float
    """Seconds from start to the results at home."""
    into: Path
    """Holds guest.sh. console.log (of a void trial, too) and the script's OUT tree go here."""
    block: int = 1
    """The block that the trial belongs to, for a machine that varies something from block to block."""


class Outcome(Struct, frozen=True, kw_only=True):
    """Result of a boot."""

    void: str = ""
    """Empty, or why nothing of this trial may be used, by its name: panic, oops, hard-lockup, soft-lockup,
    workqueue-lockup, hang, out-of-memory,
    silent-exit, no-console, deadline, broken-envelope, wrong-machine, ..."""
    message: str = ""
    """For a void trial: a paragraph with the console's relevant lines."""
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds from the start, as far as reached: `launched`, `kernel` (console), `ready`, `done` (script), `off`."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What is true of this boot alone: argv, pids pinned, ..."""
    turns: dict[str, StepTurns] = field(default_factory=dict)
    """By the step's directory, how a guest that took turns shared the host with its partners."""
    host: list[tuple[str, HostStep]] = field(default_factory=list)
    """What the host did during each step, by the step's directory, in the order of time; a boot of several loads has
    a directory several times. Empty where the machine does not record it, or does from inside."""

    @property
    def why(self) -> Void | None:
        """Code and message of a void trial; None of a good one."""
        return Void(self.void, self.message) if self.void else None


ONE_BY_ONE = "it carries out one boot after the other"
"""Why most machines take no turns."""


class Machine(ABC):
    """A machine made ready for some arms. Used from one thread unless `parallel` is above 1."""

    parallel: int = 1
    """Number of trials that may run at once without touching each other's results."""
    timing_warning: str = ""
    """What a reader must know of timings from here, in plain words (an emulator, say); empty if nothing."""
    emulated: bool = False
    """Whether an emulator runs its instructions, so that times have a cost model and a spread of their own."""
    behaviour_only: bool = False
    """True if times decide nothing here: a guest has more CPUs than its host."""
    reboots: bool = True
    """True if `boot` brings a fresh boot; else contenders share one, and the study's unit is "load"."""
    exact: bool = False
    """True if repeated trials give bit-identical numbers: then one trial decides and no statistics apply."""
    records_inside: bool = False
    """True if each trial's script records what the machine does meanwhile: where no host is below the machine."""
    max_wait_pct: float | None = None
    """Per cent of the time that the guest's CPUs may wait for a CPU of the host, by default. 100: always, and only a trial that
    shows nothing but that is made again; None: nobody knows."""
    link: str = ""
    """Shell lines by which the script of a trial reaches its peer (kduel.guest.link); empty where there is none."""
    facts: dict[str, Any]
    """For lock.json and the report: accelerator, versions, argv, root image's SHA-256, host facts..."""

    def modules(self, kernel: Kernel) -> str | None:
        """A hash of this kernel's modules that a trial gets, or `none`; None where they are the machine's own."""
        return None

    def why_no_turns(self) -> str:
        """Reason why the trials of a block cannot be alive at once and take turns; empty where they can."""
        return ONE_BY_ONE

    def why_no_room(self, guests: int) -> str:
        """Reason why the host has no room for so many trials at once at present; empty where it has."""
        return ""

    def boot_block(self, trials: Sequence[Trial], turns: BlockTurns) -> list[Outcome]:
        """The boots of a block, alive at once, in turns; as `boot`. Only where `why_no_turns` has no reason."""
        raise NotImplementedError

    @abstractmethod
    def boot(self, trial: Trial) -> Outcome:
        """One fresh boot, the script, raw files into `trial.into`, power off. Never raises for what a guest does."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Give back whatever is held."""


class Means(TypedDict):
    """Tools of preparing: keyword arguments of `MachineKind.prepare`, which most of what it calls takes too."""

    cache: Cache
    progress: Progress
    offline: NotRequired[bool]
    """True if the network must not be accessed; False where it is left out."""


class MachineSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a study's [machine] table besides `kind`; each kind adds its own."""


S = TypeVar("S", bound=MachineSettings)


class MachineKind(ABC, Generic[S]):
    """A kind of machine, and its settings in a study's [machine] table."""

    name: ClassVar[str]
    summary: ClassVar[str]
    architectures: ClassVar[frozenset[str]] = frozenset()
    """Of the kernels that it boots, as printed by `uname -m`; empty where its settings determine that."""
    installed_kernels: ClassVar[bool] = False
    """True if the machine has kernels of its own to boot."""
    exact: ClassVar[bool] = False
    """True if the guest's clock counts instructions, so that a benchmark may count by it."""
    timed_on_host: ClassVar[bool] = True
    """True if time is measured on the host that KDuel runs on: then several workers there would disturb one another."""

    no_turns: ClassVar[str] = ""
    """Reason why on no machine of this kind trials take turns; empty where each machine says (`Machine.why_no_turns`)."""
    records_host: ClassVar[bool] = True
    """False if no machine of this kind records the load of its host."""

    of_contenders: ClassVar[tuple[str, ...]] = ()
    """The settings of which a contender may have its own; they can be factors."""

    Settings: type[S]
    """The `S` of `MachineKind[S]`."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if found := argument_of(cls, MachineKind):
            cls.Settings = found
        if "check_commands" in vars(cls):
            raise TypeError(f"{cls.__name__}.check_commands is never called: it is check_needs(settings, needs) now")

    @abstractmethod
    def prepare(self, settings: S, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        """Check the host, make root images: all slow work that is no trial. Raises HostError, InputError."""

    def prepare_early(self, settings: S, needs: Needs, **means: Unpack[Means]) -> None:
        """Make what takes long and no kernel determines, perhaps in a thread, for `prepare`. Raises as `prepare`."""

    def emulates(self, settings: S, arms: Sequence[Arm], **means: Unpack[Means]) -> bool:
        """True if trials run in an emulator because this host has nothing better. Raises as `prepare`."""
        return False

    def never(self, settings: dict[str, Any], benchmark: str) -> str:
        """Reason why a machine with this [machine] table can never carry out a benchmark; empty where it can."""
        return ""

    def why_no_peer(self, settings: S) -> str:
        """Reason why trials on a machine with these settings have no peer; empty where they have one."""
        return f"the machine {self.name} has none"

    def stays(self, settings: dict[str, Any]) -> bool:
        """True if a machine with this [machine] table, as it was written, does not reboot between trials."""
        return False

    def check_kernel(self, spec: str, modules: str = "") -> str:
        """Raise what `kernel` does, as far as seen without an archive or build. Gives the architecture, if seen."""
        source = find_source(spec, modules)
        if source.installed:
            self.check_installed(spec)
        return source.architecture(spec)

    def kernel(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        """A contender's kernel, to be booted. A kind that boots nothing may need something else."""
        found = resolve(spec, cache=cache, progress=progress, offline=offline, modules=modules)
        if isinstance(found, InstalledKernel):
            self.check_installed(spec)
        return found

    def check_installed(self, spec: str) -> None:
        """Raises InputError where machines of this kind have no kernels of their own."""
        if not self.installed_kernels:
            raise InputError(
                f"the machine {self.name} has no kernels of its own, so {spec} names none",
                "Give a kernel to boot, such as debian:6.12 or a bzImage; or measure on the machines ssh or local.",
            )

    def check_host(self, settings: S) -> None:
        """Raise what `prepare` does, as far as that is seen at once, whatever the kernels are; not called for a fleet."""

    def check_contender(self, settings: S, contender: Contender, spec: str) -> None:
        """Raise what `prepare` does for a contender with the kernel `spec`, if seen at once; not for a fleet."""

    def check_needs(self, settings: S, needs: Needs) -> None:
        """Raises InputError and HostError where the machine is seen at once to lack what benchmarks need; not called for a fleet."""

    def check_kept(self, settings: S, needs: Needs, cache: Cache) -> None:
        """Raises HostError where the cache lacks, besides kernels, what `prepare` cannot make without the network."""

    def check_architecture(self, settings: S, spec: str, architecture: str) -> None:
        """Raises InputError for a kernel that a machine with these settings cannot boot."""
        if self.architectures and architecture not in self.architectures:
            raise InputError(
                f"{spec} is a kernel for {architecture}; the machine {self.name} boots those for "
                f"{', '.join(sorted(self.architectures))}",
                "Leave it out, or choose a board of that architecture: `kduel list boards` shows all.",
            )

    def read_settings(self, table: dict[str, Any]) -> S:
        """The typed settings. Raises InputError naming the key."""
        return convert_table(table, self.Settings, f"machine {self.name}", "settings")

    def read_all_settings(self, table: dict[str, Any], contenders: Sequence[Contender]) -> list[S]:
        """The typed settings of each contender's machine, each once. Raises InputError naming the contender."""
        found: list[S] = []
        for contender in contenders:
            for key in contender.machine:
                if key not in self.of_contenders:
                    raise InputError(
                        f"{contender.name}: machine.{key} cannot be a contender's own on the machine {self.name}",
                        f"{did_you_mean(key, self.of_contenders)}What can vary there: {', '.join(self.of_contenders) or 'nothing'}.",
                    )
            try:
                settings = self.read_settings(table | contender.machine)
            except InputError as error:
                if not contender.machine:
                    raise
                raise InputError(f"{contender.name}: {error.message}", error.remedy) from error
            if settings not in found:
                found.append(settings)
        return found


def machine_kind(name: str) -> MachineKind[Any]:
    """The kind of that name. Raises InputError that lists what there is."""
    chosen: MachineKind[Any] = named_plugin("machines", "machine", name)
    return chosen
