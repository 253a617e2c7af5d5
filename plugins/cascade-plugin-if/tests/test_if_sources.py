"""Where tasks come from beside IFEval: IF-RLVR to train on, IFBench to evaluate with, and what keeps the two apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.registry import EVALUATION

from cascade_core import Response
from cascade_core.errors import UsageError

IDS = ["keywords:word_once", "punctuation:punctuation_dot"]
KWARGS = [{"keyword": "rain", "N": None}, None]


def row(number: int, truth: Any) -> dict[str, Any]:
    return {
        "key": f"row-{number}",
        "messages": [{"role": "user", "content": f"Write about topic {number}."}],
        "ground_truth": truth,
        "dataset": "ifeval",
    }


def evaluated(number: int, prompt: str = "") -> dict[str, Any]:
    return {
        "key": str(number),
        "prompt": prompt or f"Count to {number}.",
        "instruction_id_list": ["count:numbers"],
        "kwargs": [{"N": 2.0, "small_n": None}],
    }


GOOD = row(2, [{"instruction_id": IDS, "kwargs": KWARGS}])


def usable(path: str) -> set[str]:
    """The ids of a file's tasks where bad rows are left out."""
    domain = IFDomain(data=path, on_bad_row="skip")
    return {task.id for split in ("train", "test") for task in domain.tasks(split, 0)}


def write(path: Path, content: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "truth",
    [
        str([{"instruction_id": IDS, "kwargs": KWARGS}]),
        json.dumps([{"instruction_id": IDS, "kwargs": KWARGS}]),
        json.dumps({"instruction_id": IDS, "kwargs": KWARGS}),
        [{"instruction_id": IDS, "kwargs": KWARGS}],
        [json.dumps({"instruction_id": IDS, "kwargs": KWARGS})],
    ],
)
def test_a_ground_truth_is_read_in_every_form_it_is_published_in(tmp_path: Path, truth: Any) -> None:
    domain = IFDomain(data=write(tmp_path / "rlvr.jsonl", [row(number, truth) for number in range(40)]))
    tasks = [*domain.tasks("train", 0), *domain.tasks("test", 0)]
    assert len(tasks) == 40
    assert tasks[0].answer == {"instruction_id_list": IDS, "kwargs": KWARGS}
    assert domain.score(tasks[0], Response("Rain falls")).value == 1.0
    assert domain.score(tasks[0], Response("Rain falls.")).metrics["instruction_strict"] == 0.5


@pytest.mark.parametrize(
    "truth",
    ["", "nothing", "[", "[]", "[{}]", "[1, 2]", "{'func_name': 'validate_lowercase'}", "__import__('os')", "(" * 5_000, "[" * 200_000, 7,
     "[{'instruction_id': None, 'kwargs': []}]"],
)  # fmt: skip
def test_a_ground_truth_that_says_nothing_stops_loading_with_file_and_line(tmp_path: Path, truth: Any) -> None:
    path = write(tmp_path / "rlvr.jsonl", [row(1, truth), GOOD])
    with pytest.raises(UsageError, match=r"rlvr.jsonl:1: .*ground_truth"):
        list(IFDomain(data=path).tasks("train", 0))
    assert usable(path) == {"row-2"}


def test_no_row_to_train_on_may_ask_what_ifbench_evaluates(tmp_path: Path) -> None:
    for name in EVALUATION:
        truth = str([{"instruction_id": ["punctuation:no_comma", name], "kwargs": [None, {}]}])
        public = {"prompt": "x", "instruction_id_list": json.dumps([name]), "kwargs": [{}]}
        for bad in (row(1, truth), public):
            path = write(tmp_path / "train.jsonl", [bad, GOOD])
            for split in ("train", "test"):
                with pytest.raises(UsageError, match=f"train.jsonl:1: .*{name}.*evaluation only"):
                    list(IFDomain(data=path).tasks(split, 0))
            assert usable(path) == {"row-2"}


def test_ifbench_is_a_benchmark_of_its_own_beside_the_held_out_tasks(tmp_path: Path) -> None:
    path = write(tmp_path / "ifbench.jsonl", [evaluated(number) for number in range(7)])
    domain = IFDomain(ifbench_data=path, generator={"level": "wide"}, eval_samples=2)
    held_out, benchmark = domain.benchmarks()
    assert (held_out.name, held_out.split) == ("test", "test")
    assert (benchmark.name, benchmark.split, benchmark.samples, benchmark.limit) == ("ifbench", "ifbench", 2, None)
    tasks = list(domain.tasks(benchmark.split, 5))
    assert [task.id for task in tasks] == [str(number) for number in range(7)]
    assert domain.score(tasks[0], Response("1 and 2")).value == 1.0
    assert domain.score(tasks[0], Response("1, 2 and 3")).value == 0.0
    assert next(iter(domain.tasks("train", 0))).source == "generated-wide"
    assert next(iter(domain.tasks("test", 0))).source == "generated-wide"


def test_a_prompt_of_ifbench_is_never_trained_on(tmp_path: Path) -> None:
    truth = [{"instruction_id": IDS, "kwargs": KWARGS}]
    data = write(
        tmp_path / "rlvr.jsonl", [{**row(number, truth), "prompt": f"Count to {number}."} for number in range(30)]
    )
    path = write(tmp_path / "ifbench.jsonl", [evaluated(number) for number in range(12)])
    domain = IFDomain(data=data, ifbench_data=path)
    kept = {str(task.prompt) for split in ("train", "test") for task in domain.tasks(split, 0)}
    assert kept == {f"Count to {number}." for number in range(12, 30)}


def test_without_its_file_there_is_no_ifbench(tmp_path: Path) -> None:
    assert [one.name for one in IFDomain().benchmarks()] == ["test"]
    with pytest.raises(UsageError, match="'train' or 'test', found 'ifbench'"):
        IFDomain().tasks("ifbench", 0)
