"""The verifier of cascade-plugin-math and math-verify on math-verify's own test pairs, and why they differ.

The pairs of gold, prediction and expected verdict stand in the parametrised tests of math-verify's source archive, which is
fetched and read as a syntax tree; nothing of it is run. math-verify judges each pair with the settings of its test (what to extract, rounding,
strictness). Ours judges the prediction as a response with `answer: stated`, the gold as its label; where a test sets
a rounding, with `decimals` of that many places.

`REASONS` says for every pair on which our verdict is not the expected one which rule makes it so. A difference without a
reason, or a reason without a difference, ends the program with status 1. Pairs are named by file and line.

    python benchmarks/math_agreement.py [--archive math_verify-0.9.0.tar.gz] [--table]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ast
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import fetched
from cascade_plugin_math.domain import MathDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError

PACKAGE = "math-verify==0.9.0"
REASONS: dict[str, tuple[str, ...]] = {
    "an equation that contradicts itself (`x = 3 + 3 = 2`, `1/3 ≈ 11`) is no answer, whichever member is right": (
        "test_all.py:394", "test_all.py:405", "test_all.py:411", "test_all.py:429", "test_all.py:458", "test_all.py:467",
        "test_all.py:468",
    ),
    "a value that nothing announces or concludes with is not stated": (
        "test_all.py:72", "test_all.py:500", "test_all.py:506", "test_all.py:518", "test_all.py:633", "test_all.py:639",
        "test_all.py:734",
    ),
    "a sentence that denies something states no answer": ("test_all.py:82", "test_all.py:83", "test_all.py:86"),
    "a comma is a decimal point only where `locale` says so": ("test_all.py:70", "test_all.py:71", "test_all.py:87"),
    "boxes with more than separators between them are no list: the last one counts, also in a label": (
        "test_boxed.py:8", "test_open_thoughts.py:79", "test_open_thoughts.py:149",
    ),
    "a line break within a formula does not matter": ("test_all.py:132", "test_all.py:133"),
    "the box is the answer, not what is said after it": ("test_all.py:816",),
    "28 is 28 % only where the question asks for a percentage": ("test_all.py:176",),
    "`m²` is a factor unless it is upright or the question says metres": ("test_all.py:85",),
    "an inequality is its interval whichever of them is the label": ("test_all.py:913",),
    "braces are a set, and a set is no point": ("test_all.py:760",),
    "another name is another answer; there is no setting to ignore it": ("test_strict.py:8",),
    "a label is an answer: a whole solution without a box is none": ("test_all.py:201",),
    "a label whose box is cut off is an error of the task": ("test_numina_cases.py:121",),
    "the expectation is mistaken: 1 - 1/e is not 1 + 1/e": ("test_yujianll.py:28",),
}  # fmt: skip
_CALLS = ("compare_strings", "verify")


@dataclass(frozen=True)
class Pair:
    """One pair: where it stands, its texts, what its test expects, and the settings that the test gives math-verify.

    `settings` is empty where the test calls math-verify as it is.
    """

    at: str
    gold: str
    prediction: str
    expected: bool
    settings: Mapping[str, Any]


def pairs_of(files: Mapping[str, bytes]) -> tuple[list[Pair], list[str]]:
    """The pairs of test files, and where rows stand that only running the file could tell."""
    pairs: list[Pair] = []
    unread: list[str] = []
    for path in sorted(files):
        for test in ast.walk(ast.parse(files[path])):
            if isinstance(test, ast.FunctionDef):
                for names, row in _rows(test):
                    at = f"{PurePosixPath(path).name}:{row.lineno}"
                    try:
                        values = dict(zip(names, ast.literal_eval(row), strict=True))
                    except ValueError:
                        unread.append(at)
                        continue
                    expected = values.get("expected", values.get("result"))
                    pairs.append(Pair(at, values["gold"], values["pred"], bool(expected), _settings(test, values)))
    return pairs, unread


def _rows(test: ast.FunctionDef) -> Iterator[tuple[list[str], ast.expr]]:
    """The rows of a test that is given gold and prediction, and their names."""
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize":
            names = [name.strip() for name in ast.literal_eval(mark.args[0]).split(",")]
            if {"gold", "pred"} <= set(names) and isinstance(mark.args[1], ast.List):
                yield from ((names, row) for row in mark.args[1].elts)


def _settings(test: ast.FunctionDef, values: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of the call that judges; names among them are columns of the row."""
    for call in ast.walk(test):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in _CALLS:
            return {
                str(word.arg): values[word.value.id]
                if isinstance(word.value, ast.Name)
                else ast.literal_eval(word.value)
                for word in call.keywords
            }
    raise ValueError(f"test {test.name}: no call of {' or '.join(_CALLS)}")


def ours(pair: Pair) -> bool | None:
    """Our verdict; `None` where the gold is an error of the task."""
    places = {"decimals": pair.settings["precision"]} if "precision" in pair.settings else {}
    task = Task(pair.at, "", {"label": pair.gold, **places})
    try:
        return MathDomain(answer="stated").score(task, Response(pair.prediction)).value == 1.0
    except TaskError:
        return None


def theirs(pair: Pair) -> bool:
    """math-verify's verdict under the settings of the test."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    if not pair.settings:
        return bool(verify(parse(pair.gold), parse(pair.prediction)))
    makers = {"latex": LatexExtractionConfig(boxed_match_priority=0), "expr": ExprExtractionConfig()}
    targets = [makers[name] for name in pair.settings["match_types"]]
    return bool(
        verify(
            parse(pair.gold, targets),
            parse(pair.prediction, targets),
            float_rounding=pair.settings.get("precision", 6),
            strict=pair.settings.get("strict", True),
            allow_set_relation_comp=pair.settings.get("allow_set_relation_comp", False),
        )
    )


def unexplained(pairs: list[Pair]) -> tuple[list[str], list[str]]:
    """Where our verdict differs from the expected one without a reason, and reasons without a difference."""
    differing = {pair.at for pair in pairs if ours(pair) != pair.expected}
    explained = {at for places in REASONS.values() for at in places}
    return sorted(differing - explained), sorted(explained - differing)


def table() -> list[str]:
    """The reasons as lines of a Markdown table."""
    rows = (f"| {len(places)} | {reason} | {', '.join(places)} |" for reason, places in REASONS.items())
    return ["| pairs | the rule that differs | where |", "|---|---|---|", *rows]


def fetch() -> Mapping[str, bytes]:
    """math-verify's test files."""
    with tempfile.TemporaryDirectory() as folder:
        return fetched.members(fetched.archive(PACKAGE, Path(folder), "--no-binary", ":all:"), "tests/test_*.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archive", type=Path, help="the source archive, where it is already there")
    parser.add_argument("--table", action="store_true", help="print the reasons as a Markdown table")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    files = fetched.members(options.archive, "tests/test_*.py") if options.archive else fetch()
    pairs, unread = pairs_of(files)
    result: dict[str, Any] = {"pairs": len(pairs), "unread": len(unread)}
    for name, judge in (("cascade", ours), ("math_verify", theirs)):
        begun = time.process_time()
        result[name] = sum(judge(pair) == pair.expected for pair in pairs)
        result[f"{name}_cpu_seconds"] = round(time.process_time() - begun, 2)
        print(f"{name}: {result[name]} of {len(pairs)} pairs as expected, {result[f'{name}_cpu_seconds']} CPU-s")
    if options.table:
        print("\n".join(table()))
    missing, idle = unexplained(pairs)
    for at in missing:
        print(f"no reason for {at}")
    for at in idle:
        print(f"a reason for {at}, which does not differ")
    print(json.dumps({**result, "explained": len(pairs) - result["cascade"] - len(missing)}))
    return 1 if missing or idle else 0


if __name__ == "__main__":
    sys.exit(main())
