"""Output of hackbench (rt-tests): a trial is one call, so that calls are appended to one file."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kduel.benchmarks.hackbench import PLUGIN as HACKBENCH
from kduel.benchmarks.hackbench import HackbenchParameters
from kduel.core.errors import InputError
from kduel.store.imported.support.call_output import CallOutput, PrintedFormat, as_stdout, pieces
from kduel.store.imported.support.foreign import location_text, text_lines

BEGIN = "Running in "
HEAD = re.compile(
    r"Running in (process|threaded) mode with (\d{1,6}) groups using (\d{1,6}) file descriptors each \(== \d+ tasks\)\n"
    r"Each sender will pass (\d{1,9}) messages of (\d{1,9}) bytes\n"
)


FAILED = re.compile(r".*\(error: .*\)")
"""What a task says before it ends, and the others go on."""


class Hackbench(PrintedFormat):
    name = "hackbench"
    summary = "what hackbench prints (>>FILE), a trial being one call"
    begins = HEAD.pattern

    def check(self, path: Path, contender: str | None) -> None:
        for line, text in text_lines(path):
            if FAILED.fullmatch(text):
                raise InputError(
                    f"{location_text(path, line)}: a call of which a task ended early ({text.strip()[:80]})",
                    "Remove this call from the file, and repeat it.",
                )

    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        for line, text in pieces(text_lines(path), lambda text: text.startswith(BEGIN)):
            head = HEAD.match(text)
            if head is None:
                raise InputError(
                    f"{location_text(path, line)}: a call without number and size of its messages",
                    "Remove what is left of this call from the file.",
                )
            groups, fds, loops, size = map(int, head.groups()[1:])
            asked = HackbenchParameters(
                groups=groups, fds=fds // 2, loops=loops, datasize=size, threads=head[1] == "threaded"
            )
            read = partial(HACKBENCH.parse, as_stdout(text), asked)
            yield CallOutput(line, HACKBENCH.label(asked), HACKBENCH.metrics(asked), read)


PLUGIN = Hackbench()
