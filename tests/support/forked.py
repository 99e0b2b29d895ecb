"""The real command line, many times quickly: a process that has imported KDuel once and forks for each call.

Reads requests as JSON lines {"argv": [...]} and answers {"status": N, "output": "..."}; a status of null is a call that
did not end in time, and was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback

from kduel.cli import COMMANDS, MODULES, main
from kduel.core.plugins import plugins

SECONDS = 300.0


def call(argv: list[str]) -> dict[str, object]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.setsid()
                for number in (1, 2):
                    os.dup2(output.fileno(), number)
                main(argv)
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
            except BaseException:  # noqa: BLE001 - a traceback is what is looked for
                traceback.print_exc()
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
        end = time.monotonic() + SECONDS
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                status = None
                break
            time.sleep(0.005)
        output.seek(0)
        told = output.read(1 << 20).decode(errors="replace")
        return {"status": None if status is None else os.waitstatus_to_exitcode(status), "output": told}


if __name__ == "__main__":
    for kind in ("benchmarks", "kernels", "machines", "report"):
        plugins(kind)
    for name in COMMANDS:
        __import__(f"kduel.cli.{MODULES.get(name, name)}")
    import kduel.run.runner
    import kduel.study.load  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(call(json.loads(line)["argv"])), flush=True)
