"""Shared parts of the machines whose trials boot a guest of KDuel's own."""
