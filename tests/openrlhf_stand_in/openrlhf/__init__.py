"""Stands in for OpenRLHF where it is not installed: the one class that the agent builds on, with the same arguments and results."""
