"""A run's directory, and what is read out of it."""
