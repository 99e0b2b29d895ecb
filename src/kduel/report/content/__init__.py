"""The content of a report, the same in every format."""
