"""RLHF for cascade-rl: reward models that are served and asked, and what is trained and measured by them.

`plugin.py` is the entry point. Importing this package loads no model and no framework.
"""
