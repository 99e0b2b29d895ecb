"""What is compared, where, with what and how often: the study file, its suites, the plan."""
