"""`kduel run`: from two names, or a study file, to a verdict and a report."""

from pathlib import Path
from typing import Any

import click
import msgspec

from kduel.cli.advice import advise_in_words
from kduel.cli.exact_first import exact_first_option
from kduel.cli.execute import RunRequest, carry_out
from kduel.cli.futility import Choice, futility_option
from kduel.cli.named_study import is_study_file, read_named_study
from kduel.cli.options import (
    NamedPath,
    TurnsOption,
    Word,
    contender_arguments,
    delta_option,
    fail_on_option,
    machine_help,
    notify_option,
    offline_option,
    option,
    output_path_option,
    plugin_option,
    quiet_option,
    suite_option,
)
from kduel.cli.own_study import EXACT_MACHINE, own_study, own_study_options
from kduel.core.errors import InputError
from kduel.core.turns import Turns
from kduel.study.file import parse_study
from kduel.study.load import assemble, read_machine
from kduel.study.sweep import sweep_tables


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    contenders: tuple[str, ...]
    suite: str | None
    benchmarks: tuple[str, ...]
    line: str | None
    regex: str | None
    unit: str | None
    better: str | None
    blocks: int | None
    max_blocks: int | None
    machine: str
    fleet: str
    out: Path | None
    seed: int | None
    aa: int | None
    delta: float | None
    layouts: int | None
    turns: Turns | None
    single: bool
    sweep: tuple[str, ...]
    dry_run: bool
    exact_first: bool | None
    offline: bool
    futility: Choice | None
    fail_on: str | None
    notify: str
    quiet: bool


@click.command("run")
@contender_arguments("contenders", "BASELINE CONTENDER... | STUDY.toml")
@suite_option
@own_study_options
@option("--blocks", "Fixed sample size: exactly N blocks, one analysis at the end.", click.IntRange(1), "N")
@option("--max-blocks", "Stop when every primary metric is decided, or after N blocks.", click.IntRange(1), "N")
@plugin_option("--machine", "machines", machine_help, Word(), "SPEC", default="")
@plugin_option(
    "--fleet", "fleets",
    "Distribute the blocks over several machines: KIND[:key=value,...] or FILE.toml; `kduel list fleets` shows all.",
    Word(), "SPEC", default="",
)  # fmt: skip
@output_path_option("--out", "Directory of the run.  [default: kduel-runs/NAME]", NamedPath(), "DIR")
@option(
    "--seed", "Seed of the random order and of the conditions.  [default: drawn, and stored; machine icount: 1]",
    click.IntRange(0), "N",
)  # fmt: skip
@option("--aa", "A/A test: run one kernel as N contenders; no difference should be found.", click.IntRange(2), "N")
@delta_option("the suite's or study's, else 1")
@option("--layouts", "Machine icount: repeat with N address-space layouts.", click.IntRange(1), "N")
@option(
    "--turns",
    "All contenders of a block are alive at once; in a step one runs at any moment, and they change over every MS milliseconds; 0: "
    "after each slice.  [default: the study's, else 50 where guests are emulated and memory suffices, else off]",
    TurnsOption(),
    "MS|off",
)
@option("--single", "Machine icount: count each operation once, not under several conditions.", is_flag=True)
@option(
    "--sweep",
    "Vary a parameter of the benchmarks that have it, a key of the contenders, or a setting of the machine (machine.cpus), "
    "over these values: a factor; repeatable.", metavar="NAME=V1,V2,...", multiple=True,
)  # fmt: skip
@option("--dry-run", "Show contenders, steps, number of trials and their time; begin nothing.", is_flag=True)
@exact_first_option
@offline_option
@futility_option
@fail_on_option
@notify_option
@quiet_option
@advise_in_words
def command(**given: Any) -> None:
    """Boot each contender many times in random order, run the same benchmarks, and report which one is faster, by how
    much, and how certain that is.

    A contender is a kernel: debian:6.12, debian:6.12-rt, debian:7-cloud, tree:DIR, host, a vmlinuz, .deb files. The
    first one is the baseline. A study file can set command lines, schedulers, benchmarks and machines, too; `kduel
    init` writes one. An interrupted run continues with the same command, or with `kduel resume`.

    \b
    kduel run debian:6.1 debian:6.12
    kduel run tree:linux.orig tree:linux --suite exact
    kduel run debian:6.1 debian:6.12 --suite generations --out study
    kduel run debian:6.1 debian:6.12 --benchmark redis
    kduel run --aa 2 debian:6.12
    kduel run old.deb new.deb --command ./bench --regex 'took ([0-9.]+) ms'
    kduel run debian:6.1 debian:6.12 --sweep threads=1,2,4
    kduel run debian:6.12 --sweep policy=other,fifo:50
    kduel run debian:6.12 --sweep machine.cpus=2,4,8 -b hackbench
    kduel run STUDY.toml --machine qemu:accel=tcg
    """
    options = RunOptions(**given)
    request = read_request(options)
    if options.dry_run:
        from kduel.cli.dry_run import describe

        click.echo(describe(request), nl=False)
    else:
        carry_out(request)


def read_request(options: RunOptions) -> RunRequest:
    """The study that the options ask for, and how it is to be carried out. Raises InputError."""
    blocks, machine = options.blocks, options.machine
    if blocks is not None and options.max_blocks is not None:
        raise InputError(
            "--blocks and --max-blocks exclude each other", "Give --blocks for a fixed number of blocks."
        )
    is_file = options.aa is None and is_study_file(options.contenders)
    named = machine or options.suite or options.benchmarks or is_file
    if (options.layouts is not None or options.single) and not named:
        machine = EXACT_MACHINE
    own = own_study(options.benchmarks, options.line, options.regex, options.unit, options.better)
    text, file, origin = read_named_study(options.contenders, options.suite, options.aa, machine, own)
    if options.sweep:
        text += sweep_tables(options.sweep, file.benchmark, own.options if own else ())
        file = msgspec.structs.replace(parse_study(text, origin), blocks=file.blocks)
    if options.layouts is not None:
        kind = read_machine(file.machine, machine)[0]
        if kind != EXACT_MACHINE:
            raise InputError(
                f"--layouts is of the machine {EXACT_MACHINE}, and this study runs on {kind}",
                f"Leave it out, or count: --suite exact-quick --layouts {options.layouts}.",
            )
        machine = f"{machine or kind}{',' if ':' in machine else ':'}layouts={options.layouts}"
        # A block each.
        blocks = options.layouts if blocks is None and options.max_blocks is None else blocks
    study = assemble(
        file, text, origin, machine=machine, fixed_blocks=blocks, max_blocks=options.max_blocks, delta=options.delta,
        single=options.single, turns=options.turns,
    )  # fmt: skip
    return RunRequest(
        study=study, out=options.out, origin=origin, seed=options.seed, offline=options.offline,
        futility=options.futility, fail_on=options.fail_on, notify=options.notify, quiet=options.quiet,
        exact_first=options.exact_first, counts_by_default=not (is_file or options.aa or machine or own),
        fleet=options.fleet,
    )  # fmt: skip
