"""Seven kinds of run whose pages differ: what the tests of the page look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from examples import Results, exact, published, simulated, three
from factor_runs import HEAD, JOB, KERNELS, SIZE, THP, make_factor_run, with_interaction

from kduel.core.host import HostStep
from kduel.judge.evaluate import judge_path, judge_run

ROOT = Path(__file__).resolve().parents[2]


def with_exact(_: Path) -> Results:
    """A timed run with an exact part, during which the host had other work."""
    whole = simulated()
    whole.exact = exact()
    for number, trial in enumerate(whole.trials):
        trial.host = {"cpu": HostStep(seconds=2.0, vcpu_run_s=3.0, vcpu_wait_s=number / 10, other_work=0.25)}
    return whole


def matrix(_: Path) -> Results:
    """Three policies, three loads, three numbers of processes."""
    return judge_path(ROOT / "studies/published/policies.csv")


def factors(place: Path) -> Results:
    """Two kernels, two settings, three sizes."""
    job = JOB + 'command = "job"\n'
    return judge_run(
        make_factor_run(place / "factors", HEAD + KERNELS + THP + SIZE + job, with_interaction, blocks=6)
    )


def merged(place: Path) -> Results:
    """Two runs on three machines, as one."""
    from simulated import Clock, Machine, SimulatedFleet, run

    from kduel.store.merged import merge

    parts = []
    for seed, names in enumerate(("ab", "bc"), 1):
        parts.append(place / f"part{seed}")
        run(SimulatedFleet({name: Machine(void=0.0) for name in names}, Clock()), parts[-1], "fixed = 12", seed=seed)
    merge(parts, place / "merged")
    return judge_run(place / "merged")


SEVEN: dict[str, Callable[[Path], Results]] = {
    "default": with_exact,
    "exact": lambda _: exact(),
    "three": lambda _: three(),
    "matrix": matrix,
    "factors": factors,
    "import": lambda _: published(),
    "merged": merged,
}
