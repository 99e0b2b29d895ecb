"""The plan: randomised complete blocks from a stored seed, written before the first trial and never changed."""

from __future__ import annotations

import hashlib
import random
import re

from msgspec import Struct

from kduel.core.experiment import Contender
from kduel.study.load import Study


class PlannedTrial(Struct, frozen=True, kw_only=True):
    """One line of plan.jsonl. `position` counts trials from 0 in time; `boot` is shared by trials of one boot."""

    id: str
    block: int
    position: int
    contender: str
    boot: int
    steps: list[int]
    """The order in which the study's steps run."""
    seed: int = 0
    """What the block's trials draw from, such as the conditions under which they count; the same for all arms."""


def same_boot(contender: Contender) -> tuple[str, str, str]:
    """What two contenders must share to run in one boot."""
    return contender.kernel, contender.modules, contender.cmdline


def slug(text: str) -> str:
    """A name that is safe as a file's: [A-Za-z0-9._+-] only."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60] or "contender"


def block_seed(seed: int, block: int) -> int:
    """The seed of a block's trials, below 2^48: a double holds it whole."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{block}".encode()).digest()[:6])


def make_plan(study: Study, seed: int) -> list[PlannedTrial]:
    """Every block of the study: one trial of every contender, in random order.

    Blocks come in pairs: the second runs in the reverse of the first's order, so that whatever the place within a
    block does to a value, it does equally often to each side. (Left to chance, five blocks of six may have one order:
    t statistics of few blocks take that for an effect; docs/statistics.md has the figures.)

    With the unit "load", the contenders of one boot stand together, boots and contenders in random order.
    Only Random.random() is drawn from, whose sequence Python promises to keep for a seed.
    """
    draw = random.Random(seed)

    def shuffled(items: list[int]) -> list[int]:
        return [item for _, item in sorted((draw.random(), item) for item in items)]

    groups: dict[object, list[int]] = {}
    for index, contender in enumerate(study.contenders):
        key = same_boot(contender) if study.blocks.unit == "load" else index
        groups.setdefault(key, []).append(index)
    boots = list(groups.values())

    total = study.blocks.fixed or study.blocks.max
    plan: list[PlannedTrial] = []
    boot = 0
    order: list[list[int]] = []
    for block in range(1, total + 1):
        steps = list(range(len(study.steps)))
        if study.blocks.order == "shuffled":
            steps = shuffled(steps)
        if block % 2:
            order = [shuffled(boots[group]) for group in shuffled(list(range(len(boots))))]
        else:
            order = [members[::-1] for members in reversed(order)]
        for members in order:
            for index in members:
                name = study.contenders[index].name
                position = len(plan)
                plan.append(
                    PlannedTrial(
                        id=f"{position + 1:04d}-b{block:02d}-{slug(name)}",
                        block=block,
                        position=position,
                        contender=name,
                        boot=boot,
                        steps=steps,
                        seed=block_seed(seed, block),
                    )
                )
            boot += 1
    return plan
