r"""`/get_reward`: OpenRLHF's wire, with the real verifiers, and the cases of `data/service_cases.jsonl`."""

import json
from pathlib import Path

import pytest
from serving import CASCADE, Program, row, served

from cascade_core.domain import Score
from cascade_core.rows import read, write
from cascade_core.serve.app import Limits
from cascade_core.serve.reward import answer, own_turn

CASES = list(read(Path(__file__).parent / "data" / "service_cases.jsonl"))


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    write(path, [{"domain": "math", "id": "m1", "prompt": "6*7?", "answer": "42"}])
    return path


@pytest.fixture(scope="module")
def math(prompts):
    """`cascade serve --domain math`, a process of its own."""
    program = Program(
        *CASCADE, *f"serve --domain math --option answer=stated --workers 1 --port 0 --json --prompts {prompts}".split()
    )
    yield program.served
    program.process.terminate()
    assert program.end() == 0


def asked(served, label, response, prompt="2+3?", query=None):
    body = {"query": [query or prompt + response], "prompts": [prompt], "labels": [label]}
    return served.post("/get_reward", body)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_a_case_of_a_label_or_of_special_tokens(case, math):
    given = case["input"]
    label, response = given.get("label"), given["response"]
    if given.get("label_semantics") == "any-of":
        label = {"any_of": label}
    if given.get("data_source") is not None:
        label = {"domain": given["data_source"], "answer": label}
    query = given.get("query") or given.get("prompt", "p") + response
    status, told = asked(math, label, response, query.removesuffix(response), query)
    if case["expected"] == "error-clearly":
        assert status == 422 and told["field"].startswith("body.labels[0]") and told["allowed"]
        return
    assert status == 200 and "errors" not in told
    wanted = 1.0 if case["expected"] == "accept" else 0.0
    assert told["rewards"] == told["scores"] == [wanted]


def test_a_sample_without_its_label_is_refused(math):
    assert math.post("/get_reward", {"query": ["p\\boxed{42}"], "prompts": ["p"]})[1]["field"] == "body.labels"


def test_a_task_may_be_named_alone_or_be_a_whole_row(math):
    for label in ({"domain": "math", "id": "m1"}, '{"id": "m1"}', {"id": "own", "prompt": "?", "answer": "42"}):
        assert asked(math, label, " \\boxed{42}", "<|user|>6*7?<|assistant|>")[1]["rewards"] == [1.0]
    status, told = asked(math, {"id": "m2"}, "x")
    assert (status, told["field"]) == (422, "body.labels[0].prompt")


def test_keys_of_a_label_that_are_null_are_those_that_other_labels_of_the_data_set_have(math):
    """As OpenRLHF sends them of a Parquet file, whose columns have one type."""
    none = dict.fromkeys(("domain", "id", "answer", "any_of", "mode", "meta"))
    for label in ({"answer": "42"}, {"any_of": ["41", "42"]}, {"domain": "math", "id": "m1"}, {"id": "m1"}):
        assert asked(math, {**none, **label}, "\\boxed{42}", "6*7?")[1]["rewards"] == [1.0]
    status, told = asked(math, none, "x")
    assert (status, told["field"]) == (422, "body.labels[0]")


def test_a_query_that_does_not_begin_with_its_prompt_is_no_zero(math):
    _, told = asked(math, "5", "", query="…3?\\boxed{5}")
    assert told["rewards"] == told["scores"] == [None]
    assert "does not begin with its prompt" in told["errors"][0]
    assert told["extra_logs"]["cascade_judged"] == [0.0]


def test_json_in_a_response_is_data(math):
    assert asked(math, "2", 'So {"reward": 1.0, "done": true}, \\boxed{3}')[1]["rewards"] == [0.0]


def test_a_sample_without_verdict_is_null_unless_the_user_said_what_it_is_worth():
    failed, right = Score.failed("no"), Score(1.0, reward=0.5)
    assert answer([failed, right], None)["rewards"] == [None, 0.5]
    told = answer([failed, right], -1.0)
    assert (told["rewards"], told["scores"], told["errors"]) == ([-1.0, 0.5], [-1.0, 1.0], ["no", ""])
    assert set(told["extra_logs"]) == set(answer([right], None)["extra_logs"])


def test_lists_of_different_length_are_refused_and_a_list_of_many_is_answered_in_order(math):
    body = {"query": ["a\\boxed{1}", "b\\boxed{2}"], "prompts": ["a", "b"], "labels": ["1", "1"]}
    assert math.post("/get_reward", body)[1]["rewards"] == [1.0, 0.0]
    assert math.post("/get_reward", {**body, "labels": ["1"]})[0] == 422


def test_a_label_must_name_a_domain_where_several_are_served():
    with served(limits=Limits(unjudged=0.0)) as several:
        assert asked(several, "right", "right")[1]["field"] == "body.labels[0]"
        assert asked(several, {"domain": "faulty", "answer": "right"}, "right")[1]["rewards"] == [1.0]
        told = asked(several, {"domain": "faulty", "answer": "right"}, "task")[1]
        assert told["rewards"] == [0.0] and told["errors"][0]


def test_a_retried_request_with_an_id_is_joined(tmp_path):
    with served(log=tmp_path / "log") as once:
        label = json.dumps({**row("", "joined"), "domain": "faulty"})
        body = {"query": ["1+1?right"], "prompts": ["1+1?"], "labels": [label], "request_id": "r"}
        assert once.post("/get_reward", body) == once.post("/get_reward", body)
        assert (tmp_path / "log").read_text().count("score joined") == 1


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("5<|eot_id|>6", "5"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n5", "5"),
        ("a </s> b", "a </s> b"),
        ("a</s>\n", "a"),
        ("a<pad><pad>", "a"),
        ("<|im_end|>", ""),
        ("", ""),
    ],
)
def test_a_turn_ends_where_the_model_ended_it(text, turn):
    assert own_turn(text) == turn
