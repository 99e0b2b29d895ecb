"""Runs a command and writes down what it took: python3 -I timed.py OUT COMMAND... It stands alone to begin at once;
OUT becomes JSON: seconds real, user and sys with children, largest resident set in KiB, exit status."""

import json
import os
import subprocess
import sys
import time


def main(out: str, command: list[str]) -> int:
    """The command's exit status, 128 + the signal's number where one ended it."""
    began = time.monotonic()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    real = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    found = {
        "real": round(real, 6),
        "user": usage.ru_utime,
        "sys": usage.ru_stime,
        "maxrss_kib": usage.ru_maxrss,
        "status": code,
    }
    with open(out, "w", encoding="utf-8") as stream:  # noqa: PTH123 - no import that is not needed
        json.dump(found, stream)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
