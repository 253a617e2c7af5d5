"""The 58 constraints of IFBench (arXiv 2507.02833) under their public ids: for evaluation only, none has an `edit`.

One module a group of ids, `FAMILIES` in each; `english.py`, `syllables.py` and `places.py` hold what they know about words and
the world. Nothing is downloaded. Every rule is written from what the constraint says; `docs/domains/ifbench.md` lists
where the public checkers decide otherwise.

What asks something of each sentence, word, bullet or line is not followed where there is none, and what compares one with
the next needs two: an answer with nothing in it to judge has not done what was asked.
"""

from __future__ import annotations

from cascade_plugin_if.ifbench import counts, customs, formats, layouts, ratios, repeats, sequences, spellings, tables
from cascade_plugin_if.instructions.base import Instruction

_MODULES = (counts, ratios, spellings, sequences, formats, layouts, customs, tables, repeats)
FAMILIES: tuple[Instruction, ...] = tuple(family for module in _MODULES for family in module.FAMILIES)
