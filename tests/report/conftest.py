"""Makes the examples importable by their name, and keeps the tests' cache apart from the user's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
