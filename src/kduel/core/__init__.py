"""Types and helpers that every other part uses: the experiment's types, results, errors, progress, plug-ins, the cache, text."""
