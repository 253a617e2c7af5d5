"""Mathematical tasks with labels from everywhere they can be had: contests, generators, the golds of another verifier's tests.

Third-party archives are read, not installed. Only DeepMind's generator is run, from its unpacked wheel, in this process:
it was written for an older sympy, from which one function has moved, and for an older numpy, without which some of its modules fail;
what those would make is left out.
"""

from __future__ import annotations

import importlib
import random
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import math_agreement
from cascade_plugin_math.domain import MathDomain
from cascade_plugin_math.gym import NAMES

from cascade_core import Task

EACH = 10  # tasks of a generator


def contests(file: Path) -> Iterator[Task]:
    """The contest problems, through the loader."""
    yield from MathDomain(eval_data=str(file)).tasks("test", 0)


def gym() -> Iterator[Task]:
    """Tasks of every generator of reasoning-gym that the plugin offers."""
    for name in NAMES:
        yield from islice(MathDomain(generator={"name": name, "test_tasks": EACH}).tasks("test", 0), EACH)


def golds(files: Mapping[str, bytes]) -> Iterator[Task]:
    """The golds of math-verify's test pairs."""
    for pair in math_agreement.pairs_of(files)[0]:
        yield Task(pair.at, "", pair.gold)


def deepmind(wheel: Path, folder: Path) -> Iterator[Task]:
    """Tasks of every module of mathematics-dataset that runs beside today's numpy."""
    import numpy

    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    solver = importlib.import_module("sympy.solvers.diophantine.diophantine")
    sys.modules["sympy.solvers.diophantine"].base_solution_linear = solver.base_solution_linear  # type: ignore[attr-defined]
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            modules = importlib.import_module("mathematics_dataset.modules.modules").test()
            random.seed(1)
            numpy.random.seed(1)
            for name, make in _flat(modules):
                yield from _drawn(name, make)
    finally:
        sys.path.remove(str(folder))


def _drawn(name: str, make: Any) -> Iterator[Task]:
    for number in range(EACH):
        try:
            problem = make()
        except AttributeError:  # numpy.object, ndarray.itemset: gone from numpy
            continue
        yield Task(f"{name}-{number}", str(problem.question), str(problem.answer))


def _flat(modules: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in modules.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield prefix + name, value
