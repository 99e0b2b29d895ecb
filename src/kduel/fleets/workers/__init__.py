"""Parts that adapters share which start `kduel worker` as a process of their own, here or through ssh."""
