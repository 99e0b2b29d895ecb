"""The files that a study's command names: known by the SHA-256 that its author can print, and no others."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kduel.benchmarks.command import PLUGIN, CommandParameters, OutputPattern
from kduel.core.errors import InputError
from kduel.core.manifest import digest

VALUE = OutputPattern(name="value", unit="s", better="lower", regex="(.*)")


def test_a_program_is_known_by_its_sha256(tmp_path: Path) -> None:
    program = tmp_path / "bench"
    program.write_text("#!/bin/sh\necho 1\n")

    def files(sha256: str) -> list[tuple[str, Path]]:
        return PLUGIN.files_for(CommandParameters(command="bench", metrics=(VALUE,), files={str(program): sha256}))

    assert files(hashlib.sha256(program.read_bytes()).hexdigest()) == [("bench", program)]
    assert files(digest(program)) == [("bench", program)], "as `kduel run --command` writes it"
    with pytest.raises(InputError, match="is not the file with the SHA-256"):
        files(hashlib.sha256(b"another").hexdigest())
