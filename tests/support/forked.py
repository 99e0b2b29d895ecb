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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

SECONDS = 300.0
"""After these a call is killed."""


class ForkedKduel:
    """Starts `kduel`, by a server of its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        )

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
    """Import every module, so that no child has to; plug-ins from outside are found by each child."""
    import kduel

    for module in pkgutil.walk_packages(kduel.__path__, "kduel."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


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


def become(request: dict[str, Any]) -> NoReturn:
    """Be the process `python -m kduel ARGV...` in place of the server's child."""
    os.setsid()
    for number, name, mode in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_CREAT), (2, "err", os.O_CREAT)):
        handle = os.open(os.path.join(request["place"], name), mode | (os.O_WRONLY if number else 0))  # noqa: PTH118
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [request["cwd"], *(path for path in paths if path not in sys.path)]
    sys.argv = ["kduel", *request["argv"]]
    try:
        importlib.import_module("kduel.__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - a traceback is what a test looks for
        traceback.print_exc()
        status = 1
    # To take down all that was imported would take longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    import_all()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(json.loads(line))
        print(json.dumps(wait_for(child)), file=answers)
