"""Waiting for a condition. What comes late fails no test: a host may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

LONGEST = 600.0


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What the condition gives once it holds. One that takes long to find out is asked less often: a fifth of a CPU at most."""
    end = time.monotonic() + LONGEST
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        if now > end:
            pytest.fail(f"no {what} within 10 minutes")
        time.sleep(min(max(0.01, 4 * (now - began)), 2.0))
