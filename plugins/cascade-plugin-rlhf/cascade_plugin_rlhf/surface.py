"""The surface of an answer: what a reward model may come to reward in place of what is said.

Length and formatting are the known ways of pleasing a judge without being better (arXiv 2310.03716 on length, arXiv
2409.11704 on lists, headings and bold). They are metrics of every score, whose names begin with `surface_`: a stage logs beside
the mean of each how it goes with the reward inside the groups. Whether that is too much is for a person, or a level, to say.
"""

from __future__ import annotations

import re

_ITEM = re.compile(r"^[ \t]{0,12}(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\s][^*\n]{0,400}\*\*|__[^_\s][^_\n]{0,400}__")


def surface(answer: str) -> dict[str, float]:
    """Characters, and how many list items, headings and bold passages in Markdown.

    >>> surface("# A\\n- one\\n- **two**")
    {'surface_length': 19.0, 'surface_lists': 2.0, 'surface_headings': 1.0, 'surface_bold': 1.0}
    """
    return {
        "surface_length": float(len(answer)),
        "surface_lists": float(sum(1 for _ in _ITEM.finditer(answer))),
        "surface_headings": float(sum(1 for _ in _HEADING.finditer(answer))),
        "surface_bold": float(sum(1 for _ in _BOLD.finditer(answer))),
    }
