"""Whose doing it is that tests did not come to their end: the control of an experiment, in which the solution gives nothing.

Tests go through what a solution returned, count up to it, evaluate it. If they end without a verdict, by a limit or in any other way, they are run once more
against solutions all of whose functions return one of `ANSWERS`. If even with these the tests do not come to their end, the fault is theirs; if they do with one, it was what the
solution gave them.

With nothing to compare, the first comparison would end the tests before they reach what takes so long. So no statement's failure stops the next one, but that of a
statement in a `while`, which might otherwise go round for ever. A `while` that waits for something of the solution's, `while f(n) != 5`, goes round `MOST_ROUNDS` times at most: which answer it waits for
is not known. What this does not see: tests that take too long only where their solution is right.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings

from cascade_plugin_code import testcode

ANSWERS = ("None", "True")
MOST_ROUNDS = 100
_WORD = re.compile(r"[^\W\d]\w*")
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
_UNSHIELDED = (ast.ImportFrom, ast.Global, ast.Nonlocal)


def solution(test_code: str, entry_point: str, answer: str = "None") -> str:
    """A solution that has every name of the tests, each a function that returns one answer."""
    head, _, method = entry_point.partition(".")
    words = {*_WORD.findall(test_code), head}
    names = sorted(word for word in words if word.isidentifier() and not keyword.iskeyword(word))
    functions = [f"def {name}(*_, **__): return {answer}\n" for name in names]
    of_class = f"class {head}:\n    def {method}(*_, **__): return {answer}\n" if method else ""
    return "".join([*functions, of_class])


def tests(test_code: str, entry_point: str = "") -> str:
    """The tests, changed so that no failure keeps the next statement from being run; as they are where they are nested too deep for that."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(test_code)
        bounded = _Bounded(testcode.waiting(tree, entry_point)).visit(tree)
        _shield(bounded)
        return ast.unparse(ast.fix_missing_locations(bounded))
    except RecursionError:
        return test_code


class _Bounded(ast.NodeTransformer):
    """Makes loops such that go round so often at most."""

    def __init__(self, loops: list[ast.While]) -> None:
        self._loops = set(loops)

    def visit_While(self, loop: ast.While) -> ast.stmt:
        self.generic_visit(loop)
        if loop not in self._loops:
            return loop
        over = ast.If(ast.UnaryOp(ast.Not(), loop.test), [*loop.orelse, ast.Break()], [])
        rounds = ast.Call(ast.Name("range", ast.Load()), [ast.Constant(MOST_ROUNDS)], [])
        return ast.For(ast.Name("_round", ast.Store()), rounds, [over, *loop.body], [])


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
    """A statement whose failure is none; not `SystemExit` either, by which tests say that a solution is wrong."""
    if isinstance(statement, _UNSHIELDED):
        return statement
    return ast.Try([statement], [ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [ast.Pass()])], [], [])
