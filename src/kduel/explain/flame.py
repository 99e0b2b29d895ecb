"""A differential flame graph: call chains as boxes, their widths the instructions, their colours the differences.

A box is as wide as what both kernels do below it, the larger of the two counted at each place, so that what only one
of them does is visible too. Red: the contender takes more there; blue: fewer; a hatched edge: only one of the kernels
reaches it. No script: the figures are in each box's title.
"""

from collections.abc import Callable, Iterator, Mapping
from html import escape

from msgspec import Struct

from kduel.explain.compare import Explanation
from kduel.explain.show import count_unit, per_operation

WIDTH, ROW, TOP, MARGIN = 1160, 17, 46, 8
NARROWEST = 0.6
"""Boxes below this many pixels are left out; their parents' figures hold them."""
CHARACTER = 6.6


class Box:
    """A function in one place of the tree, with all below it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.own = (0, 0)
        self.sums = (0, 0)
        self.wide = 0
        self.inner: dict[str, Box] = {}

    def finish(self) -> None:
        """Add up what is below."""
        for box in self.inner.values():
            box.finish()
        inner = list(self.inner.values())
        self.sums = (self.own[0] + sum(box.sums[0] for box in inner), self.own[1] + sum(box.sums[1] for box in inner))
        self.wide = max(self.own) + sum(box.wide for box in inner)


class Flame(Struct, frozen=True, kw_only=True):
    name: str
    """Name of the box below all chains."""
    title: str
    note: str
    """A line below the title, after the meaning of the colours."""
    contender: str
    stacks: Mapping[str, tuple[int, int]]
    """Call chains, `context;outer;...;inner`, to baseline and contender."""
    figures: Callable[[int, int], str]
    """Both amounts of a box and their difference, with their unit."""


def chain_tree(name: str, stacks: Mapping[str, tuple[int, int]]) -> Box:
    root = Box(name)
    for chain, counts in stacks.items():
        box = root
        for part in chain.split(";"):
            box = box.inner.setdefault(part, Box(part))
        box.own = (box.own[0] + counts[0], box.own[1] + counts[1])
    root.finish()
    return root


def as_svg(found: Explanation) -> str:
    one, other = found.total()
    n = found.operations

    def figures(one: int, other: int) -> str:
        return f"{per_operation(one, n)} → {per_operation(other, n)} ({per_operation(other - one, n, True)}) {count_unit(found)}"

    return draw_flame(
        Flame(
            name=found.benchmark,
            title=f"{found.benchmark}: {per_operation(one, n)} {count_unit(found)} in {found.baseline}, "
            f"{per_operation(other, n)} in {found.contender} ({per_operation(other - one, n, True)})",
            note=f" · {found.counted_by()}" if found.qemu else "",
            contender=found.contender,
            stacks=found.stacks,
            figures=figures,
        )
    )


def draw_flame(flame: Flame) -> str:
    """The picture. All names are escaped; it refers to nothing outside itself."""
    root = chain_tree(flame.name, flame.stacks)
    boxes = list(_place_boxes(root, 0, float(MARGIN), (WIDTH - 2 * MARGIN) / max(root.wide, 1)))
    depth = max((level for _, level, _, _ in boxes), default=0)
    height = TOP + (depth + 1) * ROW + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(flame.title, quote=True)}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">',
        "<defs>"
        '<pattern id="kduel-more" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="6" height="6" fill="#e2604a"/><rect width="2" height="6" fill="#b93d2b"/></pattern>'
        '<pattern id="kduel-fewer" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="6" height="6" fill="#5b8fd6"/><rect width="2" height="6" fill="#3a69ab"/></pattern></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="18" font-size="13" font-weight="bold" fill="#1a1a1a">{escape(flame.title)}</text>',
        f'<text x="{MARGIN}" y="35" fill="#555555">red: {escape(flame.contender)} takes more; blue: fewer; hatched: '
        f"reached by only one of the two; width: the larger of both{escape(flame.note)}</text>",
    ]
    lines += [_draw_box(box, level, x, width, flame.figures) for box, level, x, width in boxes]
    return "\n".join([*lines, "</svg>", ""])


def _place_boxes(box: Box, level: int, x: float, scale: float) -> Iterator[tuple[Box, int, float, float]]:
    yield box, level, x, box.wide * scale
    for inner in sorted(box.inner.values(), key=lambda one: one.name):
        width = inner.wide * scale
        if width >= NARROWEST:
            yield from _place_boxes(inner, level + 1, x, scale)
        x += width


def _draw_box(box: Box, level: int, x: float, width: float, figures: Callable[[int, int], str]) -> str:
    y = TOP + level * ROW
    one, other = box.sums
    room = int((width - 6) / CHARACTER)
    name = escape(box.name if len(box.name) <= room else box.name[: max(room - 1, 0)] + "…") if room >= 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + 11.3:.1f}" fill="#101010">{name}</text>' if name else ""
    return (
        f"<g><title>{escape(f'{box.name}: {figures(one, other)}')}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.4, 0.3):.1f}" height="{ROW - 1}" rx="1.5" '
        f'fill="{box_colour(one, other)}"/>{label}</g>'
    )


def box_colour(one: int, other: int) -> str:
    """From blue (fewer) over grey (equal) to red (more); a pattern where only one of the kernels comes there."""
    if not one or not other:
        return "url(#kduel-more)" if other else "url(#kduel-fewer)"
    share = max(-1.0, min(1.0, 1.6 * (other - one) / max(one, other)))
    grey, end = (226, 226, 222), (226, 96, 74) if share > 0 else (91, 143, 214)
    mixed = (round(a + (b - a) * abs(share) ** 0.7) for a, b in zip(grey, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
