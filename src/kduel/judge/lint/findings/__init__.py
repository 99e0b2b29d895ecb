"""**One file a finding**: its check, its cause and weight, what it means and what to do."""
