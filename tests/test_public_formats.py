"""The public data sets' own field names are read without any option: small files in the same format stand for them."""

import json
from pathlib import Path

import pytest

from cascade_core import Response
from cascade_core.evaluate import exams
from cascade_core.plugins import registry
from cascade_core.settings import Evaluation
from cascade_core.spec import check, load

ROOT = Path(__file__).parents[1]
MATH = {
    "gsm8k": {
        "question": "Ann has 3 bags of 4 pears. She eats 2. How many are left?",
        "answer": "She has 3 * 4 = <<3*4=12>>12 pears.\nThen 12 - 2 = <<12-2=10>>10.\n#### 10",
    },
    "math-500": {
        "problem": "What is $\\frac{1}{2} + \\frac{1}{3}$?",
        "solution": "Over six: $\\boxed{\\frac{5}{6}}$.",
        "answer": "\\frac{5}{6}",
        "subject": "Prealgebra",
        "level": 1,
        "unique_id": "test/prealgebra/1.json",
    },
    "aime24": {
        "id": 60,
        "problem": "Find the number of two-digit multiples of 9 above 17.",
        "solution": "They are 18 to 99: $\\boxed{10}$.",
        "answer": "010",
        "url": "",
        "year": "2024",
    },
    "aime25": {"problem": "Find $2^6 + 6$.", "answer": 70, "id": "0"},
}
RIGHT = {"gsm8k": "10", "math-500": "\\frac56", "aime24": "10", "aime25": "70"}
IDS = {"math-500": "test/prealgebra/1.json", "aime24": "60", "aime25": "0"}
IFEVAL = {
    "key": 1001,
    "prompt": "Describe a harbour without any commas, in at least 5 words.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{"num_words": None, "relation": None}, {"num_words": 5, "relation": "at least"}],
}


@pytest.fixture(params=["jsonl", "parquet"])
def sources(request, tmp_path):
    """The files by benchmark, in either format that a source may have."""
    found = {}
    for name, row in {**MATH, "ifeval": IFEVAL}.items():
        path = tmp_path / f"{name}.{request.param}"
        if request.param == "jsonl":
            path.write_text(json.dumps(row) + "\n")
        else:
            pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pyarrow.Table.from_pylist([row]), path)
        found[name] = str(path)
    return found


def test_the_public_math_sets_are_benchmarks_whose_right_answers_are_right(sources):
    found = registry()
    math = found.build(found.reference("math", {"eval_data": {name: sources[name] for name in MATH}}))
    for exam in exams({"math": math}, Evaluation()):
        name = exam.name.partition("/")[2]
        (task,) = math.tasks(name, 0)
        problem = MATH[name].get("problem", MATH[name].get("question"))
        assert problem in exam.tasks[0]["prompt"] and task.id == IDS.get(name, task.id)
        assert math.score(task, Response(f"So it is \\boxed{{{RIGHT[name]}}}.")).value == 1.0, name
        assert math.score(task, Response("So it is \\boxed{11}.")).value == 0.0, name


def test_ifeval_is_a_benchmark_judged_by_its_instructions(sources):
    found = registry()
    domain = found.build(found.reference("if", {"eval_data": sources["ifeval"]}))
    (exam,) = exams({"if": domain}, Evaluation())
    (task,) = domain.tasks("test", 0)
    assert (exam.name, task.id, exam.tasks[0]["prompt"]) == ("if/ifeval", "1001", IFEVAL["prompt"])
    assert domain.score(task, Response("Boats rest while gulls circle above")).value == 1.0
    assert domain.score(task, Response("Boats rest, gulls circle above them")).value == 0.0
    assert domain.score(task, Response("Boats rest")).value == 0.0


def test_the_example_offers_the_public_benchmarks():
    path = ROOT / "examples/benchmarks.yaml"
    domains = check(load(path), path)
    offered = {f"{name}/{benchmark.name}" for name, domain in domains.items() for benchmark in domain.benchmarks()}
    assert offered == {*(f"math/{name}" for name in MATH), "if/ifeval"}
