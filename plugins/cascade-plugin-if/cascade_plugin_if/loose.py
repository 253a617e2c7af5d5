"""The loose reading of IFEval (arXiv 2311.07911, section 2.2): eight texts, one of which must satisfy the instruction.

The answer itself, without its first line, without its last, without both; and each of these without asterisks. So
"Sure, here it is:" or bold type does not cost the verdict. It also forgives some real mistakes: strict is what trains.
"""

from __future__ import annotations

LONGEST = 250_000
"""Longer answers (about 60,000 tokens) are read strictly only, so that a verdict stays within seconds."""


def variants(text: str) -> list[str]:
    """The distinct texts of the loose reading, the answer itself first; blank ones are left out."""
    if len(text) > LONGEST:
        return [text]
    lines = text.split("\n")
    cuts = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    texts = cuts + [cut.replace("*", "") for cut in cuts]
    return [text for text in dict.fromkeys(texts) if text.strip()]
