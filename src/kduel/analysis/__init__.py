"""What is read out of several verdicts: matrices, trade-offs, campaigns, boot timelines."""
