"""What spans several tokens, spelt plainly before the text is cut: `3 x 10^8`, `1.2\\mathrm{E}4`, `\\\\[2pt]`, unit vectors."""

from __future__ import annotations

import re

_UNIT_VECTOR = re.compile(r"\\(?:mathbf|hat|widehat|vec|boldsymbol|bm)\s*(?:\{\s*\\?([ijk])(?:math)?\s*\}|\s([ijk])\b)")
_ISOLATED_TIMES = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_UPRIGHT_EXPONENT = re.compile(r"(?<=\d)\\(?:mathrm|text)\{[eE]\}([+-]?\d)")
_SYSTEM = re.compile(r"\\left\s*\\\{\s*\\begin\{array\}\s*\{[^{}]{0,20}\}([^$]{0,2000}?)\\end\{array\}\s*\\right\s*\.")
_ALIGNED = re.compile(r"\\begin\{(aligned|align\*?|split|gathered|gather\*?)\}([^$]{0,2000}?)\\end\{\1\}")
_INTEGER = re.compile(
    r",?\s*(?:\\text\s*\{)?[\s,(]*\b(?:where|for|with)\b\s*(?:any\s+|some\s+|all\s+)?(?:\}|\$)?\s*"
    r"(?:([a-zA-Z])\s*\$?\s*(?:\\text\s*\{)?\s*(?:is|are|be)\s+(?:any\s+|an?\s+)?integers?|integers?\s*\}?\s*\$?([a-zA-Z]))\b[)\s]*\}?\$?\s*$"
)
_ROW_SKIP = re.compile(r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|cm|mm)\s*\]")

_CARRIAGE = re.compile(r"\\cr(?![A-Za-z])")
_LONE_SIGN = re.compile(r"\{\s*([:=])\s*\}")
_ORDER = re.compile(r"\\math(?:cal|scr|rm)\s*\{\s*O\s*\}")
_LONE_BAR = re.compile(r"(?<=[\w)}])\s*\|\s*(?=[\w({\\])")
_FACTORIAL_EQUALS = re.compile(r"(?<=[\d)])!=(?!=)")
_GLUED_SPACE = re.compile(r"\\q?quad(?=[A-Za-z]\b|[A-Za-z]_)")
_THIN = re.compile(r"(?<=\d)\s*\\,\s*(?=\d{3}(?!\d))")
_UPRIGHT_INDEX = re.compile(r"_\s*\{\s*\\(max|min|lim|deg)\s*\}")
_RAISED_FRACTION = re.compile(r"(?:\{\s*\})?\^\{?(\d{1,9})\}?\s*/\s*_\{?(\d{1,9})\}?")  # ²⁄₃
_MICRO = re.compile(r"\\mu\s*\\(?:text|mathrm|rm)\s*\{\s*([mgsLl])(?=[}/^\s])")
_OHM = re.compile(  # glued to its number, an italic Ω is a factor
    r"(?<=[\d}])(?:(?:\s|\\[,;: ]|~)*\\(?:text|mathrm)\s*\{\s*\\Omega\s*\}|(?:\s|\\[,;: ]|~)+\\Omega)\s*$"
)
_RUN = re.compile(r"\\+")
_DOUBLED = re.compile(
    r"\\\\(?:[dtc]?frac|sqrt|left|right|boxed|text|math(?:rm|bf|bb)|begin|end|pi|infty|cdot|times|pm|[lg]eq?|neq?|in|cup|cap|theta|alpha|"
    r"beta|circ|[lc]?dots|q?quad|sin|cos|tan|log|ln|sum|int|leqslant|geqslant)(?![A-Za-z])"
)
_OVER = re.compile(r"\\(?:over|choose)(?![A-Za-z])")


def unescaped(text: str) -> str:
    """The text with single backslashes where it was escaped twice on its way: `\\\\frac{1}{2}` is a fraction.

    Only where no run of backslashes is odd, as `\\\\` alone ends a row, and a command that everybody knows follows one.
    """
    if "\\\\" not in text or not _DOUBLED.search(text) or any(len(run) % 2 for run in _RUN.findall(text)):
        return text
    return _RUN.sub(lambda run: "\\" * (len(run[0]) // 2), text)


def prepared(text: str) -> str:
    """The text in which every sign of a token stands together."""
    if "\\begin" in text:
        text = _CARRIAGE.sub(r"\\\\ ", text)
        text = _SYSTEM.sub(r"\\begin{cases}\1\\end{cases}", text)
        text = _ALIGNED.sub(lambda match: rf"\begin{{cases}}{match[2].replace('&', ' ')}\end{{cases}}", text)
    if "integer" in text:
        text = _INTEGER.sub(lambda match: rf", {match[1] or match[2]} \in \mathbb{{Z}}", text)
    text = _FACTORIAL_EQUALS.sub("! =", text)
    text = _GLUED_SPACE.sub(r"\\quad ", text)
    text = _THIN.sub(r"\\,", text)
    text = _UPRIGHT_INDEX.sub(r"_{\\text{\1}}", text)
    text = _ORDER.sub("O", _LONE_SIGN.sub(r"\1", text))
    if text.count("|") == 1:  # a bar without its partner divides: `P(A|B)`
        text = _LONE_BAR.sub(r"\\mid ", text)
    if _OVER.search(text):
        text = f"{{{text}}}"
    text = _ROW_SKIP.sub(r"\\\\ ", _UPRIGHT_EXPONENT.sub(r"E\1", text))
    if "_" in text:
        text = _RAISED_FRACTION.sub(r"\\frac{\1}{\2}", text)
    if "\\mu" in text or "\\Omega" in text:
        text = _OHM.sub(r"\\text{ ohm}", _MICRO.sub(r"\\text{ micro\1", text))
    text = _ISOLATED_TIMES.sub("*", text)
    return _UNIT_VECTOR.sub(lambda match: rf"\unitvector{{{match[1] or match[2]}}}", text)
