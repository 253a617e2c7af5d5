"""Conversations of a stage over HTTP: what the environment says, what the model reads, what the judge sees of it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from faulty import EXTENSION, faulty_scorer, ref
from serving import served

from cascade_core.errors import ScoringError, SpecError
from cascade_core.evaluate import exams
from cascade_core.judge import Judge
from cascade_core.plugins import Registry
from cascade_core.prepare import prepare
from cascade_core.rows import read
from cascade_core.serve.journal import Journal
from cascade_core.serve.rollout import Rollouts
from cascade_core.settings import Evaluation, Stage
from cascade_core.spec import load
from cascade_core.template import Prompt

STAGE = {
    "name": "s",
    "domains": {"guess": 1.0},
    "steps": 2,
    "rollout": {"prompts_per_step": 1, "samples_per_prompt": 2, "max_response_tokens": 9},
}
GUESS = {"guess": ref("guess")}


def rollouts(folder, domain="guess"):
    rows = [{"domain": domain, "id": f"t{n}", "prompt": "0 to 9?", "answer": 4, "mode": ""} for n in range(2)]

    def made(scorer):
        stage = Stage.model_validate(STAGE)
        shown = (
            lambda row: Prompt(f"<{row['prompt']}>", "<p>", [1]),
            60.0,
            lambda line: None,
            lambda row, said: Prompt(f"~{said}", "<q>", [2, 3]),
        )
        return Rollouts(stage, rows, Judge(scorer, stage, 0, folder, 0.5), Journal(folder, "a", 0), *shown)

    return made


def said(*texts):
    return [{"role": "user" if place % 2 else "assistant", "content": text} for place, text in enumerate(texts)]


def reply(service, *texts, index=0):
    return service.post("/reply", {"group": "g", "index": index, "turns": said(*texts)})


def test_a_turn_is_heard_once(tmp_path):
    made = []

    def kept(scorer):
        made.append(rollouts(tmp_path)(scorer))
        return made[0]

    with served(rollouts=kept, domains=GUESS, workers=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        for texts, heard in ((("3?",), 1), (("3?",), 1), (("3?", "higher", "7"), 2), (("3?",), 2)):
            assert reply(service, *texts)[0] == 200
            assert made[0].heard == heard
        assert reply(service, "3?", index=1)[0] == 200 and made[0].heard == 3


def test_the_environment_answers_until_it_has_nothing_more_to_say(tmp_path):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        assert service.post("/slot", {"slot": 0, "group": "g"})[1]["turns"] == 4
        assert reply(service, "3?") == (200, {"said": "higher", "text": "~higher", "prefill": "<q>", "ids": [2, 3]})
        assert reply(service, "3?", "higher", "7") == (
            200,
            {"said": "lower", "text": "~lower", "prefill": "<q>", "ids": [2, 3]},
        )
        assert reply(service, "4") == (200, {"said": None})
        assert reply(service, *["9", "lower"] * 3, "9") == (200, {"said": None})  # the fourth turn is the last


def test_the_judge_sees_the_last_turn_and_those_before_it(tmp_path):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        bodies = [
            {"group": "g", "index": 0, "response": "4", "truncated": False, "tokens": 2},
            {"group": "g", "index": 1, "response": "4", "turns": said("3", "higher"), "truncated": False, "tokens": 4},
        ]
        with ThreadPoolExecutor(2) as pool:
            answers = [told for _, told in pool.map(lambda body: service.post("/sample", body), bodies)]
        assert [answer["extra_logs"]["cascade_reward"] for answer in answers] == [1.0, 0.5]
        first, second = read(tmp_path / "rollouts/step-00000.jsonl")
        assert "turns" not in first and second["turns"] == said("3", "higher")
        assert (first["prefill"], second["prefill"]) == ("<p>", "<q>")
        assert reply(service, "3") == (200, {"said": None})  # the step is judged
        assert reply(service, "3", "higher")[1]["field"] == "body.turns"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise", "ValueError: the environment has no answer"),
        ("number", "Guess.reply must return a text or None, found 7"),
        ("spin", "limit: 1 s of CPU time"),
    ],
)
def test_an_environment_that_fails_is_told_to_the_engine_and_ends_nothing(tmp_path, text, why):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1, cpu_seconds=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        status, told = reply(service, text)
        assert (status, told["said"]) == (200, None) and why in told["failed"]
        assert reply(service, "3")[1]["said"] == "higher"


@pytest.mark.parametrize(
    ("turns", "field"),
    [
        (None, "body.turns"),
        ([], "body.turns"),
        (said("3", "higher"), "body.turns"),
        (said(*["3"] * 9), "body.turns"),
        ([{"role": "user", "content": "3"}], "body.turns[0]"),
        ([{"role": "assistant", "content": "3", "more": 1}], "body.turns[0]"),
        ([{"role": "assistant", "content": 3}], "body.turns[0].content"),
        (["3"], "body.turns[0]"),
    ],
)
def test_what_is_no_conversation_is_refused_by_field(tmp_path, turns, field):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        status, told = service.post("/reply", {"group": "g", "index": 0, "turns": turns})
        assert (status, told["field"]) == (422, field)


@pytest.mark.parametrize("turns", [{}, "", 0, False, said("3")])
def test_turns_of_a_sample_that_are_none_are_refused_though_they_are_empty(tmp_path, turns):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        body = {"group": "g", "index": 0, "response": "4", "turns": turns, "truncated": False, "tokens": 2}
        status, told = service.post("/sample", body)
        assert (status, told["field"]) == (422, "body.turns")


def test_a_domain_without_conversations_has_no_turns(tmp_path):
    with served(rollouts=rollouts(tmp_path, "faulty"), workers=1) as service:
        assert "turns" not in service.post("/slot", {"slot": 0, "group": "g"})[1]
        assert reply(service, "3")[1]["field"] == "body.turns"
        body = {"group": "g", "index": 0, "response": "4", "turns": said("3", "x"), "truncated": False, "tokens": 2}
        assert service.post("/sample", body)[1]["field"] == "body.turns"


def test_a_service_that_is_started_again_goes_on_in_the_middle_of_a_conversation(tmp_path):
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        service.post("/slot", {"slot": 0, "group": "g"})
        assert reply(service, "3")[1]["said"] == "higher"
    with served(rollouts=rollouts(tmp_path), domains=GUESS, workers=1) as service:
        assert reply(service, "3", "higher", "5")[1]["said"] == "lower"
        assert reply(service, "3", "higher", "5", index=2)[1]["field"] == "body.index"


def test_a_row_of_a_conversation_is_scored_with_its_turns():
    row = {"domain": "guess", "id": "t", "prompt": "p", "answer": 4, "response": "4"}
    with served(domains=GUESS, workers=1) as service:
        rows = [row, {**row, "turns": said("3", "higher")}]
        found = service.post("/score", {"rows": rows})[1]["scores"]
        assert [one["metrics"]["turns"] for one in found] == [1.0, 2.0]
        status, told = service.post("/score", {"rows": [{**row, "turns": "3"}]})
        assert (status, told["field"]) == (422, "body.rows[0].turns")


def test_a_scorer_says_how_long_conversations_may_be():
    with faulty_scorer(workers=1, domains=GUESS) as scorer:
        assert (scorer.most_turns("guess"), scorer.most_turns("faulty")) == (4, 0)
        with pytest.raises(ScoringError, match="no domain 'none'"):
            scorer.most_turns("none")
        row = {"domain": "guess", "id": "t", "prompt": "p", "answer": 4}
        assert scorer.reply(row, said("1")).result() == "higher"


SPEC = """
name: c
model: {init: {}}
trainer: trl
domains: {guess: {}}
stages: [{name: g, domains: guess, steps: 1, rollout: {max_response_tokens: 24}}]
"""


@pytest.fixture
def registry(monkeypatch):
    """One that knows the faulty domains."""
    monkeypatch.syspath_prepend(str(EXTENSION))
    return Registry()


def test_a_trainer_that_samples_one_turn_refuses_a_domain_of_conversations(tmp_path, registry):
    (tmp_path / "spec.yaml").write_text(SPEC)
    with pytest.raises(SpecError, match="stage 'g': domain 'guess' holds conversations .*, and trainer 'trl' samples"):
        prepare(load(tmp_path / "spec.yaml"), registry)


def test_a_benchmark_of_conversations_is_refused(registry):
    domain = registry.build(registry.reference("guess", {"measured": True}))
    with pytest.raises(SpecError, match="benchmark 'guess/test' is of a domain that holds conversations"):
        exams({"guess": domain}, Evaluation())
