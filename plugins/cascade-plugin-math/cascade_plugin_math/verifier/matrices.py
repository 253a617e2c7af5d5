"""Sums, multiples and products of matrices, carried out: `2A + B` beside the matrix that it is.

Only matrices written out, of at most `LARGEST` cells and `MOST_SYMBOLS` symbols, since every cell of a product is used many
times; powers, inverses and whatever does not fit together stay as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from cascade_plugin_math.verifier.node import Node, make, walk

LARGEST = 64
MOST_SYMBOLS = 500


def carried_out(node: Node) -> Node | None:
    """The matrix that a sum, a negative or a product is worth; `None` for everything else."""
    if not any(arg.op == "matrix" for arg in node.args) or not is_small(node):
        return None
    if node.op == "neg":
        return _scaled(node.args[0], ())
    return _sum(node.args) if node.op == "add" else _product(node.args) if node.op == "mul" else None


def is_small(node: Node) -> bool:
    """Whether so few symbols are written that every one may be used many times."""
    return sum(1 for _ in islice(walk(node), MOST_SYMBOLS + 1)) <= MOST_SYMBOLS


def rows_of(nested: Node) -> Node | None:
    """`((1, 2), (3, 4))` as a matrix; `None` for a tuple of anything else."""
    if not all(arg.op == "tuple" for arg in nested.args) or len({len(arg.args) for arg in nested.args}) != 1:
        return None
    cells = (cell for row in nested.args for cell in row.args)
    return make("matrix", *cells, value=(len(nested.args), len(nested.args[0].args)))


def _sum(terms: Sequence[Node]) -> Node | None:
    if any(term.op != "matrix" or term.value != terms[0].value for term in terms) or len(terms[0].args) > LARGEST:
        return None
    cells = (make("add", *cells) for cells in zip(*(term.args for term in terms), strict=True))
    return make("matrix", *cells, value=terms[0].value)


def _product(factors: Sequence[Node]) -> Node | None:
    """Numbers times matrices; matrices among themselves keep their order, and must fit."""
    matrices = [factor for factor in factors if factor.op == "matrix"]
    scalars = [factor for factor in factors if factor.op != "matrix"]
    if any(scalar.op in ("tuple", "set", "list", "rel") for scalar in scalars):
        return None
    whole: Node | None = matrices[0]
    for matrix in matrices[1:]:
        whole = None if whole is None else _times(whole, matrix)
    return None if whole is None else _scaled(whole, scalars) if scalars else whole


def _times(left: Node, right: Node) -> Node | None:
    if left.value[1] != right.value[0] or not is_small(left):
        return None
    (rows, inner), columns = left.value, right.value[1]
    if rows * columns > LARGEST:
        return None
    cells = [
        make("add", *(make("mul", left.args[row * inner + k], right.args[k * columns + column]) for k in range(inner)))
        for row in range(rows)
        for column in range(columns)
    ]
    return make("matrix", *cells, value=(rows, columns))


def _scaled(matrix: Node, scalars: Sequence[Node]) -> Node:
    """The matrix times the scalars; without any, its negative."""
    cells = (make("mul", *scalars, cell) if scalars else make("neg", cell) for cell in matrix.args)
    return make("matrix", *cells, value=matrix.value)
