"""What a question asks for by its name: after `Find $m + n$`, the answer `m + n = 104` says 104.

Only an expression that directly follows the verb of asking counts, and only if the answer writes the same symbols in the same
order. Any other equation stays an equation.
"""

from __future__ import annotations

import re

from cascade_plugin_math.verifier.repeats import symbols_of

_MAX_PROBLEM, _MAX_SIDE = 20_000, 200
_ASKS = re.compile(
    r"\b(?:find|compute|determine|evaluate|calculate|give|enter|submit|report|what is|what's)\s+"
    r"(?:the\s+)?(?:(?:numerical|exact|possible|maximum|minimum|smallest|largest|least|greatest)\s+)*(?:(?:value|sum|product|quantity)\s+(?:of\s+)?)?"
    r"(?:\$\$?([^$]{1,200})\$|\\\((.{1,200}?)\\\)|\\\[(.{1,200}?)\\\]|([^,;?$\n]{1,200}?)(?=[.,;?\n]|$))",
    re.I | re.S,
)


def value_of(text: str, problem: str) -> str:
    """The right side of `m + n = 104` where the question asks for m + n; otherwise the text itself."""
    name, sign, value = text.partition("=")
    if not sign or not value.strip() or len(name) > _MAX_SIDE or name.rstrip().endswith(("<", ">", "!", "\\not")):
        return text
    said = symbols_of(name)
    asked = (next(part for part in match.groups() if part) for match in _ASKS.finditer(problem[:_MAX_PROBLEM]))
    return value.strip() if any(said == symbols_of(piece.rstrip(" .,")) for piece in asked) else text
