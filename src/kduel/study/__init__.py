"""The study file, its suites, and the plan that follows from them."""
