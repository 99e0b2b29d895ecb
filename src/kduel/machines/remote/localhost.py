"""The machine that KDuel itself runs on, used as if it were a remote one: the same scripts, by a shell of our own."""

from typing import NoReturn

from kduel.machines.remote.connection import CommandResult, Connection, ConnectionLost, last_line


class LocalConnection(Connection):
    """No ssh, no sudo: KDuel itself must be root."""

    def __init__(self) -> None:
        super().__init__("this machine")
        # As sshd does: what it is given is one line for a shell.
        self.argv = ["sh", "-c"]

    def complain(self, done: CommandResult) -> NoReturn:
        """Raises ConnectionLost: 255 is the script's own status."""
        raise ConnectionLost(f"the script ended with 255: {last_line(done.stderr)}")
