"""Where an exact difference comes from: instructions by function and call chain, of one operation in two kernels."""
