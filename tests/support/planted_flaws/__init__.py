"""Flaws of a stated size, one file a finding."""
