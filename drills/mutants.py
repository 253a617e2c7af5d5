"""Mutants of Python functions: small changes of the kind that programmers and models make, drawn from a seed.

A change is one of: another comparison or arithmetic operator, `and` for `or`, a constant off by one, another text, a condition
turned round, a returned value replaced, a statement left out. Docstrings stay, and so does all code outside of the one function.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator

_COMPARE: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn], ast.NotIn: [ast.In], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub, ast.Mult], ast.Sub: [ast.Add], ast.Mult: [ast.Add], ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Mult, ast.Mod], ast.Mod: [ast.FloorDiv, ast.Add], ast.Pow: [ast.Mult], ast.BitXor: [ast.BitAnd],
}  # fmt: skip


def mutants(source: str, name: str, seed: int) -> Iterator[str]:
    """Different programs, each the source with the function `name` changed in one place, or from the 25th on in two; endless in theory."""
    rng = random.Random(f"{seed} {name}")
    seen = {ast.unparse(ast.parse(source))}
    for number in range(400):
        tree = ast.parse(source)
        for _ in range(1 if number < 25 else 2):
            changes = _changes(_function(tree, name))
            if changes:
                rng.choice(changes)(rng)
        text = ast.unparse(ast.fix_missing_locations(tree))
        if text not in seen:
            seen.add(text)
            yield text


def _function(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _changes(function: ast.FunctionDef) -> list[Callable[[random.Random], None]]:
    found: list[Callable[[random.Random], None]] = []
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    for node in (inner for statement in function.body if statement is not docstring for inner in ast.walk(statement)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
            found.append(lambda rng, node=node: _comparison(node, rng))
        if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
            found.append(lambda rng, node=node: _operator(node, rng))
        if isinstance(node, ast.BoolOp):
            found.append(
                lambda rng, node=node: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
            )
        if isinstance(node, ast.Constant):
            found.append(lambda rng, node=node: _constant(node, rng))
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            found.append(lambda rng, node=node: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(lambda rng, node=node: setattr(node, "value", ast.Constant(rng.choice((None, 0, "", True)))))
        if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef) and node.body:
            found.append(lambda rng, node=node: _without_one(node.body, rng))
    found.append(lambda rng: _without_one(function.body, rng))
    return found


def _comparison(node: ast.Compare, rng: random.Random) -> None:
    node.ops[0] = rng.choice(_COMPARE[type(node.ops[0])])()


def _operator(node: ast.BinOp | ast.AugAssign, rng: random.Random) -> None:
    node.op = rng.choice(_ARITHMETIC[type(node.op)])()


def _constant(node: ast.Constant, rng: random.Random) -> None:
    value = node.value
    if isinstance(value, bool):
        node.value = not value
    elif isinstance(value, int | float):
        node.value = value + rng.choice((-1, 1))
    elif isinstance(value, str):
        node.value = rng.choice((value + "x", value[1:], value.swapcase())) if value else "x"


def _without_one(body: list[ast.stmt], rng: random.Random) -> None:
    body[rng.randrange(len(body))] = ast.Pass()
