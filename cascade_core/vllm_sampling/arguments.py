"""What vLLM's own arguments may be, by the vLLM that is installed: read from its source by `ast`, nothing of it is imported.

Names are those of `EngineArgs`; values are looked at where its annotation says what they are in words that need no vLLM (numbers,
text, true and false). What they mean together only vLLM itself knows, when it starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_core import versions
from cascade_core.nearest import near
from cascade_core.vllm_sampling import OURS

_PLAIN = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "None": ""}
_SHARES = ("gpu_memory_utilization",)


@dataclass(frozen=True)
class Arguments:
    """Those of one vLLM: its version, and each argument's annotation."""

    version: str
    types: Mapping[str, str]


def installed(python: str) -> Arguments | None:
    """The arguments of the vLLM in an interpreter's environment; `None` where there is none, or it cannot be read."""
    try:
        where = versions.folders(python)
    except OSError:
        return None
    for folder in where:
        source = Path(folder) / "vllm" / "engine" / "arg_utils.py"
        if source.is_file():
            try:
                types = parse(source.read_text("utf-8"))
            except (OSError, SyntaxError, ValueError):
                return None
            return Arguments(versions.installed("vllm", where), types) if types else None
    return None


def parse(source: str) -> dict[str, str]:
    """The fields of `EngineArgs` in that source, and their annotations; private ones are left out."""
    return {
        field.target.id: ast.unparse(field.annotation)
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs"
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id[0] != "_"
    }


def problems(given: Mapping[str, Any], known: Arguments) -> Iterator[tuple[str, str]]:
    """Each argument that this vLLM does not have, or not with that value: its name, and what is wrong, with the cure."""
    for name, value in given.items():
        if name not in known.types:
            yield name, f"vLLM {known.version} has no argument {name!r}{_hint(name, known)}"
        elif wrong := _misfit(name, value, known.types[name]):
            yield name, f"must be {wrong}, found {value!r:.80}"


def _hint(name: str, known: Arguments) -> str:
    found = near(name.lstrip("-"), known.types)
    if found in OURS:
        return f"; {found!r} cannot be set: {OURS[found]}"
    return f", did you mean {found!r}" if found else ""


def _misfit(name: str, value: Any, annotation: str) -> str:
    """What a value must be, where it is not; `""` where it is, or where its annotation speaks of vLLM's own types."""
    kinds = [part.strip() for part in annotation.split("|")]
    if name in _SHARES and not (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1):
        return "above 0 and at most 1"
    if not set(kinds) <= set(_PLAIN) or any(_is(value, kind) for kind in kinds):
        return ""
    return " or ".join(_PLAIN[kind] for kind in kinds if kind != "None")


def _is(value: Any, kind: str) -> bool:
    if value is None or isinstance(value, bool):
        return kind == ("None" if value is None else "bool")
    return isinstance(value, {"int": int, "float": int | float, "str": str}.get(kind, ()))
