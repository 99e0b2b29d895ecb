"""What a report says, the same in every format."""
