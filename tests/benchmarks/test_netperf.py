"""netperf's percentiles against its largest time."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from kduel.benchmarks import ParseError, Raw, benchmark

CAPTURED = Path(__file__).parent / "captured/netperf-2.7.0-0.1/netperf-tcp-rr-loopback-2000x"


@pytest.mark.parametrize(("largest", "kept"), [("2400", True), ("2200", False)])
def test_a_percentile_may_pass_the_largest_time_by_its_bucket(largest: str, kept: bool) -> None:
    """Between two guests it gave 16333 and 16192."""
    raw = Raw.read(CAPTURED)
    changed = structs.replace(raw, stdout=raw.stdout.replace("MAX_LATENCY=14606", f"MAX_LATENCY={largest}"))
    netperf = benchmark("netperf")
    parameters = netperf.read_parameters({"transactions": 2000})
    if kept:
        assert netperf.parse(changed, parameters)["latency-p99"] == 2550
    else:
        with pytest.raises(ParseError, match="contradicts itself"):
            netperf.parse(changed, parameters)
