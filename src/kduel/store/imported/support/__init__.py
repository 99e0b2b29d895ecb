"""Parts that the foreign formats share: rows, bounded reading, checks, the stored import."""
