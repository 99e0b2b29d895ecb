"""Campaigns: runs made at different times, put beside each other without pretending that only one thing changed."""
