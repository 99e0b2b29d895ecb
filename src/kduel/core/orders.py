"""The order of items within each block, drawn from a seed: freely for two, balanced over places for more."""

import random
from collections.abc import Iterator

Order = list[int]

VARIED_BY = 4
"""Blocks of two items by which both orders have occurred: where only one has, a difference between the items is the
same as a difference between the places, and no verdict is possible."""


def shuffle(draw: random.Random, items: list[int]) -> list[int]:
    """The items in random order. Only Random.random() is drawn from, whose sequence Python keeps for a seed."""
    return [item for _, item in sorted((draw.random(), item) for item in items)]


def orders(count: int, draw: random.Random) -> Iterator[Order]:
    """An order of `range(count)` for each block, without end."""
    if count < 2:
        while True:
            yield list(range(count))
    yield from free_orders(draw) if count == 2 else balanced_orders(count, draw)


def free_orders(draw: random.Random) -> Iterator[Order]:
    """Two items: each order drawn by itself. The first four are drawn again while they are all the same."""
    start = [shuffle(draw, [0, 1]) for _ in range(VARIED_BY)]
    while all(order == start[0] for order in start):
        start = [shuffle(draw, [0, 1]) for _ in range(VARIED_BY)]
    yield from start
    while True:
        yield shuffle(draw, [0, 1])


def balanced_orders(count: int, draw: random.Random) -> Iterator[Order]:
    """Three items or more: Williams squares in random order of items and rows. Over a square each item has each place
    once, and over one (two for an odd number) it follows each other equally often."""
    while True:
        names = shuffle(draw, list(range(count)))
        for square in williams(count):
            for row in shuffle(draw, list(range(count))):
                yield [names[item] for item in square[row]]


def williams(count: int) -> list[list[Order]]:
    """The square of Williams (1949) for an even number; for an odd one a second, its mirror image, belongs to it."""
    first = [(place + 1) // 2 if place % 2 else (count - place // 2) % count for place in range(count)]
    square = [[(item + row) % count for item in first] for row in range(count)]
    return [square, [order[::-1] for order in square]] if count % 2 else [square]


def reversed_orders(count: int, draw: random.Random) -> Iterator[Order]:
    """Orders as the first edition drew them: every second block is the reverse of the one before it."""
    while True:
        order = shuffle(draw, list(range(count)))
        yield order
        yield order[::-1]
