"""`kduel worker`: carries out blocks on a member of a fleet. The controller starts it."""

import os
import queue
import signal
import sys
import threading
from pathlib import Path

import click

from kduel.cli.options import NamedPath, offline_option, option
from kduel.cli.terminal import Terminal
from kduel.core.errors import InputError

EVERY = 5.0
"""Seconds between two signs of life."""


@click.command("worker")
@click.argument("directory", type=NamedPath(), metavar="DIR")
@option("--describe", "Describe this machine to the controller, and exit.", is_flag=True)
@option("--block blocks", "Run this block; repeatable.", click.IntRange(1), "N", multiple=True)
@option("--stdin from_stdin", "Read the numbers of blocks from standard input; stop when it ends.", is_flag=True)
@offline_option
def command(directory: Path, describe: bool, blocks: tuple[int, ...], from_stdin: bool, offline: bool) -> None:
    """Run blocks of a fleet's run on this machine. `kduel run --fleet` starts it; it is not meant to be called by hand.

    DIR is the machine's directory. Completed trials are not run again. Standard output has one event per line: `alive`,
    `described`, `trial ID`, `done BLOCK`.
    """
    from kduel.run.fleet.worker import BlockWorker
    from kduel.run.fleet.worker import describe as describe_machine

    if describe + bool(blocks) + from_stdin - (describe and from_stdin) != 1:
        raise InputError("give one of --describe, --block and --stdin", "A controller starts workers by itself.")
    speaking = threading.Lock()

    def say(event: str) -> None:
        with speaking:
            print(event, flush=True)

    orders: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    if from_stdin:
        threading.Thread(target=read_orders, args=(orders,), daemon=True).start()
    threading.Thread(target=send_heartbeats, args=(say,), daemon=True).start()
    terminal = Terminal()
    if describe:
        describe_machine(directory, terminal, offline=offline)
        say("described")
        return
    worker = BlockWorker(directory, terminal, say, offline=offline)
    try:
        for block in blocks:
            worker.work(block)
        while from_stdin and (order := orders.get()) is not None:
            worker.work(order)
    finally:
        worker.close()


def read_orders(orders: queue.SimpleQueue[int | None]) -> None:
    """Take block numbers; when nobody can send any more, end the process as Ctrl-C does."""
    for line in sys.stdin:
        if line.strip().isdecimal():
            orders.put(int(line))
    os.kill(os.getpid(), signal.SIGTERM)


def send_heartbeats(say: object) -> None:
    """Give signs of life for as long as the process runs and anybody listens."""
    assert callable(say)
    pause = threading.Event()
    while not pause.wait(EVERY):
        try:
            say("alive")
        except OSError:
            return
