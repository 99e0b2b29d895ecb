"""Counting an arm: a trial on the exact machine with the plug-in, its counts and the guest's symbols kept in the
cache, as its kernel, command line, script and QEMU determine it."""

from pathlib import Path
from typing import TypedDict, Unpack

from msgspec import Struct

from kduel.benchmarks import Parameters, ParseError, Raw
from kduel.benchmarks.boot_instructions import PLUGIN as BOOT_PLUGIN
from kduel.benchmarks.kbench import KbenchLine, merge_conditions, read_lines
from kduel.benchmarks.sharing import PLUGIN as SHARING
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError, unknown_name
from kduel.core.progress import Progress
from kduel.explain.compare import Clock, Explanation, compare_conditions, explain_difference
from kduel.explain.cost import CLASSES, Cost, compare_costs, count_costs
from kduel.explain.profile import Dump, Instruction, Profile, annotate, profile, read_dump
from kduel.explain.symbols import Symbols
from kduel.guest import boots
from kduel.machines import Arm, Trial
from kduel.machines.guests.proofs import check_not_killed
from kduel.machines.icount import COUNTS, IcountMachine, digest
from kduel.run.exact.symbols import symbols_of_build
from kduel.run.prepare import Ready
from kduel.run.script import Script
from kduel.store.collect import step_directory
from kduel.store.documents import document_bytes

BOOT_BENCHMARK = BOOT_PLUGIN.name
COST_SCHEMA = 1
"""Schema of what `explain --cost --format json` writes."""
NAMED_BY = {"kbench": "operation", "request": "application", BOOT_BENCHMARK: ""}
"""The benchmarks that can be explained, and the parameter by which a step is known besides its label."""
BOOT_REGION = 1
"""Region of the plug-in where it counts a boot."""


def is_boot(ready: Ready, index: int) -> bool:
    return ready.study.steps[index].benchmark == BOOT_BENCHMARK


class CountedTrial(Struct, frozen=True, kw_only=True):
    name: str
    """The contender's."""
    release: str = ""
    """The kernel's."""
    directory: Path
    dump: Dump
    symbols: Symbols

    def step(self, index: int, label: str) -> KbenchLine:
        """Counts that kbench printed, all conditions together. Raises NotMeasuredError."""
        return merge_conditions(self.lines(index, label))

    def lines(self, index: int, label: str) -> list[KbenchLine]:
        """Lines that kbench printed, one for each condition and situation. Raises NotMeasuredError."""
        place = step_directory(self.directory / "trial", index, label)
        try:
            raw = Raw.read(place)
            if raw.exit_status:
                raise ParseError(f"it ended with status {raw.exit_status}: {raw.stderr.strip()[:300]}")
            return read_lines(raw.stdout)
        except ParseError as error:
            raise NotMeasuredError(f"{self.name} could not run {label}: {error}") from error

    def boot_instructions(self, index: int, label: str) -> float:
        """Instructions of this kernel's boot, counted without functions. Raises NotMeasuredError."""
        try:
            raw = Raw.read(step_directory(self.directory / "trial", index, label))
            return BOOT_PLUGIN.parse(raw, Parameters())[BOOT_BENCHMARK]
        except ParseError as error:
            raise NotMeasuredError(f"the boot of {self.name} has no count without functions: {error}") from error

    def by_condition(self, index: int, label: str) -> dict[str, Profile]:
        """A profile for each condition, by its name: each was one visit of the region. Empty where the step is not the only
        one with its operation, so that visits and lines do not match."""
        lines = [line for line in self.lines(index, label) if not line.situation]
        visits = self.dump.visits(lines[0].region)
        if len(visits) != len(lines):
            return {}
        return {
            str(line.condition or ""): profile(self.dump, self.symbols, line.region, visits=[visit])
            for line, visit in zip(lines, visits, strict=True)
        }


def exact_machine(ready: Ready) -> IcountMachine:
    """The study's machine, if it is one that can count. Raises InputError."""
    if not isinstance(ready.machine, IcountMachine):
        raise InputError(
            f"the machine {ready.study.machine} cannot count instructions",
            "Run the kernels with --suite exact, or name them: kduel explain A B --benchmark NAME.",
        )
    return ready.machine


COUNTED = "counted"
"""The cache's entries of counted trials."""


def make_trial(arm: Arm, script: Script, block: int, into: Path) -> Trial:
    """The trial that is counted, with its files below `into`."""
    deadline = 600 + 3 * script.deadline
    return Trial(id="explain", arm=arm, script=script.text, deadline=deadline, into=into / "trial", block=block)


class Counting(TypedDict, total=False):
    """Things to count besides the instructions of each function: keyword arguments of the functions below."""

    disassemble: bool
    """Each instruction by itself."""
    lines: bool
    """Cache lines, too."""
    boot: bool
    """The boot, and not the benchmarks."""


def cache_key(machine: IcountMachine, arm: Arm, script: Script, block: int, what: Counting) -> str:
    """The counted trial's key in the cache."""
    options = {"disassemble": False, "lines": False, "boot": False, **what}
    return digest(machine.key(make_trial(arm, script, block, Path())), *options.values())


def count_arm(
    machine: IcountMachine, arm: Arm, script: Script, *, cache: Cache, block: int = 1, **what: Unpack[Counting]
) -> CountedTrial:
    """Boot an arm with the plug-in, unless that was done. Raises NotMeasuredError (void), HostError (QEMU ended)."""

    def build(into: Path) -> None:
        trial = make_trial(arm, script, block, into)
        trial.into.mkdir()
        options = f",out={COUNTS}" + (",disassemble=on" if what.get("disassemble") else "")
        options += ",lines=on" if what.get("lines") else ""
        if what.get("boot"):
            options += f",boot={find_entry(machine, arm):#x},functions=on"
        outcome = machine.boot_once(trial, options, writes={COUNTS: into / "counts"}, symbols=True)
        check_not_killed(outcome.facts.get("killed_by", ""), arm.contender.name)
        if outcome.void:
            raise NotMeasuredError(
                f"{arm.contender.name} could not be counted: {outcome.void}: {outcome.message}",
                "Does it boot in `kduel run --suite exact`?",
            )
        read_dump(into / "counts")
        kallsyms = trial.into / "kallsyms"
        try:
            Symbols.read(kallsyms)
        except InputError as error:
            if machine.icount.layouts:
                raise NotMeasuredError(
                    f"{arm.contender.name} does not export its symbol names, and its addresses are random",
                    "Build it with CONFIG_KALLSYMS=y, or omit --layouts.",
                ) from error
            kallsyms.write_text(symbols_of_build(arm.kernel))
            Symbols.read(kallsyms)

    directory = cache.entry(COUNTED, cache_key(machine, arm, script, block, what), build)
    return CountedTrial(
        name=arm.contender.name,
        release=arm.kernel.release,
        directory=directory,
        dump=read_dump(directory / "counts"),
        symbols=Symbols.read(directory / "trial" / "kallsyms"),
    )


def find_entry(machine: IcountMachine, arm: Arm) -> int:
    """Address of the kernel's entry. Raises NotMeasuredError where that is not known."""
    entry = machine.entry(arm)
    if entry is None:
        raise NotMeasuredError(
            f"the boot of {arm.contender.name} cannot be counted", "Build it with CONFIG_PVH, and omit --layouts."
        )
    return entry


def count_arms(
    ready: Ready, names: tuple[str, str], *, cache: Cache, progress: Progress, seed: int = 0, **what: Unpack[Counting]
) -> list[CountedTrial]:
    """Both arms of a comparison, at the same time where the machine allows. `seed` is that of the block."""
    machine = exact_machine(ready)
    arms = {arm.contender.name: arm for arm in ready.arms}
    told = f"counting {names[0]} and {names[1]}"
    if not are_counted(ready, names, cache=cache, seed=seed, **what):
        told += f" ({usual_effort(ready, what)})"

    def count(name: str) -> CountedTrial:
        found = count_arm(machine, arms[name], script_of_all_steps(ready, arms[name], seed), cache=cache, **what)
        task.advance()
        return found

    with progress.task(told, len(names)) as task, boots.pool(min(2, machine.parallel)) as threads:
        return list(threads.map(count, names))


def script_of_all_steps(ready: Ready, arm: Arm, seed: int) -> Script:
    return ready.setup.script(arm.contender, range(len(ready.study.steps)), seed)


def are_counted(
    ready: Ready, names: tuple[str, str], *, cache: Cache, seed: int = 0, **what: Unpack[Counting]
) -> bool:
    """True if `count_arms` finds both in the cache."""
    machine = exact_machine(ready)
    arms = [arm for arm in ready.arms if arm.contender.name in names]
    return all(
        cache.has(COUNTED, cache_key(machine, arm, script_of_all_steps(ready, arm, seed), 1, what)) for arm in arms
    )


def usual_effort(ready: Ready, what: Counting) -> str:
    """Usual cost of counting, in words (measured: see docs/exact.md)."""
    if what.get("boot"):
        return "about 2 minutes of CPU time and 2 GB of memory"
    if len(ready.study.steps) > 1:
        return "all that the run counted, in about twice its time"
    return f"about {36 if what.get('lines') else 31 if what.get('disassemble') else 26} s of CPU time"


def step_index(ready: Ready, benchmark: str) -> int:
    """The study's step that is meant: by its label, by kbench's operation or by the application. Raises InputError."""
    steps = ready.study.steps
    for index, step in enumerate(steps):
        if step.benchmark in NAMED_BY and benchmark in (step.label, step.parameters.get(NAMED_BY[step.benchmark])):
            return index
    known = [step.label for step in steps if step.benchmark in NAMED_BY]
    if not known:
        shares = any(step.benchmark == SHARING.name for step in steps)
        remedy = "Add --sharing to name the cache lines that it counts." if shares else "Run --suite exact."
        raise InputError("no step of the study counts instructions", remedy)
    raise unknown_name(f"no step of the study is called {benchmark!r} and can be counted", benchmark, known)


def explain_step(ready: Ready, counted: list[CountedTrial], index: int) -> Explanation:
    """Explain the difference between two counted arms in one step, function by function. Raises NotMeasuredError."""
    label = ready.study.steps[index].label
    if is_boot(ready, index):
        one, other = (profile(arm.dump, arm.symbols, BOOT_REGION, boot=True) for arm in counted)
        found = explain_difference(label, (counted[0].name, counted[1].name), (one, other))
        found.boot = True
        first, second = (arm.boot_instructions(index, label) for arm in counted)
        found.clock = Clock(baseline=first, contender=second)
        found.releases = (counted[0].release, counted[1].release)
        found.qemu = ready.machine.facts["qemu"].split()[0]
        return found
    lines = [arm.step(index, label) for arm in counted]
    one, other = (profile(arm.dump, arm.symbols, line.region) for arm, line in zip(counted, lines, strict=True))
    found = explain_difference(label, (counted[0].name, counted[1].name), (one, other))
    found.operations *= lines[0].hops
    found.releases = (counted[0].release, counted[1].release)
    found.qemu = ready.machine.facts["qemu"].split()[0]
    ones, others = (arm.by_condition(index, label) for arm in counted)
    if ones.keys() == others.keys():
        found.conditions = compare_conditions(list(ones), list(ones.values()), list(others.values()), lines[0].hops)
    found.clock = Clock(baseline=sum(lines[0].samples), contender=sum(lines[1].samples))
    return found


def cost_rows(ready: Ready, counted: list[CountedTrial], index: int) -> list[Cost]:
    """Costs of both arms in one step, by class and function. Needs counts with texts and lines. Raises NotMeasuredError."""
    label = ready.study.steps[index].label
    one, other = (count_costs(arm.dump, arm.symbols, arm.step(index, label).region) for arm in counted)
    return compare_costs(one, other)


def annotate_function(
    arm: CountedTrial, index: int, label: str, function: str, *, boot: bool = False
) -> tuple[int, list[Instruction]]:
    """A function's instructions in one arm, with the number of operations. Needs a count with texts."""
    if boot:
        return 1, annotate(arm.dump, arm.symbols, BOOT_REGION, function)
    line = arm.step(index, label)
    return line.count * line.hops, annotate(arm.dump, arm.symbols, line.region, function)


def equals_run(counted: CountedTrial, run_trial: Path, index: int, label: str) -> bool:
    """True if the counted trial gave the very values of the run's own."""
    mine, theirs = (
        (step_directory(top, index, label) / "stdout").read_bytes()
        for top in (counted.directory / "trial", run_trial)
    )
    return mine == theirs


def cost_json(found: Explanation, rows: list[Cost]) -> bytes:
    """The classes and functions of an operation's costs: counts over `operations`."""
    document = {
        "schema": COST_SCHEMA, "benchmark": found.benchmark, "baseline": found.baseline, "contender": found.contender,
        "releases": found.releases, "qemu": found.qemu, "operations": found.operations, "blocks": found.blocks,
        "classes": dict(CLASSES), "rows": rows,
    }  # fmt: skip
    return document_bytes(document)
