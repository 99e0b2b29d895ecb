"""Kernel images and modules as files, and kernels kept in the cache."""
