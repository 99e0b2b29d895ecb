"""The plan: randomised complete blocks from a stored seed, written before the first trial and never changed."""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kduel.core.editions import EDITION
from kduel.core.orders import orders, reversed_orders, shuffle
from kduel.core.text import check_names
from kduel.study.load import Study


class PlannedTrial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
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
    host: str = ""
    """The member of the fleet that runs the whole block; empty where a run has one machine."""

    def __post_init__(self) -> None:
        check_names(self.id, self.contender, self.host)


def slug(text: str) -> str:
    """A name that is safe as a file's: [A-Za-z0-9._+-] only."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60] or "contender"


def make_plan(study: Study, seed: int, edition: int = EDITION, hosts: Sequence[str] = ()) -> list[PlannedTrial]:
    """Every block of the study: one trial of every contender, in the orders of `kduel.core.orders`.

    With the unit "load", the contenders of one boot stand together, boots and contenders in random order. A plan of the
    first edition, where every second block reversed the order before it, follows from its seed as it did then.

    With `hosts`, blocks go round the machines in the given order, each block wholly on one machine. Each machine is a
    stratum whose orders are drawn from the seed and its name: they do not depend on which other machines take part.
    """
    if not hosts:
        strata = [Stratum(study, random.Random(seed), edition)]
    else:
        strata = [Stratum(study, random.Random(f"{seed}/{host}"), edition) for host in hosts]
    total = study.blocks.count
    plan: list[PlannedTrial] = []
    boot = 0
    for block in range(1, total + 1):
        turn = (block - 1) % len(strata)
        steps, boots = strata[turn].draw_block()
        for members in boots:
            for name in members:
                position = len(plan)
                plan.append(
                    PlannedTrial(
                        id=f"{position + 1:04d}-b{block:02d}-{slug(name)}",
                        block=block,
                        position=position,
                        contender=name,
                        boot=boot,
                        steps=steps,
                        # Below 2^48: a double holds it whole.
                        seed=int.from_bytes(hashlib.sha256(f"{seed}/{block}".encode()).digest()[:6]),
                        host=hosts[turn] if hosts else "",
                    )
                )
            boot += 1
    return plan


class Stratum:
    """The blocks of one machine: its orders of boots, of contenders within a boot, and of steps."""

    def __init__(self, study: Study, draw: random.Random, edition: int) -> None:
        self.study, self.draw = study, draw
        generator = reversed_orders if edition == 1 else orders
        groups: dict[object, list[str]] = {}
        for index, contender in enumerate(study.contenders):
            key = (
                (contender.kernel, contender.modules, contender.cmdline, *sorted(contender.machine.items()))
                if study.blocks.unit == "load"
                else index
            )
            groups.setdefault(key, []).append(contender.name)
        self.boots = list(groups.values())
        self.order_of_boots: Iterator[list[int]] = generator(len(self.boots), draw)
        self.orders_within = [generator(len(members), draw) for members in self.boots]

    def draw_block(self) -> tuple[list[int], list[list[str]]]:
        """The next block: the order of the steps, and the contenders by boot."""
        steps = list(range(len(self.study.steps)))
        if self.study.blocks.order == "shuffled":
            steps = shuffle(self.draw, steps)
        boots = []
        for group in next(self.order_of_boots):
            members = self.boots[group]
            boots.append([members[member] for member in next(self.orders_within[group])])
        return steps, boots
