"""What adapters share that start `kduel worker` as a process of their own, here or through ssh."""
