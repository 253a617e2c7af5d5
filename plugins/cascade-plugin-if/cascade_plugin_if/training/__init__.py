"""The 29 constraints that IFBench's authors train on beside those of IFEval, under their public ids (IFEvalG, arXiv 2507.02833).

One module a kind, `FAMILIES` in each; `draws.py` draws their arguments for the generator. None is one of the 58 that
IFBench evaluates with, and every rule is written from what the constraint says.
"""

from __future__ import annotations

from cascade_plugin_if.instructions.base import Instruction
from cascade_plugin_if.training import copies, edges, keywords, marks, shapes

_MODULES = (copies, keywords, edges, shapes, marks)
FAMILIES: tuple[Instruction, ...] = tuple(family for module in _MODULES for family in module.FAMILIES)
