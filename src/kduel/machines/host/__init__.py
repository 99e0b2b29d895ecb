"""The machine that KDuel runs on: conditions that bias or prevent measurement."""
