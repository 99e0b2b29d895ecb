"""Finding the commit that changed an exact cost: build, boot and count, as `git bisect` asks."""
