"""Lint: what is wrong with an experiment, noticed by itself, with evidence and remedy, beside the verdict it touches."""

from __future__ import annotations

from kduel.judge.lint.examine import examine

__all__ = ["examine"]
