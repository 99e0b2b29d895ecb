"""A program that says why it measured nothing is quoted."""

from __future__ import annotations

import json

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.fio import PLUGIN as FIO
from kduel.benchmarks.support.reading import check_samples
from kduel.benchmarks.systemd_analyze import PLUGIN as BOOT

IO_ERROR = "fio: io_u error on file /dev/x: Input/output error: read offset=4096, buflen=4096\n"


def test_what_fio_says_before_its_json_is_the_reason() -> None:
    raw = Raw(
        stdout="",
        stderr="",
        exit_status=0,
        files={"fio.json": f'{IO_ERROR}{{ "fio version" : "fio-3.36", "jobs" : [] }}\n'},
    )
    with pytest.raises(ParseError, match="io_u error on file /dev/x: Input/output error"):
        FIO.parse(raw, FIO.read_parameters({}))


def test_a_container_has_no_total() -> None:
    told = "Startup finished in 555ms (userspace) \ngraphical.target reached after 554ms in userspace\n"
    with pytest.raises(ParseError, match="no total, as in a container"):
        BOOT.parse(Raw(stdout=told, stderr="", exit_status=0, files={}), BOOT.read_parameters({}))


@pytest.mark.parametrize(("samples", "per_mille"), [(10, 900), (20, 950), (100, 990), (1000, 999)])
def test_a_percentile_takes_samples_for_one_to_lie_above_it(samples: int, per_mille: int) -> None:
    check_samples(samples, per_mille, "it")
    with pytest.raises(ParseError, match=f"is of {samples - 1} samples, and takes {samples}"):
        check_samples(samples - 1, per_mille, "it")


@pytest.mark.parametrize(
    ("seconds", "sent", "refused"),
    [(3.0, 100, ""), (2.86, 100, ""), (2.84, 100, "ended after"), (3.0, 99, "were received")],
)
def test_a_transfer_that_ended_early_has_no_rate(seconds: float, sent: int, refused: str) -> None:
    """The rate is that of the server, over the time that was asked for; nothing is received that was not sent."""
    ends = {
        "sum_sent": {"bytes": sent, "seconds": 3.0, "retransmits": 0},
        "sum_received": {"bytes": 100, "seconds": seconds},
    }
    plugin = benchmark("iperf3")
    raw, asked = Raw(json.dumps({"end": ends}), "", 0), plugin.read_parameters({"time": 3})
    if refused:
        with pytest.raises(ParseError, match=refused):
            plugin.parse(raw, asked)
    else:
        assert plugin.parse(raw, asked)["throughput"] == pytest.approx(100 / seconds / 1e6)
