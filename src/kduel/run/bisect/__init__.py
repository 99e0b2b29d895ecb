"""Finding the commit that changed an exact cost: build, boot and count the commits that `git bisect` selects."""
