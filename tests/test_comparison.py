"""Two evaluations compared: pairs on the same tasks, what is left out is said, nothing shared is refused."""

import json

import pytest
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.comparison import compare, evaluation
from cascade_core.errors import RowError, UsageError
from cascade_core.rows import write


def rows(values, *, domain="math", prompt="p", error=()):
    """Judged rows: `values` by task id, a number or one per sample."""
    return [
        {
            "domain": domain,
            "id": task,
            "prompt": f"{prompt} {task}",
            "answer": "1",
            "sample": sample,
            "response": "",
            "score": {"value": 0.0, "error": "lost"} if task in error else {"value": float(value)},
        }
        for task, found in values.items()
        for sample, value in enumerate(found if isinstance(found, list) else [found])
    ]


@pytest.fixture
def put(tmp_path):
    """`put("a", {"math/test": rows(...)})`: an evaluation's folder."""

    def made(name, files):
        for benchmark, content in files.items():
            write(tmp_path / name / "eval" / f"{benchmark}.jsonl", content)
        return tmp_path / name

    return made


BEFORE = {"a": 0, "b": [0, 1], "c": 1, "d": 0}
AFTER = {"a": 1, "b": [1, 1], "c": 1, "d": 0}


def test_the_difference_is_that_of_pairs_with_its_interval(put):
    a, b = put("a", {"math/test": rows(BEFORE)}), put("b", {"math/test": rows(AFTER)})
    (found,) = compare(a, b).differences
    assert (found.benchmark, found.before, found.after, found.change.n) == ("math/test", 0.375, 0.75, 4)
    assert found.change.difference == pytest.approx(0.375)
    assert found.change.stderr == pytest.approx(0.2394, abs=1e-4)  # deviation of 1, .5, 0, 0 over the root of 4
    assert found.change.high - found.change.difference == pytest.approx(3.182 * 0.2394, rel=0.01)
    assert compare(a, b).warnings == ()


def test_the_other_way_round_the_sign_is_the_other(put):
    a, b = put("a", {"math/test": rows(BEFORE)}), put("b", {"math/test": rows(AFTER)})
    assert compare(b, a).differences[0].change.difference == -compare(a, b).differences[0].change.difference


def test_tasks_that_are_not_in_both_are_left_out_and_said(put):
    a, b = put("a", {"math/test": rows({**BEFORE, "x": 1})}), put("b", {"math/test": rows({**AFTER, "y": 1, "z": 1})})
    found = compare(a, b)
    assert (found.differences[0].change.n, found.differences[0].only_before, found.differences[0].only_after) == (
        4,
        1,
        2,
    )
    assert "1 only in" in found.warnings[0] and "2 only in" in found.warnings[0]


@pytest.mark.parametrize("error", [("", "a"), ("a", ""), ("a", "a")])
def test_a_task_that_could_not_be_judged_is_in_no_mean_and_counted_once(put, error):
    a = put("a", {"math/test": rows(BEFORE, error=error[0])})
    b = put("b", {"math/test": rows(AFTER, error=error[1])})
    found = compare(a, b)
    (one,) = found.differences
    assert (one.before, one.change.n, one.failed) == (0.5, 3, 1)
    assert (one.only_before, one.only_after, one.changed) == (0, 0, 0)
    assert found.warnings[0].endswith("left out: 1 not judged in both")


def test_tasks_of_one_id_that_ask_something_else_are_not_paired(put):
    other = rows({"a": 1}, prompt="q") + rows({"b": 1, "c": 1, "d": 1})
    a, b = put("a", {"math/test": rows(BEFORE)}), put("b", {"math/test": other})
    found = compare(a, b)
    assert (found.differences[0].change.n, found.differences[0].changed, found.differences[0].only_before) == (3, 1, 0)
    assert "another prompt or answer" in found.warnings[0]


def test_benchmarks_of_one_alone_are_said(put):
    a = put("a", {"math/test": rows(BEFORE), "if/test": rows(BEFORE)})
    b = put("b", {"math/test": rows(AFTER), "math/aime": rows(AFTER)})
    found = compare(a, b)
    assert [one.benchmark for one in found.differences] == ["math/test"]
    assert [
        text.partition("/")[2].endswith(name)
        for text, name in zip(found.warnings, ("if/test'", "math/aime'"), strict=True)
    ]


@pytest.mark.parametrize(
    "after", [rows({"x": 1}), rows(AFTER, prompt="q"), rows(AFTER, error="abcd"), rows(AFTER, domain="if"), []]
)
def test_two_that_share_no_task_are_refused(put, after):
    a, b = put("a", {"math/test": rows(BEFORE)}), put("b", {"math/test": after})
    with pytest.raises(UsageError, match="share no task"):
        compare(a, b)


def test_files_are_compared_whatever_they_are_called(put, tmp_path):
    write(tmp_path / "one.jsonl", rows(BEFORE))
    write(tmp_path / "two.jsonl", rows(AFTER))
    assert compare(tmp_path / "one.jsonl", tmp_path / "two.jsonl").differences[0].change.n == 4


def test_a_run_is_refused_with_its_stages_named(put, tmp_path):
    put("run/stages/00-start", {"math/test": rows(BEFORE)})
    put("run/stages/01-sft", {"math/test": rows(AFTER)})
    with pytest.raises(UsageError, match="name one of its stages: .*00-start, .*01-sft"):
        evaluation(tmp_path / "run")
    assert compare(tmp_path / "run/stages/00-start", tmp_path / "run/stages/01-sft").differences[0].change.n == 4


def test_what_is_no_evaluation_is_refused(tmp_path, put):
    with pytest.raises(UsageError, match="holds no evaluation"):
        evaluation(tmp_path)
    bare = [{key: value for key, value in row.items() if key != "score"} for row in rows(BEFORE)]
    a, b = put("a", {"math/test": rows(BEFORE)}), put("b", {"math/test": bare})
    with pytest.raises(RowError, match="row 1 has no score"):
        compare(a, b)


def test_the_command_prints_a_table_and_json_and_warns_on_standard_error(put):
    a, b = put("a", {"math/test": rows({**BEFORE, "x": 1})}), put("b", {"math/test": rows(AFTER)})
    shown = CliRunner().invoke(app, ["compare", str(a), str(b)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0 and "left out" in shown.stderr
    assert shown.stdout.splitlines()[-2].split()[:4] == ["math/test", "0.375", "0.750", "+0.375"]
    told = json.loads(CliRunner().invoke(app, ["compare", str(a), str(b), "--json"]).stdout)
    assert told["benchmarks"]["math/test"]["tasks"] == 4 and told["benchmarks"]["math/test"]["low"] < 0
    refused = CliRunner().invoke(app, ["compare", str(a), "nowhere"])
    assert refused.exit_code == 2 and "holds no evaluation" in refused.stderr
