"""A study made concrete."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from kduel.cli.bundle import command as bundle
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress
from kduel.kernels import Kernel
from kduel.machines import Machine, MachineKind, machine_kind
from kduel.run import prepare
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import assemble

STUDY = """
[study]
name = "matrix"
[[contender]]
kernel = "one"
[[contender]]
kernel = ["one", "two", "broken"]
cmdline = [{words}]
[[benchmark]]
use = "sysbench-cpu"
"""


class Enough(Exception):
    """The machine would be prepared now."""


class Made:
    """A machine that stands ready."""

    exact = reboots = True
    timing_warning = ""
    emulated = behaviour_only = False
    why_no_turns = Machine.why_no_turns


class Kind:
    """A machine kind that counts how often it is asked for a kernel."""

    name, counts, exact = "letters", False, True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.arms: list[str] = []

    def read_settings(self, table: dict[str, Any]) -> dict[str, Any]:
        return table

    def read_all_settings(self, *_: object) -> list[Any]:
        return []

    def kernel(self, spec: str, **_: object) -> Kernel:
        self.asked.append(spec)
        if spec == "broken":
            raise NotMeasuredError("it does not build")
        return Kernel(spec=spec, release="6.12", image=Path("image"), sha256="0" * 64)

    def check_architecture(self, *_: object) -> None:
        pass

    def prepare(self, _: object, arms: list[Any], *__: object, **___: object) -> None:
        self.arms = [arm.contender.name for arm in arms]
        raise Enough


def test_a_kernel_is_resolved_once_for_all_contenders_that_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = Kind()
    monkeypatch.setattr(prepare, "machine_kind", lambda _: kind)
    text = STUDY.format(words=", ".join(f'"word={number}"' for number in range(10)))
    study = assemble(parse_study(text, "study"), text, "study")
    assert len(study.contenders) == 31
    with pytest.raises(Enough):
        prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())
    assert kind.asked == ["one", "two", "broken"]
    assert len(kind.arms) == 21


COUNTED = STUDY.replace('use = "sysbench-cpu"', 'use = "kbench"\nmode = "exact"\noperation = ["pipe", "futex"]')


@pytest.mark.parametrize("machine", ["qemu", "ssh:place=host"])
def test_instructions_are_not_counted_by_a_clock_of_time(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = COUNTED.format(words='"word=1"')
    study = assemble(parse_study(text, "study"), text, "study", machine=machine)
    monkeypatch.setattr(MachineKind, "kernel", lambda *_, **__: pytest.fail("a kernel is fetched for nothing"))
    with pytest.raises(InputError, match=r"pipe and 1 more benchmark would count instructions.*counts time") as error:
        prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())
    assert "--machine icount" in error.value.remedy


def test_the_counting_machine_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = COUNTED.format(words='"word=1"')
    study = assemble(parse_study(text, "study"), text, "study", machine="icount")
    fake = Kind()
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: fake.kernel(spec))
    monkeypatch.setattr(type(machine_kind("icount")), "prepare", lambda _, *given, **__: fake.prepare(*given))
    with pytest.raises(Enough):
        prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())


@pytest.mark.parametrize(
    ("machine", "text", "warned"), [("icount", STUDY, True), ("qemu", STUDY, False), ("icount", COUNTED, False)]
)
def test_times_by_a_clock_that_counts_instructions_are_called_virtual(
    machine: str, text: str, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text.replace('kernel = ["one", "two", "broken"]', 'kernel = "two"').format(words='"word=1"')
    study = assemble(parse_study(text, "study"), text, "study", machine=machine)
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: Kind().kernel(spec))
    monkeypatch.setattr(type(machine_kind(machine)), "prepare", lambda *_, **__: Made())
    made = prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress()).machine
    assert ("virtual time" in made.timing_warning) == warned
    assert ('mode = "exact"' in made.timing_warning) == warned


def test_times_decide_nothing_where_a_guest_has_more_cpus_than_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STUDY.replace('kernel = ["one", "two", "broken"]', 'kernel = "two"').format(words='"word=1"')
    text += '\n[[benchmark]]\nuse = "kload"\nprimary = ["wall", "involuntary_switches"]\n'
    study = assemble(parse_study(text, "study"), text, "study", machine="qemu")
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: Kind().kernel(spec))
    for behaviour_only in (False, True):
        machine = Made()
        machine.behaviour_only = behaviour_only
        monkeypatch.setattr(type(machine_kind("qemu")), "prepare", lambda *_, made=machine, **__: made)
        ready = prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())
        primary = {step.benchmark: step.primary for step in ready.study.steps}
        expected = [] if behaviour_only else ["wall"]
        assert primary["kload"] == [*expected, "involuntary_switches"]


def test_a_bundle_looks_for_each_kernel_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the timed part and for the exact one: an archive may have changed between two looks."""
    fake = Kind()
    machine = SimpleNamespace(
        reboots=True,
        emulated=False,
        behaviour_only=False,
        timing_warning="",
        close=lambda: None,
        why_no_turns=lambda: "none here",
    )
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: fake.kernel(spec))
    prepared = []
    for kind in ("qemu", "icount"):
        monkeypatch.setattr(
            type(machine_kind(kind)), "prepare", lambda self, *_, **__: prepared.append(self.name) or machine
        )
    done = CliRunner().invoke(bundle, ["one", "two", "--quiet", "-o", str(tmp_path / "bundle.tar")])
    assert done.exit_code == 0, done.output
    assert prepared == ["qemu", "icount"]
    assert fake.asked == ["one", "two"]


@pytest.mark.parametrize("machine", ["qemu", "icount"])
def test_a_kernel_of_another_architecture_is_refused_before_anything_is_made_for_it(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STUDY.format(words='"word=1"')
    study = assemble(parse_study(text, "study"), text, "study", machine=machine)
    found = Kernel(
        spec="debian:6.1-arm64", release="6.1", image=Path("image"), sha256="0" * 64, architecture="aarch64"
    )
    monkeypatch.setattr("kduel.machines.resolve", lambda *_, **__: found)
    means = {"cache": Cache(tmp_path), "progress": Progress()}
    with pytest.raises(InputError, match=r"debian:6\.1-arm64 is a kernel for aarch64") as error:
        prepare.get_kernels(prepare.read_study(study), **means)
    assert "kduel list boards" in error.value.remedy


ROOM = """
[study]
name = "room"
[machine]
kind = "qemu"
memory = "512M"
disk = "1G"
[[contender]]
kernel = ["one", "two"]
[[benchmark]]
use = "{use}"
{words}
"""


@pytest.mark.parametrize(
    ("use", "words", "said"),
    [
        ("memory-pressure", "size = 600\nlimit = 512", "512M"),
        ("memory-pressure", "size = 1024\nlimit = 20", "takes 522 MiB of memory, .*memory = '512M'.*"),
        ("memory-pressure", 'size = 512\nswap = "disk"', "takes 1,024 MiB of its scratch disk, .*disk = '1G'"),
        ("memory-pressure", 'size = 1024\nmemory = "file"', "takes 1,024 MiB of its scratch disk"),
        ("fio", 'size = "256M"\nnumjobs = 4', "scratch disk"),
        ("sysbench-fileio", 'file_total_size = "1G"', "scratch disk"),
    ],
)
def test_what_a_machine_has_no_room_for_is_refused_before_anything_is_fetched(
    use: str, words: str, said: str
) -> None:
    text = ROOM.format(use=use, words=words)
    with pytest.raises(InputError, match=said) as error:
        prepare.read_study(assemble(parse_study(text, "study"), text, "study"))
    assert f"of [[benchmark]] {use} smaller, or " in error.value.remedy


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("memory-pressure", "size = 900\nlimit = 20"),
        ("memory-pressure", 'size = 511\nswap = "zswap"'),
        ("memory-pressure", 'size = 1023\nmemory = "file"'),
        ("fio", 'size = "255M"\nnumjobs = 4'),
    ],
)
def test_what_a_machine_has_room_for_is_not_refused(use: str, words: str) -> None:
    text = ROOM.format(use=use, words=words)
    assert prepare.read_study(assemble(parse_study(text, "study"), text, "study"))


@pytest.mark.parametrize("turns", ["50", "0"])
def test_a_machine_that_takes_no_turns_refuses_them(
    turns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STUDY.replace('kernel = ["one", "two", "broken"]', 'kernel = "two"').format(words='"word=1"')
    text += f"[blocks]\nturns = {turns}\n"
    study = assemble(parse_study(text, "study"), text, "study", machine="qemu")
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: Kind().kernel(spec))
    monkeypatch.setattr(type(machine_kind("qemu")), "prepare", lambda *_, **__: Made())
    with pytest.raises(InputError, match="qemu cannot take turns: it carries out one boot after the other"):
        prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())


@pytest.mark.parametrize(("turns", "pieces"), [("50", 2), ('"off"', 4)])
def test_guests_run_the_slices_that_turns_decide(
    turns: str, pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a guest runs is what the run reads: other slices would be run by all guests at once."""
    text = STUDY.replace('kernel = ["one", "two", "broken"]', 'kernel = "two"').format(words='"word=1"')
    text = f"{text}time = 8\n[blocks]\nturns = {turns}\nslices = 4\nslices_in_turns = 2\n"
    study = assemble(parse_study(text, "study"), text, "study", machine="qemu")
    monkeypatch.setattr(MachineKind, "kernel", lambda _, spec, **__: Kind().kernel(spec))
    made = Made()
    made.why_no_turns, made.why_no_room = lambda: "", lambda _: ""
    monkeypatch.setattr(type(machine_kind("qemu")), "prepare", lambda *_, **__: made)
    ready = prepare.make_ready(study, cache=Cache(tmp_path), progress=Progress())
    assert ready.study.blocks.slices == pieces
    script = ready.setup.script(study.contenders[0], [0]).text
    assert re.findall(r"^step (\S+)", script, re.MULTILINE) == [
        f"01-sysbench-cpu-1t-8s.s{piece}" for piece in range(1, pieces + 1)
    ]
    assert script.count(f"--time={8 // pieces} ") == pieces


@pytest.mark.parametrize(
    ("cpus", "speed", "refused"), [(4, "", True), (4, "speed = 9", False), (2, "speed = 73", True)]
)
def test_a_speed_that_exact_cpus_have_not_is_named_before_anything_is_booted(
    cpus: int, speed: str, refused: bool, unpack: Callable[[str], Path]
) -> None:
    text = ROOM.format(use="tasks", words=f'mix = "audio"\n{speed}').replace(
        'kind = "qemu"\nmemory = "512M"\ndisk = "1G"', f'kind = "icount"\nscheduling = true\ncpus = {cpus}'
    )
    study = assemble(parse_study(text, "study"), text, "study")
    if not refused:
        assert prepare.read_study(study)
        return
    with pytest.raises(InputError, match=f"{cpus} exact CPUs have {36 // cpus} each") as error:
        prepare.read_study(study)
    assert f"Give speed = {36 // cpus} in" in error.value.remedy
    # One that was begun before this was refused goes on.
    assert prepare.read_study(study, lock=RunDir.open(unpack("icount")).lock())
