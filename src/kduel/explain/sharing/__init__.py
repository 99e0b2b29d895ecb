"""Names of the cache lines that CPUs share: the kernel's own type information (btf), its memory (memory), and the lines (lines)."""
