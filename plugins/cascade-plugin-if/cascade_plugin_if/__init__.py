"""cascade-plugin-if: instruction following. The instruction families of IFEval (arXiv 2311.07911) and a generator.

`plugin.py` is the entry point, `domain.py` the domain. Importing this package loads nothing; the verifier is loaded
with the first score.
"""
