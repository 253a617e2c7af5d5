"""cascade-plugin-if: instruction following. The instructions of IFEval (arXiv 2311.07911), of IFBench and its
training set (arXiv 2507.02833), and a generator.

`plugin.py` is the entry point, `domain.py` the domain. Importing this package loads nothing; the verifier is loaded
with the first score.
"""
