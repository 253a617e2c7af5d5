"""The domain: options, problems of files, tasks, references, what is measured, and failures that are no verdicts."""

import json
import subprocess
import sys

import pytest
from cascade_plugin_code.domain import INSTRUCTION, CodeDomain
from cascade_plugin_code.measure import Measured
from cascade_sandbox import SandboxError

from cascade_core import Response, Task
from cascade_core.errors import TaskError, UsageError
from cascade_core.options import check_options
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring
from cascade_core.testing import check_domain

ANSWER = {"kind": "stdin", "tests": [{"stdin": "2 3\n", "stdout": "5\n"}]}
ADD = "print(sum(map(int, input().split())))"
WANTED = "The program reads standard input and writes standard output."


def row(number, **more):
    return {
        "id": f"p{number}",
        "prompt": f"Add two numbers, variant {number}.",
        "answer": ANSWER,
        "solution": ADD,
        **more,
    }


def written(folder, rows, name="problems.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(path)


def test_the_plugin_is_found_and_loads_no_heavy_library():
    script = (
        "import sys; from cascade_core.plugins import Registry; found, plugin = Registry().find('domain', 'code'); "
        "found(data='x'); heavy = {'docker', 'requests', 'pyarrow', 'datasets', 'torch'} & set(sys.modules); "
        "sys.exit(f'{plugin.distribution} loads {heavy}' if heavy or plugin.distribution != 'cascade-plugin-code' else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "options",
    [
        {"program": "any"},
        {"scoring": "half"},
        {"language": "cobol85"},
        {"format": "acm"},
        {"template": "Solve it."},
        {"limits": {"seconds": 0}},
        {"limits": {"minutes": 1}},
        {"eval_samples": 0},
        {"eval_limit": 0},
    ],
)
def test_an_impossible_option_is_refused(options):
    with pytest.raises(UsageError):
        CodeDomain(**options)


def test_a_misspelt_option_is_refused_by_name():
    with pytest.raises(UsageError, match="scoring"):
        check_options(CodeDomain, {"scorings": "fraction"}, "code")


def test_problems_become_tasks_with_a_prompt_and_a_reference(tmp_path):
    source = written(tmp_path, [row(n) for n in range(40)])
    domain = CodeDomain(data=source)
    train, test = list(domain.tasks("train", 0)), list(domain.tasks("test", 0))
    assert len(train) + len(test) == 40 and len(test) > 2
    text = f"Add two numbers, variant {train[0].id[1:]}."
    wanted = {"problem": text, "wanted": WANTED, "language": "python", "seconds": "10", "memory_mb": "512"}
    assert train[0].prompt == INSTRUCTION.format(**wanted)
    assert domain.reference(train[0]) == f"```python\n{ADD}\n```"
    assert {task.meta.get("every_test") for task in train} == {None}
    assert {task.meta.get("every_test") for task in test} == {True}


def test_problems_of_a_benchmark_leave_training(tmp_path):
    named = {"small": written(tmp_path, [row(1), row(2)], "small.jsonl")}
    domain = CodeDomain(data=written(tmp_path, [row(n) for n in range(4)]), eval_data=named)
    assert [task.id for task in domain.tasks("train", 0)] == ["p0", "p3"]
    assert [task.id for task in domain.tasks("small", 0)] == ["p1", "p2"]
    assert [benchmark.name for benchmark in domain.benchmarks()] == ["small"]
    with pytest.raises(UsageError, match="split"):
        domain.tasks("other", 0)
    with pytest.raises(UsageError, match="set 'data'"):
        CodeDomain().tasks("train", 0)


@pytest.mark.parametrize(
    "broken",
    [
        {"prompt": ""},
        {"prompt": [{"role": "assistant", "content": "x"}]},
        {"answer": None},
        {"answer": {"kind": "stdin", "tests": []}},
        {"answer": "{not json"},
        {"answer": {**ANSWER, "language": "cobol85"}},
    ],
)
def test_a_broken_row_stops_the_loading_with_its_line_or_is_skipped(tmp_path, broken):
    source = written(tmp_path, [row(0), row(1, **broken)])
    with pytest.raises(UsageError, match=r"problems\.jsonl:2"):
        list(CodeDomain(eval_data=source).tasks("test", 0))
    assert [task.id for task in CodeDomain(eval_data=source, on_bad_row="skip").tasks("test", 0)] == ["p0"]


def test_a_problem_that_comes_again_is_left_out_and_a_chat_is_kept(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Add two numbers."}]
    rows = [row(0), row(0), row(0, prompt=chat, answer=json.dumps(ANSWER))]
    tasks = list(CodeDomain(eval_data=written(tmp_path, rows)).tasks("test", 0))
    assert len(tasks) == 2 and len({task.id for task in tasks}) == 2
    assert tasks[1].prompt[0] == chat[0] and "Add two numbers." in tasks[1].question


def test_the_domain_keeps_its_contract_through_containers(tmp_path, docker):
    source = written(tmp_path, [row(n) for n in range(12)])
    check_domain(CodeDomain(data=source), tasks=6, resources={"sandbox": docker.address})


def test_a_broken_task_is_an_error_before_the_answer_is_looked_at():
    for answer in (None, {}, {**ANSWER, "tests": []}):
        with pytest.raises(TaskError):
            CodeDomain().score(Task("t", "", answer), Response("no program"))


@pytest.mark.parametrize("text", ["", "print(5)", "<think>\n```python\nprint(5)\n```", "```bash\nls\n```"])
def test_an_answer_without_a_program_is_wrong_without_a_sandbox(text):
    score = CodeDomain().score(Task("t", "", ANSWER), Response(text))
    assert (score.value, dict(score.metrics)) == (0.0, {"program": 0.0, "tests_passed": 0.0})
    assert score.note.startswith("no program") and not score.is_limit


@pytest.mark.parametrize("resources", [{}, {"sandbox": "unix:/nowhere/of/ours"}, {"sandbox": "tcp:nowhere"}])
def test_a_sandbox_that_cannot_be_reached_is_no_verdict(resources):
    domain = CodeDomain()
    domain.open(resources)
    with pytest.raises(SandboxError):
        domain.score(Task("t", "", ANSWER), Response(f"```python\n{ADD}\n```"))
    domain.close()


def scored(address, *responses):
    """What a run makes of responses, in processes of the core."""
    rows = [{"domain": "code", "id": "t", "prompt": "p", "answer": ANSWER, "response": one} for one in responses]
    settings, resources = Scoring(workers=1, concurrency=3), {"sandbox": address}
    with Scorer({"code": registry().reference("code")}, settings, resources) as scorer:
        return scorer.score(rows)


def test_several_processes_of_a_run_share_a_sandbox(docker):
    right, wrong = f"```python\n{ADD}\n```", "```python\nprint(4)\n```"
    scores = scored(docker.address, *[right, wrong, "no program", "```python\nwhile 1: print(1)\n```"] * 6)
    assert [score.value for score in scores] == [1.0, 0.0, 0.0, 0.0] * 6
    assert [score.is_limit for score in scores] == [False, False, False, True] * 6
    assert not any(score.error for score in scores)


def test_a_run_without_its_sandbox_counts_errors_and_no_wrong_answers():
    for score in scored("unix:/nowhere/of/ours", f"```python\n{ADD}\n```", "```python\nprint(4)\n```"):
        assert not score.is_judged and "sandbox" in score.error.lower()


def test_an_explanation_shows_program_tests_and_outputs(docker):
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})
    answers = [
        {"kind": "stdin", "tests": [{"stdin": "2 3", "stdout": "6"}, {"stdin": "1 1" + " 0" * 5000, "stdout": "2"}]},
        {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": {"__float__": "nan"}}]},
        {"kind": "assert", "test_code": "assert f(1) == 3"},
    ]
    program = f"def f(x): return 'é' * 9000\nif __name__ == '__main__': {ADD}"
    shown = [domain.explain(Task("t", "", answer), Response(f"```python\n{program}\n```")) for answer in answers]
    domain.close()
    json.dumps(shown, allow_nan=False)
    assert [[test["verdict"] for test in one["tests"]] for one in shown] == [
        ["failed", "passed"],
        ["failed"],
        ["failed"],
    ]
    assert shown[0]["tests"][0]["expected"] == "6" and shown[0]["tests"][0]["found"] == "5\n"
    assert shown[0]["program"] == program and shown[1]["tests"][0]["expected"] == "nan"
    assert all(len(str(value)) < 600 for one in shown for test in one["tests"] for value in test.values())
    missing = domain.explain(Task("t", "", answers[0]), Response("nothing"))
    assert missing["program"] is None and missing["tests"] == []


def test_a_benchmark_reports_the_share_of_tests_beside_the_verdicts():
    rows = [
        {"domain": "code", "id": "a", "score": {"value": 1.0, "metrics": {"tests_passed": 1.0}}},
        {"domain": "code", "id": "a", "score": {"value": 0.0, "metrics": {"tests_passed": 0.5}}},
        {"domain": "code", "id": "b", "score": {"value": 0.0, "metrics": {"tests_passed": 0.25}}},
        {"domain": "code", "id": "b", "score": {"value": 0.0, "metrics": {}, "error": "sandbox down"}},
    ]
    found = Measured("test").summarise(rows)
    assert found["tests_passed"].value == 0.5 and found["tests_passed"].n == 2
    assert found["avg@2"].value == 0.25
    assert "tests_passed" not in Measured("test").summarise([{**rows[0], "score": {"value": 1.0}}])
