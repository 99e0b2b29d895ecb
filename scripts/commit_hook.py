"""Writes the commit into the packages that hatch builds: an installed KDuel has no history to ask."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Replaces the placeholder in src/kduel/COMMIT, in the package alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root, "src/kduel")
        commit = runpy.run_path(str(package / "core/version.py"))["commit"](package)
        if version == "editable" or not commit:
            return
        self.place = tempfile.TemporaryDirectory()
        baked = Path(self.place.name, "COMMIT")
        baked.write_text(f"{commit}\n", "ascii")
        target = "src/kduel/COMMIT" if self.target_name == "sdist" else "kduel/COMMIT"
        build_data["force_include"][str(baked)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "place"):
            self.place.cleanup()
