"""Campaigns: runs made at different times, put side by side without pretending that only one thing changed."""
