"""A site of static pages about many runs, made from their index; it opens offline and has no script."""
