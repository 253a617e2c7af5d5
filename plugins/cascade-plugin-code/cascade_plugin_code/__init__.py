"""Code for cascade-rl: programs judged by their tests, in a sandbox.

Importing this package starts no sandbox and loads no engine's client.
"""
