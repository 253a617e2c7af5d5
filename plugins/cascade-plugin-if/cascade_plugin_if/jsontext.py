"""Whether a text is JSON, by the grammar of RFC 8259. Any depth, any size of number; linear, without recursion.

Python's own parser stops at a depth that hangs on the stack, takes NaN, and refuses long numbers. It builds no value,
and says nothing about keys that occur twice (allowed, section 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SPACE = " \t\n\r"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    rf'(?P<string>"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{{4}}){_PLAIN})*+")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)"
    r"|(?P<mark>[\[\]{}:,]))"
)
_VALUE = {"string": "end", "scalar": "end", "[": "first", "{": "name or end"}
# What may come next, by state and token. `end` is the end of a value: what follows depends on what is open.
_STEPS: Mapping[str, Mapping[str, str]] = {
    "value": _VALUE,
    "first": {**_VALUE, "]": "close"},
    "name or end": {"string": "colon", "}": "close"},
    "name": {"string": "colon"},
    "colon": {":": "value"},
    "in [": {",": "value", "]": "close"},
    "in {": {",": "name", "}": "close"},
    "whole": {},
}


def is_json(text: str) -> bool:
    """Whether the text is one JSON value, with nothing but JSON's white space around it.

    >>> is_json('{"a": [1, null]}'), is_json("[1,]"), is_json("NaN")
    (True, False, False)
    """
    opened: list[str] = []
    state, at, end = "value", 0, len(text.rstrip(_SPACE))
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            return False
        kind = token["mark"] or str(token.lastgroup)
        state = _STEPS[state].get(kind, "")
        if not state:
            return False
        if state == "close":
            opened.pop()
        elif kind in ("[", "{"):
            opened.append(kind)
        if state in ("close", "end"):
            state = f"in {opened[-1]}" if opened else "whole"
        at = token.end()
    return state == "whole"
