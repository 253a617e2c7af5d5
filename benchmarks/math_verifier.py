"""The verifier of cascade-plugin-math beside math-verify on the hard cases: who is right how often, and how fast.

Firm rows only (debatable ones are a matter of policy). math-verify gets what it needs to do its best: the policy-free rows, the label as gold
in first place, its own time-outs. A row counts as right if the verdict is the expected one; an exception where the case
asks for a clear error counts as right for both. Then both judge the same boxed integers and polynomials, alone.

    python benchmarks/math_verifier.py [--seconds 2]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cascade_plugin_math.domain import MathDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError

CASES = Path(__file__).parent.parent / "plugins/cascade-plugin-math/tests/data/math_cases.jsonl"
SIMPLE = {
    "integers": [(f"So we get $\\boxed{{{n}}}$.", str(n + n % 2)) for n in range(100, 160)],
    "fractions": [(f"\\boxed{{\\frac{{{n}}}{{7}}}}", f"{n}/7") for n in range(1, 60)],
    "polynomials": [(f"\\boxed{{(x+{n})(x-2)}}", f"x^2+{n - 2}x-{2 * n}") for n in range(3, 33)],
}
Judge = Callable[[str, Any, dict[str, Any], str], str]


def ours(response: str, label: Any, policy: dict[str, Any], problem: str) -> str:
    """Our verdict, through the domain."""
    domain = MathDomain(answer="stated")
    try:
        score = domain.score(Task("case", problem, {"label": label, **policy}), Response(response))
    except TaskError:
        return "error-clearly"
    return "accept" if score.value == 1.0 else "reject"


def theirs(response: str, label: Any, policy: dict[str, Any], problem: str) -> str:
    """math-verify's verdict, on the text after the thought."""
    from math_verify import parse, verify

    answer = Response(response).answer
    try:
        gold = parse(f"${label}$", raise_on_error=True)
        if label is None or not gold:
            return "error-clearly"
        return "accept" if answer is not None and verify(gold, parse(answer)) else "reject"
    except Exception as error:  # noqa: BLE001 - whatever a stranger's verifier raises is its verdict
        logging.debug("math-verify raised %s", error)
        return "error-clearly"


def text_of(given: dict[str, Any], name: str) -> Any:
    """A field of a case, or what its recipe makes."""
    recipe = given.get(f"{name}_gen")
    return recipe["prefix"] + recipe["repeat"] * recipe["n"] + recipe["suffix"] if recipe else given.get(name)


def right_on_cases(judge: Judge) -> dict[str, float]:
    """Rows judged as expected, of the firm ones, and CPU seconds."""
    begun, right, total = time.process_time(), 0, 0
    for line in CASES.read_text().splitlines():
        row = json.loads(line)
        if row.get("debatable"):
            continue
        given = row["input"]
        verdict = judge(
            text_of(given, "response"), text_of(given, "label"), given.get("policy", {}), given.get("problem", "")
        )
        right, total = right + (verdict == row["expected"]), total + 1
    return {"right": right, "firm": total, "cpu_seconds": round(time.process_time() - begun, 2)}


def rate(judge: Judge, pairs: Iterable[tuple[str, str]], seconds: float) -> float:
    """Rows a CPU second, over at least so many seconds."""
    pairs = list(pairs)
    judge(*pairs[0], {}, "")
    begun, done = time.process_time(), 0
    while time.process_time() - begun < seconds:
        for response, label in pairs:
            judge(response, label, {}, "")
        done += len(pairs)
    return done / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds a rate is measured for")
    seconds = parser.parse_args().seconds
    logging.disable(logging.CRITICAL)
    result: dict[str, Any] = {}
    for name, judge in (("cascade", ours), ("math_verify", theirs)):
        result[name] = right_on_cases(judge)
        print(
            f"{name}: {result[name]['right']} of {result[name]['firm']} firm rows, {result[name]['cpu_seconds']} CPU-s"
        )
    for kind, pairs in SIMPLE.items():
        rates = [rate(judge, pairs, seconds) for judge in (ours, theirs)]
        result[f"{kind}_per_cpu_second"] = [round(value, 1) for value in rates]
        result[f"{kind}_ratio"] = round(rates[0] / rates[1], 2)
        print(f"{kind}: {rates[0]:.0f} against {rates[1]:.0f} a CPU second")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
