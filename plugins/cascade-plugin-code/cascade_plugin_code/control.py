"""Whose doing it is that tests did not come to their end: the control of an experiment, in which the solution gives nothing.

Tests go through what a solution returned, count up to it, evaluate it. If they end without a verdict, by a limit or in any other way, they are run once more
against a solution all of whose functions return `None`. If even these tests do not come to their end, the fault is theirs; if they do, it was what the solution gave them.

With nothing to compare, the first comparison would end the tests before they reach what takes so long. So no statement's failure stops the next one, but that of a
statement in a `while`, which might otherwise go round for ever. What this does not see: tests that take too long only where their solution is right.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings

_NAME = re.compile(r"[^\W\d]\w*")
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
_UNSHIELDED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ImportFrom, ast.Global, ast.Nonlocal)


def solution(test_code: str, entry_point: str) -> str:
    """A solution that has every name of the tests, each a function that returns `None`."""
    head, _, method = entry_point.partition(".")
    names = {name for name in (*_NAME.findall(test_code), head) if name and not keyword.iskeyword(name)}
    functions = [f"def {name}(*_, **__): pass\n" for name in sorted(names)]
    return "".join([*functions, f"class {head}:\n    def {method}(*_, **__): pass\n" if method else ""])


def tests(test_code: str) -> str:
    """The tests, changed so that no failure keeps the next statement from being run; as they are where they are nested too deep for that."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(test_code)
        _shield(tree)
        return ast.unparse(ast.fix_missing_locations(tree))
    except RecursionError:
        return test_code


def _shield(node: ast.AST) -> None:
    for name in _PARTS:
        part = getattr(node, name, None)
        if not isinstance(part, list) or isinstance(node, ast.While):
            continue
        for inner in part:
            _shield(inner)
        if name not in ("handlers", "cases"):
            part[:] = [_shielded(statement) for statement in part]


def _shielded(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, _UNSHIELDED):
        return statement
    return ast.Try([statement], [ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])], [], [])
