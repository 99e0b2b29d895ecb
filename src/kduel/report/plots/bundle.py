"""The drawing library as one compressed script, put together once for each version of vl-convert and kept in the cache."""

from __future__ import annotations

import base64
import gzip
import hashlib
from importlib.metadata import version
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.report.plots.engine import drawing

SNIPPET = "window.vegaEmbed = vegaEmbed;"
FILE = "vega.js.gz.base64"


def vega_script() -> str:
    """The script, compressed by gzip, in base64: less than half as long, and safe inside an element."""
    key = hashlib.sha256(f"{version('vl-convert-python')} {SNIPPET} 3".encode()).hexdigest()[:24]
    try:
        return (Cache().entry("vega", key, build) / FILE).read_text("utf-8")
    except (HostError, OSError):
        # A report needs no cache: it only takes some seconds longer.
        return bundle()


def build(directory: Path) -> None:
    """Fill the cache's entry."""
    (directory / FILE).write_text(bundle(), "utf-8")


def bundle() -> str:
    """Put the script together; takes about six seconds."""
    script: str = drawing().javascript_bundle(snippet=SNIPPET)
    # In a function of its own: hundreds of its names would else be the page's.
    return base64.b64encode(gzip.compress(f"(() => {{{script}}})();".encode(), mtime=0)).decode()
