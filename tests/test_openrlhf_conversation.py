"""Conversations in OpenRLHF's engines: what is an action and what is read, where they end, and every way in which one can fail."""

import asyncio

import pytest
from openrlhf_rig import Engine, Rig, Sampling, Service, good, load

from cascade_core.errors import TrainerError

PROMPT = "one and one?"
FIRST = len(PROMPT)


@pytest.fixture
def rig(monkeypatch):
    service = Service(per_prompt=1, more={"turns": 3})
    service.sampling["max_tokens"] = 40
    return Rig(load(monkeypatch), service, Engine(texts=["1~", "3~", "2~"], is_exact=True))


def told(text, said="higher", **more):
    return {"said": said, "text": text, "ids": [ord(letter) for letter in text], "prefill": "", **more}


def hints(body):
    """The environment: it knows that the number is 2, and ends a turn with `~`, as the model does."""
    word = {"1": "higher", "3": "lower"}.get(body["turns"][-1]["content"][-1])
    return told(f"~[{word}]", word) if word else {"said": None}


def lead(rig, sampling=None, n=1):
    return rig.run(lambda: asyncio.gather(*rig.group(sampling, n)))


def test_the_model_reads_all_that_was_said_and_only_its_own_turns_are_actions(rig):
    rig.service.reply = hints
    (out,) = lead(rig)
    assert [text for text, _ in rig.engine.asked] == [PROMPT, f"{PROMPT}1~[higher]", f"{PROMPT}1~[higher]3~[lower]"]
    assert "".join(map(chr, out["observation_tokens"])) == f"{PROMPT}1~[higher]3~[lower]2~"
    actions = ["".join(map(chr, out["observation_tokens"][start:end])) for start, end in out["action_ranges"]]
    assert actions == ["1~", "3~", "2~"]


def test_log_probabilities_stand_beside_their_tokens_and_are_0_where_nothing_was_sampled(rig):
    rig.service.reply = hints
    (out,) = lead(rig)
    sampled = {place for start, end in out["action_ranges"] for place in range(start, end)}
    wanted = [-token / 1000 if place in sampled else 0.0 for place, token in enumerate(out["observation_tokens"])]
    assert out["rollout_log_probs"] == wanted


def test_the_service_is_told_the_last_turn_and_those_before_it(rig):
    rig.service.reply = hints
    lead(rig)
    turns = [("assistant", "1"), ("user", "higher"), ("assistant", "3"), ("user", "lower")]
    (body,) = rig.service.samples
    assert [(turn["role"], turn["content"]) for turn in body.pop("turns")] == turns
    assert {key: body[key] for key in ("response", "truncated", "tokens")} == {
        "response": "2",
        "truncated": False,
        "tokens": 6,
    }


def test_what_a_turn_opens_with_is_part_of_it(rig):
    rig.service.more |= {"prefill": "<a>"}
    rig.service.reply = lambda body: told("~x<b>", prefill="<b>")
    lead(rig)
    said = [turn["content"] for turn in rig.service.replies[-1]["turns"]]
    assert said == ["<a>1", "higher", "<b>3"]


def test_the_end_of_a_turn_is_read_once(rig):
    rig.service.reply = lambda body: told("[no end of a turn]")
    lead(rig)
    assert rig.engine.asked[1][0] == f"{PROMPT}1~[no end of a turn]"


def test_a_conversation_ends_with_the_turns_of_the_model_whatever_the_environment_says(rig):
    rig.service.reply = lambda body: told("~on")
    (out,) = lead(rig)
    assert len(out["action_ranges"]) == 3 and len(rig.service.replies) == 2
    assert rig.service.samples[0]["truncated"] is False


def test_a_turn_that_the_limit_cuts_ends_the_conversation_as_truncated(rig):
    rig.service.sampling["max_tokens"] = 11  # "1~" and "[higher]" leave one token
    rig.service.reply = hints
    (out,) = lead(rig)
    assert out["observation_tokens"][-1] == ord("3") and len(out["observation_tokens"]) == FIRST + 11
    assert (out["truncated"], rig.service.samples[0]["truncated"], rig.service.samples[0]["response"]) == (
        True,
        True,
        "3",
    )


def test_an_environment_that_says_more_than_fits_ends_the_conversation_as_truncated(rig):
    rig.service.reply = lambda body: told("~" + "x" * 38)
    (out,) = lead(rig)
    assert out["action_ranges"] == [(FIRST, FIRST + 2)]
    (body,) = rig.service.samples
    assert (body["response"], body["truncated"]) == ("1", True) and "turns" not in body


def test_each_turn_may_use_what_is_left_and_the_shared_parameters_stay(rig):
    rig.service.reply = hints
    shared = Sampling()
    lead(rig, shared)
    assert [used.max_tokens for _, used in rig.engine.asked] == [40, 30, 21]
    assert len({id(used) for _, used in rig.engine.asked} - {id(shared)}) == 3
    assert shared == Sampling()


def test_a_conversation_without_log_probabilities_has_none(rig):
    rig.service.reply = hints
    (out,) = lead(rig, Sampling(logprobs=None))
    assert out["rollout_log_probs"] is None and len(out["action_ranges"]) == 3


def test_a_masked_conversation_keeps_one_token_of_its_first_turn(rig):
    rig.service.reply = hints
    rig.service.answer = lambda body: good(0.0, masked="overlong")
    (out,) = lead(rig)
    assert out["action_ranges"] == [(FIRST, FIRST + 1)]
    assert out["rollout_log_probs"][FIRST] == -ord("1") / 1000 and not any(out["rollout_log_probs"][FIRST + 1 :])


def test_an_environment_that_fails_makes_a_sample_that_was_given_up(rig):
    rig.service.reply = lambda body: {"said": None, "failed": "guess: no turn, twice"}
    rig.service.answer = lambda body: good(0.0, masked="error")
    (out,) = lead(rig)
    assert rig.service.samples[0]["gave_up"] == "guess: no turn, twice"
    assert out["action_ranges"] == [(FIRST, FIRST + 1)] and out["reward"] == 0.0


@pytest.mark.parametrize("texts", [["1~", ValueError("lost")], ["1~", ""]])
def test_a_generation_that_fails_in_the_middle_is_given_up_as_a_whole(rig, texts):
    rig.engine.texts = texts
    rig.service.reply = hints
    rig.service.answer = lambda body: good(0.0, masked="error")
    (out,) = lead(rig)
    assert rig.service.samples[0]["gave_up"] in ("ValueError: lost", "the engine returned no token")
    assert out["observation_tokens"] == [*map(ord, PROMPT), ord("~")]


@pytest.mark.parametrize("answer", [[], {}, {"said": 1}, {"said": "x"}, {"said": "x", "text": ""}])
def test_an_answer_that_is_no_turn_ends_the_job(rig, answer):
    rig.service.reply = lambda body: answer
    with pytest.raises(TrainerError, match="the service answers /reply"):
        lead(rig)


def test_a_reply_that_was_lost_is_asked_for_again(rig):
    rig.service.reply = hints
    turned = rig.service._turned

    async def first_reply_is_hung_up(request):
        if request.path == "/reply" and len(rig.service.replies) == 1:
            rig.service.before = [0]
        return await turned(request)

    rig.service._turned = first_reply_is_hung_up
    (out,) = lead(rig)
    assert len(rig.service.replies) == 3 and len(out["action_ranges"]) == 3
    assert rig.service.replies[0] == rig.service.replies[1]


def test_the_samples_of_a_group_converse_side_by_side(rig):
    rig.service.per_prompt = 16
    rig.engine.texts = ["1~"]
    rig.service.reply = lambda body: told("~on")
    outputs = lead(rig, n=16)
    assert {len(out["action_ranges"]) for out in outputs} == {3}
    assert sorted(body["index"] for body in rig.service.samples) == list(range(16))
