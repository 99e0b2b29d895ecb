"""Origin of an exact difference: instructions by function and call chain, of one operation in two kernels."""
