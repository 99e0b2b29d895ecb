"""The picture of docs/turns.md: a simulated host under guests one after the other, and in turns.

    .venv/bin/python perf/turns_picture.py

Speed noise and spells of 20 s as in perf/turns_calibration.py, ten blocks, one step of four slices. Seeded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import vl_convert
from turns_calibration import BOOT, IN_TURNS, NOISE, Block, Calm, Floats, Generator, Spells, Wandering, block_apart

PICTURE = Path(__file__).parents[1] / "docs/turns.svg"
BLOCKS, SEED = 10, 11
COLOURS = {"kernel A": "#3b6fb6", "kernel B": "#d9731a", "B over A": "#2c8c6b"}


class Noisy(Calm):
    """Speed noise and spells together."""

    def __init__(self, rows: int, draw: Generator) -> None:
        super().__init__(rows, draw)
        self.parts = (Wandering(rows, draw), Spells(20.0, 20.0, rows, draw))

    def bins(self, count: int) -> Floats:
        return self.parts[0].bins(count) * self.parts[1].bins(count)

    def rest(self, seconds: float) -> None:
        for part in self.parts:
            part.rest(seconds)


def rows_of(block: Block, title: str) -> list[dict[str, Any]]:
    """Per cent from the mean, by slice; kernel B is as fast as A."""
    draw = np.random.default_rng(SEED)
    speed = Noisy(1, draw)
    values = np.concatenate([block(speed, 1, 2, draw)[0] for _ in range(BLOCKS)], axis=1)
    logs = np.log(values) + NOISE * draw.standard_normal(values.shape)
    slices = values.shape[1] // BLOCKS
    logs += np.repeat(BOOT * draw.standard_normal((2, BLOCKS)), slices, axis=1)
    series = {"kernel A": logs[0], "kernel B": logs[1], "B over A": logs[1] - logs[0]}
    return [
        {
            "way": title,
            "what": "ratio" if name == "B over A" else "values",
            "name": name,
            "block": 1 + number / slices,
            "pct": float(100 * value),
        }
        for name, found in series.items()
        for number, value in enumerate(found - found.mean())
    ]


def panel(rows: list[dict[str, Any]], way: str, what: str, title: str) -> dict[str, Any]:
    """One of the four charts."""
    chosen = [row for row in rows if row["way"] == way and row["what"] == what]
    names = list(dict.fromkeys(row["name"] for row in chosen))
    return {
        "title": {"text": title, "anchor": "start", "fontSize": 12},
        "width": 380,
        "height": 120,
        "data": {"values": chosen},
        "mark": {"type": "line", "point": {"size": 14}, "strokeWidth": 1.2},
        "encoding": {
            "x": {"field": "block", "type": "quantitative", "title": "block", "scale": {"domain": [1, BLOCKS + 1]}},
            "y": {"field": "pct", "type": "quantitative", "title": "%", "scale": {"domain": [-75, 75]}},
            "color": {
                "field": "name",
                "type": "nominal",
                "scale": {"domain": names, "range": [COLOURS[name] for name in names]},
                "legend": {"title": None, "orient": "top-right", "direction": "horizontal"},
            },
        },
    }


def main() -> None:
    """Write the picture."""
    ways = {"One boot after the other": block_apart, "In turns of 50 ms": IN_TURNS}
    rows = [row for title, block in ways.items() for row in rows_of(block, title)]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"font": "sans-serif", "view": {"stroke": "#ccc"}},
        "resolve": {"scale": {"color": "independent"}},
        "hconcat": [
            {
                "resolve": {"scale": {"color": "independent"}},
                "vconcat": [panel(rows, way, "values", way), panel(rows, way, "ratio", "Their ratio")],
            }
            for way in ways
        ],
    }
    PICTURE.write_text(vl_convert.vegalite_to_svg(spec), "utf-8")


if __name__ == "__main__":
    main()
