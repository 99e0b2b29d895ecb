"""Parts that several benchmarks share: strict reading, parameters, background load, kernel logs."""
