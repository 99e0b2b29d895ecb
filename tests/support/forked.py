"""The real command line, many times quickly: a process that has imported KDuel once and forks for each call.

Its child has the arguments, the environment, the directory and the output of a `kduel` that a user starts, and ends as one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, distributions
from pathlib import Path
from typing import Any, NoReturn, Self

SECONDS = 1800.0
"""After these a call is killed."""
IN_PLACE = "--in-place"


class ForkedKduel:
    """Starts `kduel`, by a server of its own."""

    def __init__(self, environment: Mapping[str, str], *, forks: bool = True) -> None:
        """`forks=False` for thousands of calls that end early: all are carried out by the server, in its environment."""
        self.environment = dict(environment)
        self.process = subprocess.Popen(
            [sys.executable, __file__, *([] if forks else [IN_PLACE])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process as process:
            assert process.stdin
            process.stdin.close()

    def can_start(self, environment: Mapping[str, str]) -> bool:
        """Whether a process forked by the server is as one that is started in that environment: Python and the libraries read
        some variables, and Python a module, when they begin."""
        if any(
            Path(path, "sitecustomize.py").exists() for path in environment.get("PYTHONPATH", "").split(os.pathsep)
        ):
            return False
        names = {
            name for name in {*environment, *self.environment} if name.startswith(("LANG", "LC_", "LD_", "PYTHON"))
        }
        return all(environment.get(name) == self.environment.get(name) for name in names - {"PYTHONPATH"})

    def __call__(
        self, words: Sequence[object], *, cwd: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """`kduel WORDS...` to its end, as subprocess.run returns it. Raises TimeoutExpired after SECONDS."""
        argv = [str(word) for word in words]
        with tempfile.TemporaryDirectory() as place:
            request = {"argv": argv, "cwd": str(cwd), "environment": dict(environment), "place": place}
            assert self.process.stdin and self.process.stdout
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            status = json.loads(self.process.stdout.readline())
            out, err = (Path(place, name).read_text(errors="replace") for name in ("out", "err"))
        if status is None:
            raise subprocess.TimeoutExpired(["kduel", *argv], SECONDS, out, err)
        return subprocess.CompletedProcess(["kduel", *argv], status, out, err)


def import_all() -> None:
    """Import every module, and compile every template, so that no child has to; plug-ins from outside are found by each
    child."""
    import kduel
    from kduel.report.page.render import templates

    for module in pkgutil.walk_packages(kduel.__path__, "kduel."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in templates().list_templates(extensions=["html"]):
        templates().get_template(name)


def wait_for(child: int) -> int | None:
    """A child's exit status, negative for a signal; None after SECONDS, when it was killed with what it started."""
    end = time.monotonic() + SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def redirect_streams(place: str) -> None:
    """Standard input is empty, output and errors go into files of that directory."""
    for number, name, mode in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_CREAT), (2, "err", os.O_CREAT)):
        handle = os.open(os.path.join(place, name), mode | (os.O_WRONLY if number else 0))  # noqa: PTH118
        os.dup2(handle, number)
        os.close(handle)


def know_entry_points(paths: Sequence[str], *others: EntryPoint) -> None:
    """Make the entry points of the distributions in these directories, and the others, what KDuel finds installed."""
    found = EntryPoints([*(entry for one in distributions(path=list(paths)) for entry in one.entry_points), *others])
    plugins.entry_points_by_group = cache(lambda: found)


def run_program(start: Callable[[], object]) -> int:
    """The exit status of a program that ends by SystemExit; 1 after a traceback, as Python's."""
    try:
        start()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - a traceback is what a test looks for
        traceback.print_exc()
        return 1
    return 0


def become(request: dict[str, Any]) -> NoReturn:
    """Be the process `python -m kduel ARGV...` in place of the server's child."""
    os.setsid()
    redirect_streams(request["place"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.path[:1] = [request["cwd"], *paths]
    know_entry_points(sys.path[: len(paths) + 1], *plugins.entry_points_by_group())
    write_up.start_kduel = start_in_fork
    sys.argv = ["kduel", *request["argv"]]
    end(run_program(lambda: importlib.import_module("kduel.__main__").main()))


def end(status: int) -> NoReturn:
    """End this process as Python does at the end of a program."""
    # To take down all that was imported would take longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def start_in_fork(*words: str) -> int:
    """The exit status of `kduel WORDS...`, which a child of a child carries out."""
    child = os.fork()
    if child == 0:
        # What the command would do at its end is not this one's to do.
        atexit._clear()
        end(run_program(lambda: main(list(words))))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def answer_in_place(request: dict[str, Any]) -> int:
    """The exit status of `kduel ARGV...`, which this process carries out itself. A call that takes SECONDS ends it."""
    redirect_streams(request["place"])
    os.chdir(request["cwd"])
    signal.alarm(int(SECONDS))
    status = run_program(lambda: main(request["argv"]))
    sys.stdout.flush()
    sys.stderr.flush()
    signal.alarm(0)
    return status


def answer_by_fork(request: dict[str, Any]) -> int | None:
    """The exit status of `kduel ARGV...`, as wait_for has it."""
    child = os.fork()
    if child == 0:
        become(request)
    return wait_for(child)


if __name__ == "__main__":
    import_all()
    from kduel.cli import main, write_up
    from kduel.core import plugins

    know_entry_points(sys.path)
    gc.freeze()
    answer = answer_in_place if IN_PLACE in sys.argv else answer_by_fork
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    for line in requests:
        print(json.dumps(answer(json.loads(line))), file=answers)
