"""A machine at the other end of an SSH connection: speaking with it, rebooting it, running a script on it."""
