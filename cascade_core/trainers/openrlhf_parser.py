"""The flags of OpenRLHF's own programs: names, types, choices, numbers of values, defaults.

They are read from the source of the installed OpenRLHF by `ast`; nothing of it is imported or run. Where OpenRLHF is not
installed (a laptop that plans a run for a cluster) they come from `openrlhf_flags.json`, which `tools/openrlhf_flags.py`
writes from the published wheels. What a flag may be set to in a stage is `openrlhf_rules.py`'s.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from cascade_core.errors import SpecError

VERSIONS = ("0.11.2", "0.11.1")
"""The versions that are known and were run, the newest first."""
PROGRAMS = {"rl": "train_ppo_ray", "sft": "train_sft", "reward_model": "train_rm"}
"""The program of each kind of stage."""

RECORDED = Path(__file__).with_name("openrlhf_flags.json")


@dataclass(frozen=True)
class Flag:
    """One flag. `nargs` as in argparse, `None` for one value; a `bool` is a flag that stands alone and stores `stores`."""

    type: Literal["int", "float", "str", "bool"]
    nargs: int | Literal["+", "*"] | None = None
    choices: tuple[str, ...] = ()
    stores: bool | None = None
    default: Any = None

    def json(self) -> dict[str, Any]:
        """The flag as JSON values, without what is empty."""
        found = {"type": self.type, "nargs": self.nargs, "choices": list(self.choices)}
        found |= {"stores": self.stores, "default": self.default}
        return {key: value for key, value in found.items() if value not in (None, [])}


@dataclass(frozen=True)
class Known:
    """The flags of one program of one version; `is_installed` says where they were read."""

    program: str
    version: str
    is_installed: bool
    flags: Mapping[str, Flag]


def flags(kind: str) -> Known:
    """The flags of the program for a kind of stage (`PROGRAMS`): of the OpenRLHF installed here, else the newest that is recorded.

    Raises:
        SpecError: the installed OpenRLHF is of a version that is not known, or its source cannot be read.
    """
    folder = package()
    if folder is None:
        return recorded(kind, VERSIONS[0])
    found = installed_version()
    if found not in VERSIONS:
        raise SpecError(
            f"trainer 'openrlhf' knows OpenRLHF {' and '.join(VERSIONS)}, and {found or 'one without a version'} is"
            f" installed; try: pip install openrlhf=={VERSIONS[0]}"
        )
    return read(folder, kind, found)


def read(folder: Path, kind: str, of: str) -> Known:
    """The flags of the program for a kind of stage, in the folder of an installed OpenRLHF of a version of `VERSIONS`.

    Raises:
        SpecError: its source cannot be read.
    """
    return Known(PROGRAMS[kind], of, True, _read(folder / "cli" / f"{PROGRAMS[kind]}.py"))


def package() -> Path | None:
    """The folder of the installed OpenRLHF, `None` where there is none."""
    spec = find_spec("openrlhf")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places and (Path(places[0]) / "cli").is_dir() else None


def installed_version() -> str:
    """The version of the installed OpenRLHF, `""` where there is none or it has none."""
    try:
        return version("openrlhf")
    except PackageNotFoundError:
        return ""


def recorded(kind: str, of: str) -> Known:
    """The flags of a version of `VERSIONS`, as they were recorded from its wheel."""
    table = _recorded()[of][PROGRAMS[kind]]
    made = {name: Flag(**{**entry, "choices": tuple(entry.get("choices", ()))}) for name, entry in table.items()}
    return Known(PROGRAMS[kind], of, False, made)


@functools.cache
def _recorded() -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(RECORDED.read_text("utf-8"))
    return found


@functools.cache
def _read(path: Path) -> Mapping[str, Flag]:
    try:
        found = parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError) as cause:
        raise SpecError(f"{path}: the flags of the installed OpenRLHF cannot be read: {cause}") from cause
    if not found:
        raise SpecError(f"{path}: no flag was found in it; install OpenRLHF anew")
    return found


def parse(source: str) -> dict[str, Flag]:
    """Every flag that a program adds to its parser, by its name without `--`.

    Loops over constants (`for prefix in ("actor", "critic")`) are followed; a default that is computed becomes `None`.
    """
    return dict(_flags(ast.parse(source).body, {}))


def _flags(body: list[ast.stmt], names: Mapping[str, Any]) -> Iterator[tuple[str, Flag]]:
    for node in body:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            for item in _value(node.iter, names) or ():
                yield from _flags(node.body, {**names, node.target.id: item})
        elif isinstance(node, ast.If):
            yield from _flags(node.body, names)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args:
                name = _value(call.args[0], names)
                if isinstance(name, str) and name.startswith("--"):
                    yield name[2:], _flag({word.arg or "": word.value for word in call.keywords}, names)


def _flag(words: Mapping[str, ast.expr], names: Mapping[str, Any]) -> Flag:
    given = {key: _value(node, names) for key, node in words.items() if key != "type"}
    default = given.get("default")
    default = list(default) if isinstance(default, tuple) else default
    action = given.get("action")
    if action in ("store_true", "store_false"):
        stores = action == "store_true"
        return Flag("bool", stores=stores, default=not stores if default is None else bool(default))
    named = words.get("type")
    kind = named.id if isinstance(named, ast.Name) else "str"
    kinds: dict[str, Literal["int", "float", "str"]] = {"int": "int", "float": "float"}
    if default in (float("inf"), float("-inf")):
        default = None  # JSON has no word for it
    return Flag(kinds.get(kind, "str"), given.get("nargs"), tuple(given.get("choices") or ()), default=default)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of a constant expression, with the names of the loops around it; `None` for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Tuple | ast.List):
        return [_value(item, names) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside = _value(node.operand, names)
        return -inside if isinstance(inside, int | float) else None
    if isinstance(node, ast.JoinedStr):
        parts = [_value(part.value if isinstance(part, ast.FormattedValue) else part, names) for part in node.values]
        return "".join(map(str, parts)) if None not in parts else None
    if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Eq):
        same = _value(node.test.left, names) == _value(node.test.comparators[0], names)
        return _value(node.body if same else node.orelse, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        inside = _value(node.args[0], names)
        known = {"int": int, "float": float}.get(node.func.id)
        return known(inside) if known and isinstance(inside, int | float | str) else None
    return None
