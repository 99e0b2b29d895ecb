"""Write the table that `kduel query --history` takes the chance of a contrast from: python perf/null_shares.py [--longest 1024].

By the simulation of kduel.analysis.campaigns.null_shares, for lengths that grow by a fifth. It takes about two minutes of one processor;
the time grows with the square of the longest length.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import msgspec

from kduel.analysis.campaigns.contrasts import largest_shares
from kduel.analysis.campaigns.null_shares import CORRELATIONS, LONG, SIMULATED, TABLE, Quantiles, simulate_series

RANKS = [1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 49, 70, 100, 150, 220, 330, 500, 750, 1100, 1600, 2400, 3500, 4999]
GROWTH = 1.2
AT_ONCE = 500


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=1024)
    parser.add_argument("--output", type=Path, default=TABLE)
    given = parser.parse_args()
    steps = round(np.log(given.longest / LONG) / np.log(GROWTH))
    lengths = [round(length) for length in np.geomspace(LONG, given.longest, steps + 1)]
    shares = []
    for neighbours in CORRELATIONS:
        of_length = []
        for count in lengths:
            generator = np.random.default_rng([count, SIMULATED])
            pieces = []
            for begin in range(0, SIMULATED, AT_ONCE):
                rows = simulate_series(generator, min(AT_ONCE, SIMULATED - begin), count, neighbours)
                pieces.append(largest_shares(rows))
            found = np.sort(np.concatenate(pieces))[::-1]
            of_length.append([round(float(found[rank - 1]), 5) for rank in RANKS])
            print(neighbours, count, of_length[-1][4], flush=True)
        shares.append(of_length)
    written = Quantiles(lengths=lengths, correlations=list(CORRELATIONS), ranks=RANKS, shares=shares)
    given.output.write_bytes(msgspec.json.encode(written).replace(b"]],", b"]],\n").replace(b"],[", b"],\n[") + b"\n")


if __name__ == "__main__":
    main()
