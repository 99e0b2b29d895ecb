"""KDuel: which Linux kernel or scheduler is faster, by how much, and whether you can be sure."""

__version__ = "0.1.0"
