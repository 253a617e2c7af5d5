"""The agent in OpenRLHF's engines: groups, what is asked and handed back, and every way in which a sample can end."""

import ast
import asyncio
import math
import threading
import time
from pathlib import Path

import pytest
from aiohttp import web
from openrlhf_rig import Engine, Rig, Sampling, Service, good, load

import cascade_core
from cascade_core.errors import TrainerError, UsageError
from cascade_core.trainers import openrlhf_client
from cascade_core.trainers.openrlhf_sample import LOGGED, read_answer, slot_of

CORE = Path(cascade_core.__file__).parent


@pytest.fixture
def rig(monkeypatch):
    return Rig(load(monkeypatch), Service(), Engine())


def gathered(*coroutines):
    return asyncio.gather(*coroutines)


def test_the_samples_of_a_prompt_are_one_group_that_draws_one_task(rig):
    rig.run(lambda: gathered(*rig.group()))
    assert [body["slot"] for body in rig.service.slots] == [5]
    group = rig.service.slots[0]["group"]
    assert sorted((body["group"], body["index"]) for body in rig.service.samples) == [(group, 0), (group, 1)]


def test_the_same_prompt_twice_in_flight_is_two_groups(rig):
    rig.run(lambda: gathered(*rig.group(Sampling()), *rig.group(Sampling())))
    names = [body["group"] for body in rig.service.slots]
    assert len(names) == len(set(names)) == 2
    assert sorted(body["index"] for body in rig.service.samples) == [0, 0, 1, 1]


def test_a_prompt_that_comes_again_with_the_same_object_is_another_group(rig):
    shared = Sampling()

    async def twice():
        await gathered(*rig.group(shared))
        await gathered(*rig.group(shared))

    rig.run(twice)
    assert len({body["group"] for body in rig.service.slots}) == 2


def test_groups_of_a_hundred_prompts_stay_apart_whatever_their_order(rig):
    async def many():
        made = [(number, rig.group(label=number)) for number in range(100)]
        await gathered(*[one for _, group in reversed(made) for one in reversed(group)])

    rig.run(many)
    slots = {body["group"]: body["slot"] for body in rig.service.slots}
    assert sorted(slots.values()) == list(range(100))
    assert len({(body["group"], body["index"]) for body in rig.service.samples}) == 200


def test_the_engine_reads_the_services_prompt_without_special_tokens(rig):
    rig.run(lambda: gathered(*rig.group()))
    assert [text for text, _ in rig.engine.asked] == ["one and one?"] * 2


def test_the_engine_samples_as_the_service_says_and_the_shared_object_stays(rig):
    shared = Sampling()
    rig.run(lambda: gathered(*rig.group(shared)))
    for _, used in rig.engine.asked:
        assert used is not shared
        assert (used.temperature, used.top_p, used.top_k, used.max_tokens) == (1.0, 0.9, -1, 8)
    assert shared == Sampling()


def test_only_the_response_is_told_without_special_tokens_and_with_its_length(rig):
    rig.engine.finish = "length"
    rig.run(lambda: gathered(*rig.group(n=2)))
    body = rig.service.samples[0]
    assert (body["response"], body["tokens"], body["truncated"]) == ("yes", 4, True)


def test_the_answer_is_handed_back_as_it_came(rig):
    rig.service.answer = lambda body: good(0.25 if body["index"] else -0.25, cascade_reward=7)
    outputs = rig.run(lambda: gathered(*rig.group()))
    assert [out["reward"] for out in outputs] == [-0.25, 0.25]
    assert outputs[0]["scores"] == 1.0
    assert outputs[0]["extra_logs"]["cascade_reward"] == 7.0
    assert outputs[0]["action_ranges"] == [(12, 16)]


@pytest.mark.parametrize("logs", [{}, {"cascade_limit": 1, "another": 3}])
def test_the_same_numbers_are_logged_of_every_sample(rig, logs):
    rig.service.answer = lambda body: good(**logs)
    outputs = rig.run(lambda: gathered(*rig.group()))
    assert all(tuple(out["extra_logs"]) == LOGGED for out in outputs)


def test_a_masked_sample_keeps_one_token_and_no_advantage(rig):
    rig.service.answer = lambda body: good(0.0, masked="overlong")
    out = rig.run(lambda: gathered(*rig.group()))[0]
    assert (out["reward"], out["action_ranges"]) == (0.0, [(12, 13)])
    assert out["rollout_log_probs"] == [0.0] * 12 + [-0.5] + [0.0] * 3
    assert len(out["observation_tokens"]) == 16


def test_a_masked_sample_without_log_probabilities_is_masked_too(rig):
    rig.service.answer = lambda body: good(0.0, masked="error")
    out = rig.run(lambda: gathered(*rig.group(Sampling(logprobs=None))))[0]
    assert (out["rollout_log_probs"], out["action_ranges"]) == (None, [(12, 13)])


def test_a_sample_waits_for_the_others_of_its_group(rig):
    there = []
    complete = asyncio.Event()

    async def barrier(body):
        there.append(body["index"])
        if len(there) == 2:
            complete.set()
        await complete.wait()
        return good()

    rig.service.answer = barrier
    outputs = rig.run(lambda: asyncio.wait_for(gathered(*rig.group()), 20))
    assert [out["reward"] for out in outputs] == [0.5, 0.5]


@pytest.mark.parametrize("failure", [ValueError("no such token"), RuntimeError("x" * 5000), ""])
def test_a_generation_that_fails_is_reported_and_masked(rig, failure):
    rig.engine.texts = [failure, "yes~"]
    rig.service.answer = lambda body: good(0.0, masked="error") if "gave_up" in body else good()
    outputs = rig.run(lambda: gathered(*rig.group()))
    given_up = [body for body in rig.service.samples if "gave_up" in body]
    assert len(given_up) == 1 and 0 < len(given_up[0]["gave_up"]) <= 300
    masked = [out for out in outputs if out["action_ranges"] == [(12, 13)]]
    assert len(masked) == 1
    assert masked[0]["observation_tokens"] == [*map(ord, "one and one?~")]
    assert (masked[0]["reward"], masked[0]["rollout_log_probs"]) == (0.0, [0.0] * 13)
    assert tuple(masked[0]["extra_logs"]) == LOGGED


def test_a_stand_in_needs_no_end_token(rig):
    rig.tokenizer.eos_token_id = None
    rig.engine.texts = [ValueError("no"), ValueError("no")]
    rig.service.answer = lambda body: good(0.0, masked="error")
    outputs = rig.run(lambda: gathered(*rig.group()))
    assert outputs[0]["observation_tokens"] == [*map(ord, "one and one??")]


def test_a_dead_engine_ends_the_job_and_every_sample_is_reported(rig):
    class EngineDeadError(Exception):
        pass

    rig.engine.texts = [EngineDeadError("gone")]
    found = rig.run(lambda: asyncio.gather(*rig.group(), return_exceptions=True))
    assert [type(one) for one in found] == [EngineDeadError] * 2
    assert sorted(body["index"] for body in rig.service.samples if "gone" in body["gave_up"]) == [0, 1]


def test_a_cancelled_sample_is_reported_and_the_others_go_on(rig):
    async def cancel():
        first, second = (asyncio.ensure_future(one) for one in rig.group())
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(first, second, return_exceptions=True)

    found = rig.run(cancel)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1]["reward"] == 0.5
    assert {body["index"]: body.get("gave_up", "") for body in rig.service.samples} == {0: "CancelledError: ", 1: ""}


def test_a_prompt_without_room_ends_the_job_and_names_the_lengths(rig):
    rig.length = 19
    with pytest.raises(TrainerError, match=r"a prompt of 12 tokens \(allowed: 1 … 11, what data.max_len 19 leaves"):
        rig.run(lambda: gathered(*rig.group()))
    assert rig.engine.asked == []


def test_a_prompt_with_just_enough_room_is_read_whole(rig):
    rig.length = 20
    rig.run(lambda: gathered(*rig.group()))
    assert rig.engine.asked[0][0] == "one and one?"


def test_another_number_of_samples_than_the_stages_ends_the_job(rig):
    with pytest.raises(TrainerError, match="the stage has 2 samples per prompt, OpenRLHF makes 3"):
        rig.run(lambda: gathered(*rig.group(n=3)))


@pytest.mark.parametrize("status", [0, 408, 425, 429, 502, 503, 504])
def test_a_request_that_was_lost_or_put_off_is_sent_again_as_it_was(rig, status):
    rig.service.before = [status] * 4
    outputs = rig.run(lambda: gathered(*rig.group()))
    assert [out["reward"] for out in outputs] == [0.5, 0.5]
    assert len(rig.service.slots) + len(rig.service.samples) == 1 + 2 + 4
    assert len({body["group"] for body in rig.service.slots}) == 1
    assert {str(body["index"]) + body["response"] for body in rig.service.samples} == {"0yes", "1yes"}
    assert len(rig.engine.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 422, 500])
def test_a_refusal_ends_the_job_with_the_words_of_the_service(rig, status):
    rig.service.before = [status] * 4
    with pytest.raises(TrainerError, match=f"refuses /slot with {status}: not like this"):
        rig.run(lambda: gathered(*rig.group()))


def test_somebody_elses_server_ends_the_job(rig):
    async def page(request):
        return web.Response(text="<html>")

    rig.service._slot = page
    with pytest.raises(TrainerError, match="refuses /slot with 406: JSONDecodeError"):
        rig.run(lambda: gathered(*rig.group()))


def test_a_service_that_is_gone_ends_the_job(rig):
    async def gone():
        rig.agent._client._address = "http://127.0.0.1:9"
        await gathered(*rig.group())

    with pytest.raises(TrainerError, match=r"the service of the stage, http://127.0.0.1:9, did not answer for"):
        rig.run(gone, CASCADE_SERVE_PATIENCE="0.5")


def test_an_answer_that_takes_longer_than_a_try_and_than_the_patience_is_waited_for(rig, monkeypatch):
    monkeypatch.setattr(openrlhf_client, "_TRY_SECONDS", 0.4)
    asked = []

    async def slowly(body):
        asked.append(body["index"])
        while min(asked.count(index) for index in (0, 1)) < 4:
            await asyncio.sleep(0.01)
        return good()

    rig.service.answer = slowly
    begun = time.monotonic()
    outputs = rig.run(lambda: gathered(*rig.group()), CASCADE_SERVE_PATIENCE="0.5")
    assert [out["reward"] for out in outputs] == [0.5, 0.5]
    assert len(rig.service.samples) >= 8 and time.monotonic() - begun > 3 * 0.4 > 0.5


def test_a_service_that_is_away_for_less_than_the_patience_is_waited_for(rig):
    async def away():
        there, rig.agent._client._address = rig.agent._client._address, "http://127.0.0.1:9"
        asyncio.get_running_loop().call_later(1.0, setattr, rig.agent._client, "_address", there)
        return await gathered(*rig.group())

    assert len(rig.run(away, CASCADE_SERVE_PATIENCE="60")) == 2


def test_the_token_is_shown(rig):
    rig.run(lambda: gathered(*rig.group()), CASCADE_SERVE_TOKEN="secret")
    assert rig.service.headers == ["Bearer secret"]


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {**good(), "reward": None},
        {**good(), "reward": math.nan},
        {**good(), "scores": "high"},
        {**good(), "extra_logs": []},
        good(cascade_value=math.inf),
        {"reward": 1, "scores": 1, "extra_logs": {}},
    ],
)
def test_an_answer_that_is_none_never_reaches_the_trainer(told):
    with pytest.raises(TrainerError, match="the service answers /sample with"):
        read_answer(told)


@pytest.mark.parametrize("told", [{"temperature": 1.0}, {}, {"max_tokens": "many", "temperature": 1, "top_p": 1}])
def test_a_task_that_is_none_ends_the_job(rig, told):
    rig.service.sampling = told
    with pytest.raises(TrainerError, match="the service answers /slot with"):
        rig.run(lambda: gathered(*rig.group()))


@pytest.mark.parametrize("label", ["", "slot 3", "-1", None, 1.5])
def test_a_row_that_is_no_slot_is_refused(label):
    with pytest.raises(TrainerError, match="the data set must hold slots"):
        slot_of(label)


@pytest.mark.parametrize(
    "environment",
    [{}, {"CASCADE_SERVE_ADDRESS": "localhost:80"}]
    + [
        {"CASCADE_SERVE_ADDRESS": "http://x", "CASCADE_SERVE_PATIENCE": text} for text in ("", "0", "nan", "inf", "ten")
    ],
)
def test_a_client_that_does_not_know_its_service_is_refused(environment):
    from cascade_core.trainers.openrlhf_client import Client

    with pytest.raises(UsageError, match="CASCADE_SERVE_"):
        Client.of(environment)


def test_two_thousand_samples_wait_at_once_without_a_thread_each(rig):
    rig.service.per_prompt = 16
    waiting = []
    complete = asyncio.Event()

    async def barrier(body):
        waiting.append(threading.active_count())
        if len(waiting) == 2000:
            complete.set()
        await complete.wait()
        return good()

    rig.service.answer = barrier
    before = threading.active_count()
    outputs = rig.run(lambda: asyncio.wait_for(gathered(*[one for _ in range(125) for one in rig.group()]), 120))
    assert len(outputs) == 2000
    assert max(waiting) <= before + 2


def test_no_other_module_imports_openrlhf():
    importing = {
        path.name
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.partition(".")[0] == "openrlhf"
    }
    assert importing == {"openrlhf_agent.py"}
