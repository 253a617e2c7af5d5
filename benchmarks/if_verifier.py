"""How fast the instruction checks are, and how often they are right, beside the package if-verifiable.

Every family judges the same answers, those of the generator's level `full`, strictly; figures are checks per CPU second
on one thread, arguments read and text prepared anew for each check, as in training. Then the firm hard cases of the
plugin's tests are judged by both. if-verifiable (a port of the public checkers) is used if it is installed, and left out
if not; a family that needs nltk data that are not there has no figure. The last line is a JSON object.

    OMP_NUM_THREADS=1 python benchmarks/if_verifier.py
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.draws import DRAWS
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.prompts import Base
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.verdict import calls

from cascade_core import Response, Task
from cascade_core.errors import CascadeError

CASES = Path(__file__).parents[1] / "plugins" / "cascade-plugin-if" / "tests" / "data" / "if_cases.jsonl"
ANSWERS = 150
Check = Callable[[str, Mapping[str, Any], str], bool]


def ours(name: str, kwargs: Mapping[str, Any], text: str) -> bool:
    (call,) = calls({"instruction_id_list": [name], "kwargs": [kwargs]})
    return call.holds(Reading(text))


def theirs() -> Check | None:
    """The check of if-verifiable, `None` if it is not installed."""
    try:
        from if_verifiable.ifeval import INSTRUCTION_DICT
    except ImportError:
        return None

    def check(name: str, kwargs: Mapping[str, Any], text: str) -> bool:
        checker = INSTRUCTION_DICT[name](name)
        checker.build_description(**kwargs)
        return bool(text.strip() and checker.check_following(text))

    return check


def answers() -> list[str]:
    """References of generated tasks, which hold every kind of structure, at most 250 words each."""
    domain = IFDomain(generator={"level": "full"})
    texts = (domain.reference(task) or "" for task in domain.tasks("train", 0))
    return list(islice(texts, ANSWERS))


def per_second(check: Check, name: str, texts: list[str]) -> float | None:
    """Checks per CPU second; `None` where the check cannot be made here."""
    kwargs = [DRAWS[name](Random(seed), Base("Write about rain.", "rain"), True) for seed in range(len(texts))]
    try:
        check(name, kwargs[0], texts[0])
        start = time.process_time()
        for args, text in zip(kwargs, texts, strict=True):
            check(name, args, text)
    except Exception as cause:  # noqa: BLE001 - another package's failure is a finding, not ours to sort
        print(f"  {name}: {type(cause).__name__}")
        return None
    return len(texts) / max(time.process_time() - start, 1e-6)


def wrong(judge: Callable[[Mapping[str, Any]], str]) -> int:
    """How many firm cases are judged wrong."""
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return sum(judge(row["input"]) != row["expected"] for row in rows if not row.get("debatable"))


def firm() -> int:
    return sum(not json.loads(line).get("debatable") for line in CASES.read_text(encoding="utf-8").splitlines())


def public_form(case: Mapping[str, Any]) -> dict[str, Any]:
    if "instructions" not in case:
        return {name: case[name] for name in ("instruction_id_list", "kwargs")}
    return {
        "instruction_id_list": [one["id"] for one in case["instructions"]],
        "kwargs": [one["kwargs"] for one in case["instructions"]],
    }


def judged_by_us(case: Mapping[str, Any]) -> str:
    try:
        score = IFDomain().score(Task("t", "", public_form(case)), Response(case["response"]))
    except CascadeError:
        return "error-clearly"
    return "accept" if score.value == 1.0 else "reject"


def judged_by_them(check: Check) -> Callable[[Mapping[str, Any]], str]:
    def judge(case: Mapping[str, Any]) -> str:
        form = public_form(case)
        text = Response(case["response"]).answer or "" if case["response"] is not None else ""
        try:
            held = [
                check(name, args, text) for name, args in zip(form["instruction_id_list"], form["kwargs"], strict=False)
            ]
        except Exception:  # noqa: BLE001 - whatever it raises counts as its clear error
            return "error-clearly"
        return "accept" if all(held) else "reject"

    return judge


def main() -> None:
    texts, other = answers(), theirs()
    speeds: dict[str, dict[str, float | None]] = {}
    print(f"{'family':48} {'ours':>10} {'theirs':>10}   checks per CPU second, {len(texts)} answers")
    for name in REGISTRY:
        speeds[name] = {
            "ours": per_second(ours, name, texts),
            "theirs": per_second(other, name, texts) if other else None,
        }
        print(
            f"{name:48} " + " ".join(f"{'-' if value is None else round(value):>10}" for value in speeds[name].values())
        )
    both = [pair for pair in speeds.values() if pair["ours"] and pair["theirs"]]
    result = {
        "checks_per_cpu_second": {name: round(pair["ours"] or 0) for name, pair in speeds.items()},
        "median_checks_per_cpu_second": round(statistics.median(pair["ours"] or 0 for pair in speeds.values())),
        "median_speed_ratio_to_if_verifiable": round(
            statistics.median((pair["ours"] or 0) / (pair["theirs"] or 1) for pair in both), 2
        )
        if both
        else None,
        "cpu_time_ratio_to_if_verifiable": round(
            sum(1 / (pair["ours"] or 1) for pair in both) / sum(1 / (pair["theirs"] or 1) for pair in both), 2
        )
        if both
        else None,
        "firm_cases": firm(),
        "wrong_ours": wrong(judged_by_us),
        "wrong_if_verifiable": wrong(judged_by_them(other)) if other else None,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
