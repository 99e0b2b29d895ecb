"""Nodes of a Slurm cluster: asking Slurm, and nodes that Slurm reboots into the kernel of a trial."""
