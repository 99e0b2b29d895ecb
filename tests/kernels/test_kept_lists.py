"""A release's list of packages is kept for a day, of one mirror."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.kernels.arch import PLUGIN

HOUR = 3600.0


@pytest.mark.parametrize(
    ("age", "other_mirror", "used"),
    [(HOUR, False, True), (HOUR, True, False), (25 * HOUR, False, False), (-HOUR, False, False)],
)
def test_a_list_is_asked_for_again(
    age: float, other_mirror: bool, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another mirror, of yesterday, or of a time to come, as after the clock was set back."""
    mirror = (tmp_path / "mirror").as_uri()
    monkeypatch.setenv("KDUEL_ARCH_MIRROR", mirror)
    cache = Cache(tmp_path / "cache")
    kept = cache.root / "archive/arch/linux.json"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(
        msgspec.json.encode(
            {"made": time.time() - age, "mirror": "http://other" if other_mirror else mirror, "offered": []}
        )
    )
    if used:
        PLUGIN.ask_archive("arch:linux", cache=cache, progress=Progress())
    else:
        # There is no such mirror.
        with pytest.raises(HostError):
            PLUGIN.ask_archive("arch:linux", cache=cache, progress=Progress())
