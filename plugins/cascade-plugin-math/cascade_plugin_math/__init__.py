"""Mathematics for cascade-rl: problems from files, the hub and generators, and a verifier of their answers.

Importing this package loads neither sympy nor math-verify, pyarrow, datasets or reasoning-gym.
"""
