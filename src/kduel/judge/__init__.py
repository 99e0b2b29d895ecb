"""From samples to verdicts and findings."""
