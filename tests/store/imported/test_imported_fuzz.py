"""The fuzzer over every importer that there is, in its short form; perf/fuzz_parsers.py is the long one."""

from __future__ import annotations

import random
import time

import pytest
from import_cases import FORMATS, SAMPLES, finding, mutate, swollen

MUTATIONS = 60


def test_every_importer_has_a_sample_to_be_fuzzed_with() -> None:
    assert {sample.format.name for sample in SAMPLES} == set(FORMATS)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_mutated_file_gives_its_values_or_an_error_that_says_what_to_do(name: str) -> None:
    source = random.Random(name)
    samples = [sample for sample in SAMPLES if sample.format.name == name]
    found = []
    for _ in range(MUTATIONS):
        sample = source.choice(samples)
        mutation = mutate(sample, source, source.choice(samples))
        if fault := finding(sample, mutation):
            found.append(f"{sample}, {mutation.kind}: {fault}")
    assert not found


@pytest.mark.parametrize("name", FORMATS)
def test_a_swollen_file_is_read_or_refused_soon(name: str) -> None:
    source = random.Random(name)
    for _ in range(3):
        sample = source.choice([sample for sample in SAMPLES if sample.format.name == name])
        began = time.process_time()
        sample.outcome({"file": swollen(sample.texts["file"], source, 200_000)})
        assert time.process_time() - began < 10
