"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; several tests
# interrupt a child and see what it leaves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
