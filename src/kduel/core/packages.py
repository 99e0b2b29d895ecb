"""Python packages that KDuel can use and does not bring along."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def install_command(requirement: str) -> str:
    """The shell command that installs a package into KDuel's own environment, which has no pip in a checkout."""
    first = "" if find_spec("pip") else f"{sys.executable} -P -m ensurepip && "
    return f"{first}{sys.executable} -P -m pip install {requirement}"
