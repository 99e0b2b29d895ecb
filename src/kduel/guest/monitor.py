"""Speaking with QEMU over its machine protocol: a question and an answer at a time."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from typing import Any, NamedTuple

from qemu.qmp import QMPClient, QMPError

ANSWER_SECONDS = 60.0
"""Seconds that QEMU may take to answer, on a busy host."""
SAMPLES = 6
INTERRUPTS_ON = 0x200


class MonitorError(Exception):
    """QEMU does not answer, or answers with an error."""


class UnansweredError(MonitorError):
    """QEMU runs, and did not answer in time."""


class Monitor:
    """A connection to a monitor, used once in a `with` and called with a command. Raises MonitorError."""

    def __init__(self, connection: socket.socket, seconds: float = ANSWER_SECONDS) -> None:
        """QEMU may take `seconds` to answer."""
        self.seconds = seconds
        self._client = QMPClient()
        self._client.logger.disabled = True
        self._connection = connection
        self._runner = asyncio.Runner()

    def __enter__(self) -> Monitor:
        self._runner.__enter__()
        try:
            self._do(self._client.connect(self._connection))
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(MonitorError):
            self._do(self._client.disconnect())
        self._runner.close()

    def __call__(self, command: str, **arguments: object) -> Any:
        return self._do(self._client.execute(command, arguments or None))

    def _do(self, work: Any) -> Any:
        async def run_bounded() -> Any:
            return await asyncio.wait_for(work, self.seconds)

        try:
            return self._runner.run(run_bounded())
        except TimeoutError as error:
            raise UnansweredError(f"no answer within {self.seconds:g} s") from error
        except (QMPError, OSError, EOFError) as error:
            raise MonitorError(str(error) or type(error).__name__) from error


class Observer:
    """Looks at the vCPUs of a running guest; for use in a `with`. It sees nothing where QEMU does not answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held = contextlib.ExitStack()
        self._monitor: Monitor | None = None

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def registers(self) -> str:
        """QEMU's `info registers -a`. Raises MonitorError."""
        if self._monitor is None:
            self._monitor = self._held.enter_context(Monitor(self._connection))
        return str(self._monitor("human-monitor-command", **{"command-line": "info registers -a"}))

    def sleeps_for_ever(self) -> bool:
        """True if every vCPU sleeps with interrupts off: nothing can wake the guest any more."""
        try:
            cpus = read_cpus(self.registers()).values()
        except MonitorError:
            return False
        return bool(cpus) and all(cpu.unreachable and cpu.asleep for cpu in cpus)

    def stuck_cpus(self) -> list[str] | None:
        """The vCPUs with interrupts off in every look: nothing reaches them. None where QEMU does not answer."""
        looks: list[dict[int, tuple[bool, str]]] = []
        try:
            for _ in range(SAMPLES):
                looks.append(read_registers(self.registers()))
                time.sleep(0.1)
        except UnansweredError:
            return None
        except MonitorError:
            return []
        return [
            f"CPU {cpu} had its interrupts off all the time, at {looks[-1][cpu][1]}"
            for cpu in looks[0]
            if all(look.get(cpu, (False, ""))[0] for look in looks)
        ]


class CpuState(NamedTuple):
    """State of a vCPU: whether its interrupts are off, whether it sleeps, and where it is."""

    unreachable: bool
    asleep: bool
    at: str


def read_cpus(text: str) -> dict[int, CpuState]:
    """States in QEMU's `info registers -a`, by CPU."""
    found: dict[int, CpuState] = {}
    for block in re.split(r"(?=^CPU#\d+)", text, flags=re.MULTILINE):
        cpu = re.match(r"CPU#(\d+)", block)
        where = re.search(r"^(?:RIP|EIP)=([0-9a-f]+) (?:RFL|EFL)=([0-9a-f]+).*HLT=(\d)", block, re.MULTILINE)
        if cpu and where:
            found[int(cpu[1])] = CpuState(not int(where[2], 16) & INTERRUPTS_ON, where[3] == "1", where[1])
    return found


def read_registers(text: str) -> dict[int, tuple[bool, str]]:
    """From QEMU's `info registers -a`: by CPU, whether its interrupts are off, and where it is. One that sleeps with
    interrupts off (not started, or offline) is left out while another is awake."""
    found = read_cpus(text)
    awake = any(not (cpu.unreachable and cpu.asleep) for cpu in found.values())
    return {
        number: (cpu.unreachable, cpu.at)
        for number, cpu in found.items()
        if not (awake and cpu.unreachable and cpu.asleep)
    }
