"""A program that says why it measured nothing is quoted."""

from __future__ import annotations

import pytest

from kduel.benchmarks import ParseError, Raw
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
