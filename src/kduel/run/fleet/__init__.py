"""A run on several machines: the controller, what works on a member, and who is out of service."""
