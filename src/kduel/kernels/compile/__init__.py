"""Kernels from source: which tree, configured how, by which compiler; the build itself, and why it failed."""
