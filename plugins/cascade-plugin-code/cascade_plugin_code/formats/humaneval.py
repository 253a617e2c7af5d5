"""HumanEval: `task_id`, `prompt`, `entry_point`, `canonical_solution`, `test`.

The prompt is code that ends inside a function. What stands before that function, imports and helpers, is code that an answer may
rely on, and that the tests use as it is published: an answer's own version of a helper never judges the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.formats import fields
from cascade_plugin_code.problems import Problem

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def problem(row: Mapping[str, Any], source: str) -> Problem:
    """The problem of a row; its reference is the prompt with the canonical solution below it.

    Raises:
        TaskError, ValueError: it is none.
    """
    prompt = fields.statement(row, ("prompt",))
    name = reading.text(row.get("entry_point"), "'entry_point'")
    test = reading.text(row.get("test"), "'test'")
    if not test.strip():
        raise TaskError("'test' is empty, so nothing would be checked")
    before = preamble(prompt, name)
    answer: dict[str, Any] = {
        "kind": "assert",
        "entry_point": name,
        "test_code": f"{before}\n\n{test}" if before else test,
    }
    if before:
        answer["preamble"] = before
    solution = row.get("canonical_solution")
    text = f"Complete this function:\n\n```python\n{prompt.strip()}\n```"
    return Problem(
        id=fields.identity(row, ("task_id", "id"), text),
        text=text,
        answer=answer,
        source=source,
        solution=prompt + solution if isinstance(solution, str) and solution.strip() else "",
    )


def preamble(prompt: str, name: str) -> str:
    """The top-level code of a prompt before the function that is asked for.

    Raises:
        TaskError: the prompt does not define this function, or is no Python.
    """
    try:
        tree = ast.parse(f"{prompt.rstrip()}\n    pass\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as cause:
        raise TaskError(f"'prompt' is no Python that ends inside a function: {cause}") from cause
    for node in tree.body:
        if isinstance(node, _FUNCTIONS) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(prompt.splitlines()[: first - 1]).strip()
    raise TaskError(f"'prompt' does not define the entry point {name[:60]!r}")
