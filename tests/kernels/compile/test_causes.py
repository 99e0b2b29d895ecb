"""From a log to its cause: logs of real makes, made to fail here, and lines as kernels' builds print them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.kernels.compile.cause import LONGEST, find_cause
from kduel.machines.build import trouble_of


def failing(tmp_path: Path, makefile: str, **files: str) -> tuple[str, int]:
    """What make says of this Makefile, and its status."""
    (tmp_path / "Makefile").write_text(makefile)
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    done = subprocess.run(
        ["make", "-s", "-C", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.returncode
    return done.stdout, done.returncode


def test_a_compilers_error_comes_before_what_follows_from_it(tmp_path: Path) -> None:
    found = find_cause(*failing(tmp_path, "all:\n\tgcc -c a.c\n", a_c="int f(void) { return missing; }\n"))
    assert found.lines[0].startswith("a.c:1:22: error: ‘missing’ undeclared")
    assert found.lines[-1].startswith("make: *** [Makefile:2: all] Error 1")


def test_a_header_that_is_not_there_names_its_package(tmp_path: Path) -> None:
    found = find_cause(*failing(tmp_path, "all:\n\tgcc -c a.c\n", a_c="#include <nowhere/libelf.h>\n"))
    assert "fatal error: nowhere/libelf.h: No such file" in found.text
    assert found.remedy == "apt install libelf-dev"


@pytest.mark.parametrize("line", ["flex --version", "flex --version | cat >/dev/null; exit 127"])
def test_a_tool_that_is_not_there_names_its_package(tmp_path: Path, line: str) -> None:
    """By the shell, and by make itself, which words it differently."""
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("sh", "make", "cat"):
        (bare / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "Makefile").write_text(f"all:\n\t{line}\n")
    done = subprocess.run(
        ["make", "-C", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={"PATH": str(bare)},
    )  # fmt: skip
    found = find_cause(done.stdout, done.returncode)
    assert "flex: " in found.text and ("not found" in found.text or "No such file" in found.text)
    assert found.remedy == "apt install flex"


def test_a_linkers_complaint(tmp_path: Path) -> None:
    found = find_cause(
        *failing(tmp_path, "all:\n\tgcc -o a a.c\n", a_c="int g(void); int main(void) { return g(); }\n")
    )
    assert "undefined reference to `g'" in found.text


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            "scripts/extract-cert.c:21:10: fatal error: openssl/bio.h: No such file or directory",
            "apt install libssl-dev",
        ),
        ("/bin/sh: 1: bison: not found", "apt install bison"),
        ("/bin/sh: line 1: bc: command not found", "apt install bc"),
        ('"mkimage" command not found - U-Boot images will not be built', "apt install u-boot-tools"),
        ("/bin/sh: 1: lz4: not found", "apt install lz4"),
        ("fs/ext4/super.s: No space left on device", "Free some space where builds are made (TMPDIR)."),
        ("gcc: fatal error: Killed signal terminated program cc1", "Memory ran out: build with fewer jobs."),
    ],
)
def test_what_kernels_builds_are_known_to_say(line: str, remedy: str) -> None:
    found = find_cause(f"  CC      init/main.o\n{line}\nmake[1]: *** [Makefile:12: x] Error 1\n", 2)
    assert found.remedy == remedy
    assert line in found.lines


def test_a_log_without_errors_ends_the_message() -> None:
    assert find_cause("one\ntwo\nthree\nfour\n", 2).lines == ("two", "three", "four")
    assert find_cause("", 2).text == "make ended with status 2 and printed no message"


@given(st.text(max_size=3000))
def test_any_log_gives_few_short_lines(log: str) -> None:
    found = find_cause(log, 1)
    assert 1 <= len(found.lines) <= 4
    assert all(len(line) <= LONGEST and "\n" not in line for line in found.lines)


@pytest.mark.parametrize(
    ("status", "void"), [(0, None), (1, "does-not-build"), (2, "does-not-build"), (124, "deadline")]
)
def test_each_status_of_a_timed_build_but_0_makes_its_trial_void(
    tmp_path: Path, status: int, void: str | None
) -> None:
    step = tmp_path / "01-kernel-build"
    step.mkdir()
    (step / "build.log").write_text("make: *** [Makefile:1: all] Error 1\n")
    (step / "exit.json").write_text(f'{{"status": {status}}}')
    trouble = trouble_of(tmp_path)
    assert (trouble.void if trouble else None) == void
