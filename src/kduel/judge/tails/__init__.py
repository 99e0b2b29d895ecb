"""Tails: quantiles over boots, shares of samples beyond a bound, and return levels, each with an interval whose unit is the boot."""
