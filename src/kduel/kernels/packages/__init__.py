"""Shared code of kernels from other distributions share: fetching, signatures, and formats of packages."""
