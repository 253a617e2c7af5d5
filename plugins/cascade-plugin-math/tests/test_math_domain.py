"""The domain: options, prompts, verdicts as `Score`, references, demonstrations, benchmarks."""

import gc
import subprocess
import sys
from itertools import islice

import pytest
from cascade_plugin_math.domain import INSTRUCTION, MathDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError, UsageError
from cascade_core.options import check_options, typed
from cascade_core.testing import check_domain

SMALL = {"name": "arithmetic", "max_a": 99, "max_b": 19}
TASK = Task("t", "3+4=", "7")


def test_the_plugin_is_found_and_loads_no_heavy_library():
    script = (
        "import sys; from cascade_core.plugins import Registry; found, plugin = Registry().find('domain', 'math'); "
        "found(); heavy = {'sympy', 'mpmath', 'math_verify', 'pyarrow', 'datasets', 'reasoning_gym', 'torch'} & set(sys.modules); "
        "sys.exit(f'{plugin.distribution} loads {heavy}' if heavy or plugin.distribution != 'cascade-plugin-math' else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("text", "value", "boxed"),
    [("\\boxed{7}", 1.0, 1.0), ("7", 0.0, 0.0), ("\\boxed{8}", 0.0, 1.0), ("\\boxed{7", 0.0, 0.0), ("", 0.0, 0.0)],
)
def test_a_score_says_whether_the_answer_is_right_and_boxed(text, value, boxed):
    score = MathDomain().score(TASK, Response(text))
    assert (score.value, score.metrics["boxed"]) == (value, boxed)
    assert score.note and not score.error


@pytest.mark.parametrize(
    ("response", "value"),
    [
        (Response("<think>\\boxed{7}"), 0.0),
        (Response("<think>\\boxed{7}</think>"), 0.0),
        (Response("so \\boxed{7}", mode="think"), 0.0),
        (Response("so</think>\\boxed{7}", prefill="<think>", mode="think"), 1.0),
        (Response("<think>\\boxed{1}</think>\\boxed{7}"), 1.0),
    ],
)
def test_only_what_follows_the_thought_is_judged(response, value):
    assert MathDomain().score(TASK, response).value == value


@pytest.mark.parametrize(
    "answer", [None, "", "\\frac{1}{", {}, {"label": None}, {"label": "5", "rel_tolerance": 1}, ["5"]]
)
def test_a_broken_task_is_an_error_and_never_a_wrong_answer(answer):
    with pytest.raises(TaskError):
        MathDomain().score(Task("t", "p", answer), Response("\\boxed{5}"))


def test_an_unknown_policy_key_names_the_nearest_one():
    with pytest.raises(TaskError, match="rel_tol"):
        MathDomain().score(Task("t", "p", {"label": "5", "reltol": 1}), Response("\\boxed{5}"))


def test_a_policy_comes_from_the_task_before_the_domain():
    task = Task("t", "p", {"label": "100", "rel_tol": 0.0})
    loose = MathDomain(policy={"rel_tol": 0.1})
    assert loose.score(task, Response("\\boxed{99}")).value == 0.0
    assert loose.score(Task("t", "p", "100"), Response("\\boxed{99}")).value == 1.0
    assert (
        MathDomain().score(Task("t", "p", "100", meta={"policy": {"abs_tol": 2}}), Response("\\boxed{99}")).value == 1.0
    )


@pytest.mark.parametrize(
    "options",
    [
        {"answer": "last-number"},
        {"template": "Solve it."},
        {"eval_samples": 0},
        {"eval_limit": 0},
        {"policy": {"rel_tol": -1}},
        {"data": "a.jsonl", "generator": SMALL},
        {"generator": {"name": "chain_sums"}},
        {"generator": {"name": "arithmetic", "max_c": 3}},
        {"generator": {"name": "arithmetic", "max_a": "9"}},
        {"generator": {"name": "arithmetic", "operations": "^"}},
        {"generator": {"name": "arithmetic", "max_a": -1}},
        {"generator": {"name": "arithmetic", "max_a": 1, "max_b": 1}},
        {"generator": {"name": "arithmetic", "unboxed": 1.5}},
        {"generator": {"name": "arithmetic", "prompt": "{a} plus {b}"}},
        {"generator": {"name": "arithmetic", "max_a": 10**6, "max_b": 10**6}},
    ],
)
def test_an_impossible_option_is_refused(options):
    with pytest.raises(UsageError):
        MathDomain(**options)


def test_the_options_pass_the_checks_of_the_core():
    options = {"generator": SMALL, "eval_limit": 400, "eval_samples": 4, "answer": "boxed", "policy": {"rel_tol": 0.1}}
    check_options(MathDomain, options)
    assert MathDomain(**typed(MathDomain, options)).eval_samples == 4


def test_the_questions_own_expression_is_no_answer():
    domain = MathDomain(generator=SMALL)
    task = next(iter(domain.tasks("test", 0)))
    assert domain.score(task, Response(f"\\boxed{{{task.prompt.rstrip('=')}}}")).value == 0.0


@pytest.mark.parametrize("hack", ["{v}+0", "{v}\\cdot 1", "{v}/1", "--{v}", "{v}^1", "\\sqrt{{{v}^2}}"])
def test_arithmetic_wants_the_number_itself(hack):
    domain = MathDomain(generator=SMALL)
    task = next(task for task in domain.tasks("test", 0) if int(task.answer["label"]) > 1)
    assert domain.score(task, Response(f"\\boxed{{{hack.format(v=task.answer['label'])}}}")).value == 0.0


def test_a_prompt_asks_for_a_box_unless_the_template_says_otherwise():
    gym = {"name": "chain_sum"}
    task = next(iter(MathDomain(generator=gym).tasks("train", 0)))
    assert task.prompt == INSTRUCTION.replace("{problem}", task.meta["problem"])
    plain = next(iter(MathDomain(generator=gym, template="Q: {problem}\nA:").tasks("train", 0)))
    assert plain.prompt == f"Q: {task.meta['problem']}\nA:"


def test_sampling_of_benchmarks_may_hold_whole_numbers():
    options = typed(MathDomain, {"eval_sampling": {"max_response_tokens": 16, "top_k": 5, "temperature": 0.5}})
    (benchmark,) = MathDomain(**options).benchmarks()
    assert [type(value) for value in benchmark.sampling.values()] == [int, int, float]


def test_a_benchmark_carries_its_limits():
    (benchmark,) = MathDomain(eval_limit=10, eval_samples=4, eval_sampling={"temperature": 0.6}).benchmarks()
    assert (benchmark.name, benchmark.limit, benchmark.samples, benchmark.sampling) == (
        "test",
        10,
        4,
        {"temperature": 0.6},
    )


def test_a_second_opinion_is_counted_and_changes_nothing():
    domain = MathDomain(second_opinion=True)
    task = Task("t", "Evaluate.", "345")
    assert domain.score(task, Response("\\boxed{345}")).metrics["math_verify_differs"] == 0.0
    hedged = domain.score(Task("t", "Evaluate.", "5"), Response("\\boxed{4=5}"))
    assert (hedged.value, hedged.metrics["math_verify_differs"]) == (0.0, 1.0)


def test_demonstrations_are_references_unless_told_otherwise():
    domain = MathDomain(generator=SMALL)
    for demonstration in islice(domain.demonstrations("train", 3), 50):
        assert demonstration.response == domain.reference(demonstration.task)


@pytest.mark.parametrize(("setting", "share"), [("unboxed", 0.5), ("wrong", 0.2)])
def test_a_share_of_the_demonstrations_is_spoilt_on_purpose(setting, share):
    domain = MathDomain(generator={**SMALL, setting: share}, answer="stated")
    shown = list(islice(domain.demonstrations("train", 1), 1500))
    spoilt = [d for d in shown if d.response != domain.reference(d.task)]
    assert abs(len(spoilt) / len(shown) - share) < 0.05
    assert shown == list(islice(domain.demonstrations("train", 1), 1500))
    for demonstration in spoilt[:50]:
        number = demonstration.response.removeprefix("\\boxed{").rstrip("}")
        assert (number == demonstration.task.answer["label"]) == (setting == "unboxed")


def test_an_unknown_split_is_refused():
    with pytest.raises(UsageError, match="split"):
        list(MathDomain(generator=SMALL).tasks("validation", 0))


@pytest.mark.parametrize(
    "options",
    [{"generator": {**SMALL, "unboxed": 0.5}}, {"generator": {"name": "gcd", "test_tasks": 60}, "answer": "stated"}],
)
def test_the_domain_keeps_the_contract_of_the_core(options):
    check_domain(MathDomain(**options), tasks=12)


def test_memory_does_not_grow_with_the_number_of_labels_or_their_length():
    domain = MathDomain()

    def judge(first: int, count: int, width: int) -> int:
        for number in range(first, first + count):
            label = "+".join(f"{number}x^{power}" for power in range(width))
            assert domain.score(Task("t", "?", label), Response(f"\\boxed{{{label}}}")).value == 1.0
        gc.collect()
        return len(gc.get_objects())

    full = judge(1000, 300, 4)
    assert judge(2000, 300, 4) < full + 500
    assert judge(3000, 3, 500) < full + 500
