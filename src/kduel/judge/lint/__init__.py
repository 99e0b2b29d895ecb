"""Lint: checks of an experiment and its data; each finding has evidence and a remedy, and is shown with the verdict it affects."""

from kduel.judge.lint.examine import examine

__all__ = ["examine"]
