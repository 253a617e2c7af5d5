"""What the text of test code says before any response is there: which calls look at their arguments, and what no response could be judged by.

**Arguments.** A solution gets copies, and what it does to them is not seen: otherwise it could empty the list from which the test computes what it expects
(`assert f(x) == sorted(x)`). A test that is about the change needs it, though, and its text says so. A call *looks* at its arguments if

- it is a statement of its own, so that its result is not used: `sort_it(x)`; or
- a name in its arguments is compared further down in the same function, by itself (`x == …`, `x[:k] == …`, `len(x) == …`, `assertEqual(x, …)`), with something that neither
  calls anything of the solution nor is computed from its results or from that name; or
- a name in its arguments is the object of an `is`.

**What no response could be judged by** is what cannot come out of the sandbox with its equality, wherever the text says that it is compared: values of
`UNCARRIED`, and an object of a class of the solution's own on one side with something of the solution's on the other, `f(1) == Point(1, 2)`: its `==` is the solution's
to define. So is a test class derived from one of the solution's. All this is read from the text alone: a response cannot change what it says, and so cannot make itself
unjudged.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

UNCARRIED = {
    "array": ("array",),
    "collections": ("ChainMap", "UserDict", "UserList", "UserString"),
    "numpy": ("arange", "array", "eye", "matrix", "ones", "zeros"),
    "pandas": ("DataFrame", "Series"),
    "types": ("SimpleNamespace",),
    "zoneinfo": ("ZoneInfo",),
}
"""What makes values whose equality is lost on the way, by module."""
_COMPARING = ("assertEqual", "assertEquals", "assertListEqual", "assertSequenceEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual", "assertCountEqual")  # fmt: skip
_IDENTITY = ("assertIs", "assertIsNot")
_SEEN_THROUGH = ("list", "tuple", "len", "set", "dict")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Reading:
    """The lines of calls that look at their arguments, and why no response could be judged, `""` if nothing in the text shows that."""

    looking: frozenset[int] = frozenset()
    unjudged: str = ""


@lru_cache(maxsize=1024)
def read(source: str, entry_point: str = "") -> Reading:
    """What the text says; nothing if it is no Python, which is told when it runs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        text = _Text(tree, entry_point)
        return Reading(frozenset(text.looking()), next(text.unjudged(), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reading()


def waiting(tree: ast.Module, entry_point: str) -> list[ast.While]:
    """The loops whose condition asks for something of the solution's."""
    text = _Text(tree, entry_point)
    return [node for node in ast.walk(tree) if isinstance(node, ast.While) and text.of_solution(node.test)]


class _Text:
    def __init__(self, tree: ast.Module, entry_point: str) -> None:
        self._tree = tree
        self._imported: dict[str, tuple[str, str]] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._own: set[str] = set()
        self._bound: set[str] = set()
        self._parameters: set[str] = set()
        for node in ast.walk(tree):
            self._note(node)
        self._named = {"candidate", entry_point.partition(".")[0]}
        self._named |= {name for name, (module, _) in self._imported.items() if module == "solution"}
        self._names_all = "*" not in {name for _, name in self._imported.values()}
        self._results = self._computed()

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self._imported |= {(one.asname or one.name).partition(".")[0]: (one.name, "") for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            self._imported |= {one.asname or one.name: (node.module or "", one.name) for one in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._own.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bound.add(node.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self._values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.arg):
            self._parameters.add(node.arg)

    # --- what is the solution's -------------------------------------------------------------------------------
    def _is_solutions(self, name: str) -> bool:
        """Whether only the solution can have this name, as far as the text shows where names come from."""
        known = self._own | self._bound | self._parameters | self._imported.keys()
        return name in self._named or (name not in known and not hasattr(builtins, name))

    def _may_be_solutions(self, call: ast.Call) -> bool:
        """Whether a call may be one of the solution's: also of a parameter, or of an attribute of what a name stands for."""
        root = _root(call.func)
        if root == "self" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            return False  # a method of the test case
        if self._is_solutions(root) or root in self._parameters:
            return True
        return bool(root) and root in self._bound and root not in self._own and root not in self._imported

    def of_solution(self, node: ast.AST, *, places: bool = True) -> bool:
        """Whether something of the solution's is in it; without `places`, which item is looked at does not count."""
        names = {
            part.id for part in (ast.walk(node) if places else _without_places(node)) if isinstance(part, ast.Name)
        }
        return any(self._is_solutions(name) or name in self._results for name in names)

    def _computed(self) -> set[str]:
        """Names that stand for something of the solution's."""
        self._results: set[str] = set()
        pairs = [pair for node in ast.walk(self._tree) for pair in _assigned(node)]
        while True:
            found = {name for names, value in pairs if self.of_solution(value) for name in names}
            if found <= self._results:
                return self._results
            self._results |= found

    # --- arguments ----------------------------------------------------------------------------------------------
    def looking(self) -> Iterator[int]:
        for scope in [self._tree, *(node for node in ast.walk(self._tree) if isinstance(node, _FUNCTIONS))]:
            inside = list(_inside(scope))
            compared = [pair for node in inside for pair in _compared(node)]
            for node in inside:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    given = [*node.value.args, *node.value.keywords]
                    if self._may_be_solutions(node.value) and not any(map(self._calls, given)):
                        yield from _lines(node.value)
                elif isinstance(node, ast.Call) and any(self._looks(node, *pair) for pair in compared):
                    yield from _lines(node)

    def _looks(self, call: ast.Call, one: ast.expr, other: ast.expr, identity: bool) -> bool:
        if one.lineno < call.lineno or not self._may_be_solutions(call):
            return False
        names = {part.id for given in (*call.args, *call.keywords) for part in ast.walk(given) if isinstance(part, ast.Name)}  # fmt: skip
        name = _root(one)
        if identity:
            return isinstance(one, ast.Name) and name in names
        used = {part.id for part in ast.walk(other) if isinstance(part, ast.Name)}
        return (
            name in names and name not in used and not self.of_solution(other, places=False) and not self._calls(other)
        )

    def _calls(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Call) and self._may_be_solutions(part) for part in ast.walk(node))

    # --- what cannot be judged --------------------------------------------------------------------------------
    def unjudged(self) -> Iterator[str]:
        if not self._names_all:  # `from unittest import *`: a name may be of anywhere
            return
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    name = base.id if isinstance(base, ast.Name) else ""
                    if name and self._is_solutions(name) and not name.endswith(("Error", "Exception")):
                        yield f"a class of the tests is derived from the solution's {name[:60]!r}"
            for one, other, identity in _compared(node):
                if isinstance(one, ast.Name) and isinstance(other, ast.Call) and _root(other.func) == "type":
                    if self._is_class(one.id):
                        yield f"the test code asks for the type of an object, and {one.id[:60]!r} is a class of the solution's own"
                elif not identity and self.of_solution(other):
                    for part in self._parts(one):
                        yield from self._uncarried(part)

    def _parts(self, node: ast.expr) -> Iterator[ast.expr]:
        """An expression, or what a name was set to, and what lists and the like in it hold."""
        for value in [node, *(self._values.get(node.id, ()) if isinstance(node, ast.Name) else ())]:
            yield value
            if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
                yield from value.elts
            elif isinstance(value, ast.Dict):
                yield from value.values

    def _is_class(self, name: str) -> bool:
        """Whether it looks like the name of a class that only the solution can have."""
        is_one = name[:1].isupper() and not name.isupper() and not name.endswith(("Error", "Exception"))
        return is_one and name != "Solution" and self._is_solutions(name)

    def _uncarried(self, node: ast.expr) -> Iterator[str]:
        """Why this cannot be compared with something of the solution's."""
        made = node.func if isinstance(node, ast.Call) else node
        root = _root(made)
        module, name = self._imported.get(root, ("", ""))
        last = name or (made.attr if isinstance(made, ast.Attribute) else "")
        top = module.partition(".")[0]
        if isinstance(node, ast.Call) and last in UNCARRIED.get(top, ()):
            yield f"the test code compares with a value of {top}.{last[:60]}, which cannot come out of the sandbox"
        made_here = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        member = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if (made_here or member) and self._is_class(root):
            yield f"the test code compares with an object of the solution's own class {root[:60]!r}, whose equality is the solution's to define"


def _root(node: ast.AST) -> str:
    """The name that an expression starts from, through attributes, items, and calls that only look; `""` if it starts from none."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and _root(node.func) in _SEEN_THROUGH and len(node.args) == 1:
            node = node.args[0]
        else:
            return ""
    return node.id


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, or of a module, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _FUNCTIONS):
            yield node
            yield from _inside(node)


def _without_places(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for part in [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node):
        yield from _without_places(part)


def _compared(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What is compared with what, either way round, and whether by `is`."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, one, other in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
                by_identity = isinstance(operator, (ast.Is, ast.IsNot))
                yield one, other, by_identity
                yield other, one, by_identity
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in (*_COMPARING, *_IDENTITY):
            one, other = node.args[:2]
            yield one, other, name in _IDENTITY
            yield other, one, name in _IDENTITY


def _assigned(node: ast.AST) -> Iterator[tuple[list[str], ast.AST]]:
    """Names that a statement sets, and what to."""
    if isinstance(node, ast.Assign):
        yield [name for target in node.targets for name in _names(target)], node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
        yield _names(node.target), node.value
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield _names(node.target), node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield _names(node.optional_vars), node.context_expr


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)]


def _lines(call: ast.Call) -> Iterator[int]:
    """The lines that a running call may be said to be on."""
    yield call.lineno
    yield call.func.end_lineno or call.lineno
