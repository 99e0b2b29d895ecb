"""Profiles of a timed run: extra trials of two contenders, one step of each recorded by perf. They enter no verdict."""
