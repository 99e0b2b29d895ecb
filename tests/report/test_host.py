"""What the host did, in the reports."""

from __future__ import annotations

import html
import json
import re

import pytest
from examples import exact, simulated
from msgspec import structs

from kduel.core.experiment import Void
from kduel.core.host import HostStep
from kduel.core.results import Results
from kduel.report import report_format
from kduel.report.content.caveats import caveats
from kduel.report.content.host import HostFigures, figures, host_line


def busy(wait: float | None = 1.0) -> Results:
    """Trials during which the host had other work, every second one more of it."""
    results = simulated(blocks=3)
    for number, trial in enumerate(results.trials):
        other = 0.5 if number % 2 else 0.25
        trial.host = {
            "cpu": HostStep(seconds=2.0, vcpu_run_s=3.0, vcpu_wait_s=wait, other_work=other),
            "pipe": HostStep(seconds=6.0, vcpu_run_s=3.0, vcpu_wait_s=wait, other_work=other),
        }
    return results


def drawn_strip(results: Results) -> tuple[str, list[float]]:
    """The unit of the page's strip of the host, and its values, read off its axis; none without a strip."""
    charts = re.findall(
        r'<svg class="chart course".*?</g><text [^>]*>trial, in', report_format("html").render(results), re.S
    )
    if len(charts) < 2:
        return "", []
    (unit,) = re.findall(r"<text dy=\"-8\">(.*?)</text>", charts[1])
    axis = re.findall(r'<text y="([0-9.]+)%">([0-9]+)</text>', charts[1].split("</g>")[0])
    (low, first), (high, last) = [(float(text), float(y)) for y, text in (axis[0], axis[-1])]
    dots = re.findall(r"M([0-9]+) ([0-9]+)h0", charts[1])
    ordered = sorted((int(x), int(y)) for x, y in dots)
    return unit, [low + (y / 10 - first) / (last - first) * (high - low) for _, y in ordered]


def test_a_line_says_what_the_host_did() -> None:
    line = host_line(busy())
    low, high = 25, 50
    assert f"other work took 38 % ({low} to {high} % by trial) of the CPUs" in line
    assert "the guest waited for a CPU for 25 % of its runnable time" in line
    for form in ("text", "markdown", "mail", "html"):
        assert "other work took 38 %" in " ".join(report_format(form).render(busy()).split())


def test_what_the_host_disturbed_is_told_once_in_the_same_line() -> None:
    results = busy()
    for contender, code in (
        ("debian-6.1", "host-disturbed"),
        ("debian-6.12", "host-disturbed"),
        ("debian-6.12", "emulator-fault"),
    ):
        again = next(trial for trial in results.trials if trial.contender == contender)
        results.repeated.append(structs.replace(again, status="void", void=Void(code, "why")))
    assert host_line(results).endswith(
        "of its runnable time, and 2 disturbed boots were put aside (1 of debian-6.1, 1 of debian-6.12)."
    )
    said = caveats(results)
    assert sum("made again" in line for line in said) == 1 and sum("disturbed" in line for line in said) == 1
    assert any("1 boot made again (emulator-fault): 1 of debian-6.12" in line for line in said)
    for trial in results.trials:
        trial.host = {}
    assert host_line(results).startswith("On the host during the trials: 2 disturbed boots were put aside (")


def test_what_was_not_recorded_is_not_shown_as_zero() -> None:
    assert host_line(simulated(blocks=3)) == ""
    assert figures(busy(wait=None).trials[0]) == HostFigures(other=25.0)
    assert "guest waited" not in host_line(busy(wait=None))
    assert "What the host did meanwhile" not in report_format("html").render(simulated(blocks=3))


def inside(**more: float | int | None) -> Results:
    """Trials of a real machine, which records itself: times by thread and other work are unknown."""
    results = simulated(blocks=3)
    for number, trial in enumerate(results.trials):
        pressed = 0.5 if number % 2 else 0.2
        trial.host = {
            "cpu": HostStep(seconds=2.0, psi_cpu_some=pressed, **more),  # type: ignore[arg-type]
            "pipe": HostStep(seconds=6.0, psi_cpu_some=pressed, **more),  # type: ignore[arg-type]
        }
    return results


@pytest.mark.slow
def test_a_real_machine_has_a_strip_and_a_line_of_what_it_knows() -> None:
    results = inside(psi_io_some=0.9, psi_memory_some=0.9, interrupts=100)
    assert host_line(results) == (
        "On the machine during the trials: some task, the benchmark's included, waited for a CPU for 35 % (20 to 50 % by "
        "trial) of the time."
    )
    page = report_format("html").render(results)
    assert "What the machine did meanwhile" in page and "What the host did meanwhile" not in page
    unit, values = drawn_strip(results)
    assert values == pytest.approx([50.0 if number % 2 else 20.0 for number in range(len(results.trials))], abs=0.2)
    assert "some task waited" in unit and "guest" not in unit
    for form in ("text", "markdown", "mail", "html"):
        assert "some task, the benchmark's included" in " ".join(
            html.unescape(report_format(form).render(results)).split()
        )


def test_heat_and_steal_are_told_where_they_matter() -> None:
    line = host_line(inside(steal_s=0.5, throttled=2))
    assert "other virtual machines took 12.5 CPU seconds in 100 seconds" in line  # 0.5 of 2 s, and of 6 s: 1.0 of 8
    assert line.endswith(f", and CPUs were slowed down for their heat {4 * 6} times in 6 trials.")
    assert host_line(inside(steal_s=0.001, throttled=0)) == host_line(inside())


def test_pressure_on_disk_and_memory_is_told_of_a_host_where_it_matters() -> None:
    results = busy()
    for share, told in ((0.04, False), (0.06, True)):
        for trial in results.trials:
            trial.host = {
                name: structs.replace(step, psi_io_some=share, psi_memory_some=share / 2)
                for name, step in trial.host.items()
            }
        assert ("some task waited for a disk for 6 % of the time" in host_line(results)) is told
        assert "memory" not in host_line(results)


def test_a_record_of_some_steps_only_knows_nothing_of_the_trial() -> None:
    results = inside(throttled=1)
    for trial in results.trials:
        trial.host["pipe"] = HostStep(seconds=6.0)
    assert figures(results.trials[0]) == HostFigures()
    assert host_line(results) == "" and drawn_strip(results) == ("", [])


def test_an_exact_count_does_not_depend_on_the_host() -> None:
    results = exact()
    for trial in results.trials:
        trial.host = {"count": HostStep(seconds=2.0, vcpu_run_s=3.0, vcpu_wait_s=1.0, other_work=0.5)}
    assert host_line(results) == ""


def test_the_page_has_a_strip_of_the_host_by_trial() -> None:
    results = busy()
    unit, values = drawn_strip(results)
    assert "guest waited" in unit and values == pytest.approx([25.0] * len(results.trials), abs=0.2)
    assert drawn_strip(simulated(blocks=3)) == ("", [])


def test_json_has_the_record_of_each_step() -> None:
    trial = json.loads(report_format("json").render(busy()))["trials"][0]
    assert trial["host"]["cpu"] == {
        "seconds": 2.0,
        "vcpu_run_s": 3.0,
        "vcpu_wait_s": 1.0,
        "other_wait_s": None,
        "psi_cpu_some": None,
        "psi_io_some": None,
        "psi_memory_some": None,
        "steal_s": None,
        "interrupts": None,
        "clock_mhz": None,
        "throttled": None,
        "other_work": pytest.approx(0.25),
    }
