"""Commands that a report gives to paste, fed to a real shell: nothing of a received run becomes one, in any format."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import simulated

from kduel.core.errors import InputError
from kduel.core.experiment import MachineRecord
from kduel.core.plugins import plugins
from kduel.core.results import Results, StudyResult
from kduel.report import report_format
from kduel.study.contenders import contender_tables
from kduel.study.file import suite_text


def of_mail(text: str) -> list[str]:
    block = text.partition("To reproduce, in a checkout of KDuel:\n")[2].partition("\nChecksum of the run")[0]
    return [block, "\n".join(line.strip() for line in block.splitlines())]


def of_page(text: str) -> list[str]:
    found = re.search(r"<h3>To reproduce</h3>.*?<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    return [html.unescape(found[1])] if found else []


def of_kcidb(text: str) -> list[str]:
    return ["\n".join(one["misc"]["kduel"]["reproduce"]) for one in json.loads(text)["tests"]]


BLOCKS: dict[str, Callable[[str], list[str]]] = {"mail": of_mail, "html": of_page, "kcidb": of_kcidb}
FORMATS = sorted(plugins("report"))
HARM = "touch harm"
VALUES = {
    **{f"quote {quote!a}": f"a{quote};{HARM};{quote}b" for quote in "'\"`\u2018\u2019\u201c\u201d\u02bc\uff07"},
    "substitution": f"$({HARM})${{x:-`{HARM}`}}",
    "line": f"a\n{HARM}\n",
    "carriage return": f"a\r{HARM}\r\n{HARM}",
    "keys": f"a\x15{HARM}\x0d\x03{HARM}\x1b[201~\n",
    "long": "x" * 995 + f"' '; {HARM}; '",
    "long in a row": f"';{HARM};'" * 400,
    "backslash": f"\\\n{HARM} \\",
    "comment": f"# {HARM}",
    "separators": f"a\u2028{HARM}\u0085{HARM}",
}
STUDIES = {
    "ends": f"END\n{HARM}\nEND_\n{HARM}\n END\n{HARM}\nEND \n{HARM}\n\tEND\t\n{HARM}\nEND__\n{HARM}",
    "odd blanks": f"END\x0b\n{HARM}\nEND\x0c\n{HARM}\nEND\u00a0\n{HARM}\nEND\u2028{HARM}\nEND\r\n{HARM}\nEND\r{HARM}",
    "markup": f"</pre><script>x</script>\n&#10;END&#10;{HARM}\n<!--\nEND\n-->\n{HARM}",
    "escapes": f"\\END\\\n{HARM}\n\x1b[31m\x15{HARM}",
    "no end": f"a = '''\n{HARM}",
    "valid": suite_text("quick") + contender_tables(["debian:6.1", "debian:6.12"], numbered=False) + f"# '{HARM}",
    "suite": "",
    "quoted end": f"'END'\n{HARM}\n\"END\"\n{HARM}",
}


def hostile(value: str, study: str) -> Results:
    """A run whose author wrote `value` wherever a run has words of its own."""
    results = simulated(blocks=4)
    results.exact = None
    for one in results.contenders:
        one.kernel = value
        one.facts = {"provenance": {"exact": value, "commit": value, "path": value, "modified": True}}
    results.study = StudyResult(
        name="x", origin=value, seed=7, max=20, kduel=f"0.1.0+{value}", checksum="ab" * 32, text=study
    )
    if not study:  # The words of the command are then the kernels themselves.
        kernels = [f"{value}{number}" for number, _ in enumerate(results.contenders)]
        for kernel, one in zip(kernels, results.contenders, strict=True):
            one.kernel = kernel
        results.study.origin = "quick"
        results.study.text = suite_text("quick") + contender_tables(kernels, numbered=False)
    kind = "qemu" if study in (STUDIES["valid"], "") else value
    results.machine = MachineRecord(kind=kind, settings={"memory": value, "cpus": 2}, facts={})
    return results


@pytest.mark.parametrize("name", sorted(set(FORMATS) - set(BLOCKS)))
def test_no_other_format_has_commands(name: str) -> None:
    """One that gets some belongs into BLOCKS."""
    try:
        text = report_format(name).render(hostile("debian:6.1", ""))
    except InputError:  # a picture of counts, of a run that has none
        return
    assert "kduel run" not in text and "git checkout" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("value", VALUES)
def test_no_word_of_a_run_becomes_a_command(name: str, value: str, tmp_path: Path) -> None:
    # Building a page takes long, and its studies are those of a mail.
    for study in ["suite", "ends", "markup"] if name == "html" else STUDIES:
        blocks = BLOCKS[name](report_format(name).render(hostile(VALUES[value], STUDIES[study])))
        assert blocks
        for number, block in enumerate(blocks):
            place = tmp_path / f"{study}-{number}"
            place.mkdir()
            for program in ("git", "kduel"):
                (place / program).write_text("#!/bin/sh\n")
                (place / program).chmod(0o755)
            assert "./kduel run" in block and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", block)
            done = subprocess.run(
                ["sh", "-u"],
                input=block.encode(),
                cwd=place,
                env={"PATH": f"{place}:/bin:/usr/bin"},
                capture_output=True,
                check=False,
            )
            assert not (place / "harm").exists(), study
            assert done.returncode == 0 and not done.stderr
            if name != "kcidb" and STUDIES[study]:
                written = (place / "study.toml").read_text()
                assert written.count(HARM) == STUDIES[study].count(HARM)


@pytest.mark.parametrize("width", [72, 78, 998])
def test_a_block_that_a_program_of_mail_breaks_runs_nothing(width: int, tmp_path: Path) -> None:
    """Programs break long lines at blanks, and servers those of more than 998 characters anywhere."""
    filler = "x" * (width - 2)
    study = f"# {filler} END\n{HARM}\n# {filler}END\n{HARM}\n# {filler} END_\n{HARM}"
    (block, _) = of_mail(report_format("mail").render(hostile("debian:6.1", study)))
    lines = []
    for line in block.splitlines():
        while len(line) > width:
            place = line.rfind(" ", 2, width + 1) if width < 998 else width
            place = place if place > 0 else width
            lines.append(line[:place])
            line = line[place:].lstrip(" ")
        lines.append(line)
    assert any(line.startswith("END") for line in lines[:-8])
    done = subprocess.run(["sh"], input="\n".join(lines).encode(), cwd=tmp_path, capture_output=True, check=False)
    assert not (tmp_path / "harm").exists(), done.stderr
