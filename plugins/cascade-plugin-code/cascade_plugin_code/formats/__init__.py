"""Problems as data sets publish them: the format of this package, and those of APPS, TACO, LiveCodeBench, HumanEval and DeepCoder.

Each module reads one row of its format into a `Problem`, in whose answer nothing of the data set's way of writing is left, or
says why the problem is left out (`Omitted`). Which format a row has is seen from its fields, unless the option names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cascade_core.errors import TaskError, UsageError
from cascade_plugin_code import exam
from cascade_plugin_code.formats import apps, deepcoder, humaneval, livecodebench, own
from cascade_plugin_code.problems import Omitted, Problem

Reader = Callable[[Mapping[str, Any], str], Problem | Omitted]

FORMATS: Mapping[str, Reader] = {
    "own": own.problem,
    "taco": apps.problem,
    "apps": apps.problem,
    "livecodebench": livecodebench.problem,
    "humaneval": humaneval.problem,
    "deepcoder": deepcoder.problem,
}
AUTO = "auto"
_SIGNS = (
    ("own", ("answer",)),
    ("apps", ("input_output",)),
    ("livecodebench", ("public_test_cases",)),
    ("livecodebench", ("private_test_cases",)),
    ("humaneval", ("entry_point", "test")),
    ("deepcoder", ("tests",)),
    ("deepcoder", ("ground_truth",)),
    ("deepcoder", ("reward_model",)),
)


def read(row: Mapping[str, Any], where: str, source: str, name: str = AUTO) -> Problem | Omitted:
    """The problem of a row, its answer checked, or why it is left out.

    Args:
        where: file and line, for messages.
        source: what the problem is from, where the row does not say.
        name: one of `FORMATS`, or `auto`.

    Raises:
        UsageError: the row is no problem of the format; names the place.
    """
    try:
        found = FORMATS[_recognised(row) if name == AUTO else name](row, source)
        if isinstance(found, Problem):
            exam.read(found.answer)
    except exam.Unjudged as cause:
        return Omitted(f"whose tests compare what cannot be judged ({str(cause).rpartition(': ')[2]})")
    except (TaskError, ValueError, RecursionError) as cause:
        raise UsageError(f"{where}: {cause}") from cause
    return found


def _recognised(row: Mapping[str, Any]) -> str:
    """The format whose fields the row has; the package's own where it has those of none, so that its message says what is missing."""
    return next((name for name, signs in _SIGNS if all(row.get(sign) is not None for sign in signs)), "own")
