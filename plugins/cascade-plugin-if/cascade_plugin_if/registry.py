"""Every instruction under its public id: the 25 of IFEval, 29 more to train on, and the 58 of IFBench to evaluate with.

`TRAINING` and `EVALUATION` share no id: what a model is evaluated with is never in a training task (arXiv 2507.02833, section 3).
`lookup` finds an instruction or says which ids there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_if import ifbench, training
from cascade_plugin_if.instructions import REGISTRY as IFEVAL
from cascade_plugin_if.instructions.base import Instruction

TRAINING: Mapping[str, Instruction] = {**IFEVAL, **{family.id: family for family in training.FAMILIES}}
EVALUATION: Mapping[str, Instruction] = {family.id: family for family in ifbench.FAMILIES}
REGISTRY: Mapping[str, Instruction] = {**TRAINING, **EVALUATION}

__all__ = ["EVALUATION", "IFEVAL", "REGISTRY", "TRAINING", "lookup"]


def lookup(name: Any) -> Instruction:
    """The instruction of that public id.

    Raises:
        TaskError: there is none; names the nearest ids.
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    near = difflib.get_close_matches(str(name)[:80], REGISTRY, n=3, cutoff=0.5)
    allowed = (
        f"nearest are {', '.join(map(repr, near))}"
        if near
        else f"known are {len(REGISTRY)}, of IFEval, IFEvalG and IFBench"
    )
    raise TaskError(f"unknown instruction {str(name)[:80]!r}, {allowed}")
