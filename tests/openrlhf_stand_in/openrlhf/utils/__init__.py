"""Stands in for `openrlhf.utils`."""
