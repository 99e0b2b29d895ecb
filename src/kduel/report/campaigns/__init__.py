"""Reports of campaigns: comparisons of runs made at different times."""
