"""Boards in a lab, driven by labgrid."""
