"""Results derived from several verdicts: matrices, trade-offs, campaigns, boot timelines."""
