"""cascade-plugin-language: words of another script or language in an English answer, found by rules and word frequencies.

`plugin.py` is the entry point, `domain.py` the domain `code-switch`. Importing this package loads nothing; the word lists are
loaded with the first score.
"""
