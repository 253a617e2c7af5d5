"""What spans several tokens, spelt plainly before the text is cut: `3 x 10^8`, `1.2\\mathrm{E}4`, `\\\\[2pt]`, unit vectors."""

from __future__ import annotations

import re

_UNIT_VECTOR = re.compile(r"\\(?:mathbf|hat|widehat|vec|boldsymbol|bm)\s*(?:\{\s*\\?([ijk])(?:math)?\s*\}|\s([ijk])\b)")
_ISOLATED_TIMES = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_UPRIGHT_EXPONENT = re.compile(r"(?<=\d)\\(?:mathrm|text)\{[eE]\}([+-]?\d)")
_ROW_SKIP = re.compile(r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|cm|mm)\s*\]")


def prepared(text: str) -> str:
    """The text in which every sign of a token stands together."""
    text = _ROW_SKIP.sub(r"\\\\ ", _UPRIGHT_EXPONENT.sub(r"E\1", text))
    text = _ISOLATED_TIMES.sub("*", text)
    return _UNIT_VECTOR.sub(lambda match: rf"\unitvector{{{match[1] or match[2]}}}", text)
