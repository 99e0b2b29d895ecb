"""All that acts in time: preparation, the trial script, the runner, exact counts, bisection."""
