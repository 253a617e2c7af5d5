"""Clients: whatever a server does, each item ends with one verdict, and no failure is a score."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from cascade_plugin_rlhf.client import RewardClient, VllmClient, connect
from cascade_plugin_rlhf.replies import read_rewards, read_scores
from cascade_plugin_rlhf.verdict import RewardModelError, Scored, Unjudged, read_score
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Script, serving

from cascade_core.answer import Garbage, Refused
from cascade_core.errors import ResourceError, UsageError
from cascade_core.reward_model import plain

ITEMS = [("2 and 2?", "4"), ([{"role": "user", "content": "2 and 2?"}], "5")]
QUICK: dict[str, Any] = {"tries": 3, "pause_seconds": 0.02, "timeout_seconds": 5.0}


def told(script: Script, items: Any = ITEMS, **more: Any) -> list[Scored | Unjudged]:
    with serving(script) as server, RewardClient(server.address, **{**QUICK, **more}) as client:
        return client.scores(items)


def test_scores_come_with_tokens_and_what_was_cut() -> None:
    body = {"scores": [0.5, -2], "tokens": [30, 200], "truncated": [False, True]}
    assert told(lambda *_: (200, body)) == [Scored(0.5, 30), Scored(-2.0, 200, True)]


@pytest.mark.parametrize(
    ("score", "why"),
    [
        ("NaN", "the score is nan"),
        ("-Infinity", "the score is -inf"),
        ("1e999", "the score is inf"),
        ("1" + "0" * 400, "the score is inf"),
        ('"0.7"', "the score is the text '0.7', not a number"),
        ("null", "there is no score"),
        ("true", "the score is True, not a number"),
        ("[0.7]", r"the score is \[0.7\], not a number"),
        ("{}", r"the score is \{\}, not a number"),
    ],
)
def test_one_score_that_is_none_leaves_the_others(score: str, why: str) -> None:
    first, second = told(lambda *_: (200, f'{{"scores": [{score}, 0.5]}}'))
    assert isinstance(first, Unjudged) and re.fullmatch(why, first.reason)
    assert second == Scored(0.5)


def test_the_servers_reason_is_told() -> None:
    body = {"scores": [None, 0.5], "errors": ["the model's score is nan", ""]}
    assert told(lambda *_: (200, body)) == [Unjudged("the model's score is nan"), Scored(0.5)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"scores": [0.1]}, "'scores' of the answer has 1 entries for 2 items"),
        ({"scores": [0.1, 0.2, 0.3]}, "'scores' of the answer has 3 entries for 2 items"),
        ({"scores": []}, "'scores' of the answer has 0 entries for 2 items"),
        ({"score": [0.1, 0.2]}, "the answer has no 'scores', found 'score'"),
        ({"scores": 0.1}, "'scores' of the answer is no list, found 0.1"),
        ({"error": "out of memory"}, "an error in place of an answer: out of memory"),
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_an_error_that_names_it_and_is_not_asked_again(body: Any, why: str) -> None:
    with serving(lambda *_: (200, body)) as server, RewardClient(server.address, **QUICK) as client:
        with pytest.raises(RewardModelError, match=why):
            client.scores(ITEMS)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("<html>Bad gateway</html>", "the answer is no JSON: <html>Bad gateway"),
        ("I think it is a good answer.", "the answer is no JSON: I think"),
        ("", "it is empty"),
        ('{"scores": [0.1', "the answer is no JSON"),
        ("[0.1, 0.2]", "the answer is a JSON list, not an object"),
        (b"\xff\xfe", "the answer is no JSON"),
    ],
    ids=str,
)
def test_what_is_no_whole_answer_is_asked_again_and_then_an_error(body: Any, why: str) -> None:
    with serving(lambda *_: (200, body)) as server, RewardClient(server.address, **QUICK) as client:
        with pytest.raises(RewardModelError, match=f"no answer in 3 tries: .*{why}"):
            client.scores(ITEMS)
        assert len(server.asked) == 3


@pytest.mark.parametrize("first", [(503, "busy"), (500, ""), (429, ""), (200, "<html>"), None], ids=str)
def test_what_passes_is_waited_for(first: Any) -> None:
    assert told(lambda _, __, number: first if number == 0 else (200, {"scores": [1, 2]})) == [Scored(1.0), Scored(2.0)]


@pytest.mark.parametrize("answer", [(503, "busy"), (500, ""), (429, "slow down"), (502, "<html>"), None], ids=str)
def test_what_does_not_pass_is_an_error_after_as_many_tries_as_there_are(answer: Any) -> None:
    with serving(lambda *_: answer) as server, RewardClient(server.address, **QUICK) as client:
        with pytest.raises(RewardModelError, match="no answer in 3 tries"):
            client.scores(ITEMS)
        assert len(server.asked) == 3


def test_a_reward_model_that_is_busy_for_as_long_as_it_says_is_waited_for() -> None:
    with serving(lambda _, __, number: (429, "") if number == 0 else (200, {"scores": [1, 2]})) as server:
        server.headers = {"Retry-After": "0.4"}
        with RewardClient(server.address, **QUICK) as client:
            assert client.scores(ITEMS) == [Scored(1.0), Scored(2.0)]
        assert server.asked[1][2] - server.asked[0][2] >= 0.4


def test_a_refusal_is_an_error_at_once() -> None:
    with serving(lambda *_: (422, {"error": "body.model must be one of a, b"})) as server:
        with RewardClient(server.address, **QUICK) as client, pytest.raises(RewardModelError, match="one of a, b"):
            client.scores(ITEMS)
        assert len(server.asked) == 1


def test_a_server_that_hangs_is_an_error_within_the_time_that_it_has() -> None:
    began = time.monotonic()
    with pytest.raises(RewardModelError, match=r"no answer in 2 tries: no whole answer in 0\.2 s"):
        told(lambda *_: 90.0, tries=2, timeout_seconds=0.2)
    assert time.monotonic() - began < 60


def test_an_address_where_nobody_is_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with RewardClient(address, **QUICK) as client, pytest.raises(ResourceError, match=f"{address} gives no score"):
            client.scores(ITEMS)


def test_a_server_that_dies_in_mid_batch_and_comes_back_gives_every_item_one_verdict() -> None:
    items = [("q", str(number)) for number in range(1_000)]

    def numbers(_: str, body: dict[str, Any], __: int) -> Any:
        return 200, {"scores": [float(one["response"]) for one in body["items"]]}

    died = threading.Event()

    def dying(path: str, body: dict[str, Any], number: int) -> Any:
        if number >= 1:
            died.set()
            return None
        return numbers(path, body, number)

    with serving(dying) as first:
        port = first.server_address[1]
        found: list[Any] = []
        asking = RewardClient(first.address, tries=12, pause_seconds=0.05, concurrency=2)
        thread = threading.Thread(target=lambda: found.extend(asking.scores(items)))
        thread.start()
        assert died.wait(60)
    time.sleep(0.2)
    with serving(numbers, port):
        thread.join(60)
    asking.close()
    assert found == [Scored(float(number)) for number in range(1_000)]


def test_nothing_is_asked_for_no_items() -> None:
    with serving(lambda *_: None) as server, RewardClient(server.address, **QUICK) as client:
        assert client.scores([]) == []
        assert server.asked == []


def test_a_model_and_a_key_are_sent() -> None:
    with serving(lambda *_: (200, {"scores": [1, 2]})) as server:
        with RewardClient(server.address + "/", model="old", key="k", **QUICK) as client:
            client.scores(ITEMS)
        path, body, _ = server.asked[0]
        assert (path, body["model"]) == ("/score", "old")
        assert body["items"][1] == {"prompt": [{"role": "user", "content": "2 and 2?"}], "response": "5"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["scores", "rewards", "x"]), inner),
    max_leaves=8,
)


@given(
    JSON | st.dictionaries(st.sampled_from(["scores", "rewards", "errors", "tokens", "truncated", "extra_logs"]), JSON)
)
def test_no_answer_makes_up_a_score(body: Any) -> None:
    content = json.dumps(body).encode()
    for read, name in ((read_scores, "scores"), (read_rewards, "rewards")):
        try:
            found = read(content, 2)
        except (Garbage, Refused):
            continue
        assert len(found) == 2 == len(body[name])
        for verdict, number in zip(found, body[name], strict=True):
            if isinstance(verdict, Scored):
                assert not isinstance(number, str | bool | None) and verdict.score == float(number)
                assert math.isfinite(verdict.score)
            else:
                assert verdict.reason


@given(st.integers() | st.floats())
def test_a_finite_number_is_a_score_and_no_other(number: float) -> None:
    try:
        finite = math.isfinite(float(number))
    except OverflowError:
        finite = False
    assert isinstance(read_score(number), Scored) is finite


# OpenRLHF's wire


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"rewards":[0.1,0.2]}', "'rewards' of the answer has 2 entries for 3 items"),
        ('{"reward":[0.1,0.2,0.3]}', "the answer has no 'rewards', found 'reward'"),
        ('{"rewards":null}', "'rewards' of the answer is no list, found None"),
        ('{"rewards":{"0":0.1}}', "'rewards' of the answer is no list"),
    ],
)
def test_rewards_of_another_shape_are_an_error_that_names_it(body: str, why: str) -> None:
    serves, fails = serving(lambda *_: (200, body)), pytest.raises(RewardModelError, match=why)
    with serves as server, RewardClient(server.address, **QUICK) as client, fails:
        client.rewards(["qa", "qb", "qc"], ["q"] * 3, [""] * 3)


def test_rewards_in_openrlhfs_wire_are_read_in_order() -> None:
    with serving(lambda *_: (200, '{"rewards":[0.1,NaN,"2"],"scores":[1,1,1]}')) as server:
        with RewardClient(server.address, **QUICK) as client:
            found = client.rewards(["qa", "qb", "qc"], ["q"] * 3, ["", None, {}])
        assert server.asked[0][:2] == (
            "/get_reward",
            {"query": ["qa", "qb", "qc"], "prompts": ["q"] * 3, "labels": ["", None, {}]},
        )
    assert found[0] == Scored(0.1) and [type(one) for one in found[1:]] == [Unjudged, Unjudged]


# vLLM's pooling endpoints, by the shapes of its protocol.py of 0.29


def vllm_answer(path: str, body: dict[str, Any], number: int) -> Any:
    """What vLLM says: a score is the length of the last text."""
    if body.get("use_activation") is not False:
        return 400, {"error": {"message": "the score would be a sigmoid"}}
    text = body["text_2"] if path == "/score" else body["messages"][-1]["content"]
    if len(text) > 50:
        return 400, {
            "error": {"message": "maximum context length is 50 tokens", "type": "BadRequestError", "code": 400}
        }
    value = float(len(text))
    entry = {
        "/classify": {"label": "LABEL_0", "probs": [value], "num_classes": 1},
        "/pooling": {"object": "pooling", "data": [value]},
        "/score": {"object": "score", "score": value},
    }[path]
    usage = {"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0}
    return 200, {"id": "x", "object": "list", "model": "m", "data": [{"index": 0, **entry}], "usage": usage}


@pytest.mark.parametrize("kind", ["vllm", "vllm-pooling", "vllm-score"])
def test_vllm_is_asked_for_raw_scores_item_by_item(kind: str) -> None:
    with serving(vllm_answer) as server, connect(f"{kind}:{server.address}", **QUICK) as client:
        found = client.scores([*ITEMS, ("q", "x" * 60), ("q", "abc")])
        assert {path for path, *_ in server.asked} == {"/" + {"vllm": "classify"}.get(kind, kind[5:])}
        if kind != "vllm-score":
            assert all(body["messages"][-1]["role"] == "assistant" for _, body, _ in server.asked)
            assert all(body["add_generation_prompt"] is False for _, body, _ in server.asked)
    assert [found[place] for place in (0, 1, 3)] == [Scored(1.0, 7), Scored(1.0, 7), Scored(3.0, 7)]
    assert isinstance(found[2], Unjudged) and "maximum context length" in found[2].reason


SPECIAL = ["<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "</s>", "<s>", "[INST]", "[/INST]", "[SEP]", "[CLS]"]
SPECIAL += ["<end_of_turn>", "<start_of_turn>", "<｜Assistant｜>", "<|end|>", "<bos>", "<pad>", "<unk>"]


@pytest.mark.parametrize("kind", ["vllm", "vllm-pooling", "vllm-score"])
def test_words_like_special_tokens_are_text_for_vllm_as_they_are_for_our_server(kind: str) -> None:
    ours = plain(SimpleNamespace(added_tokens_decoder={}, all_special_tokens=SPECIAL))  # type: ignore[arg-type]
    said = [f"so{word}, or{word}{word}" for word in SPECIAL]
    with serving(lambda *_: (200, {"data": []})) as server, connect(f"{kind}:{server.address}", **QUICK) as client:
        client.scores([(text, text) for text in said])
        client.scores([([{"role": "user", "content": text}], text) for text in said])
        texts = [turn["content"] for _, body, _ in server.asked for turn in body.get("messages", ())]
        texts += [body[name] for _, body, _ in server.asked for name in ("text_1", "text_2") if name in body]
    assert sorted(texts) == sorted([ours(text) for text in said] * 4)
    assert not any(word in text for word in SPECIAL for text in texts)


@pytest.mark.parametrize("text", ["a<s and b>s", "x[i]", "<p>", "a <| b |> c\n|>", "[cls]", "if a<|b|: c"])
def test_what_is_no_special_token_goes_to_vllm_as_it_is(text: str) -> None:
    with serving(vllm_answer) as server, VllmClient(server.address, **QUICK) as client:
        client.scores([(text, text)])
        assert [turn["content"] for turn in server.asked[0][1]["messages"]] == [text, text]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"probs": [0.1, 0.9]}, "2 numbers for one item"),
        ({"probs": []}, "0 numbers for one item"),
        ({"probs": ["0.1"]}, "the score is the text '0.1'"),
        ({"scores": [1]}, "the answer's data has no 'probs'"),
        (3, "the answer's data has no 'probs', found 3"),
    ],
    ids=str,
)
def test_what_vllm_says_of_another_model_is_no_score(entry: Any, why: str) -> None:
    with serving(lambda *_: (200, {"data": [entry]})) as server, VllmClient(server.address, **QUICK) as client:
        (found,) = client.scores(ITEMS[:1])
    assert isinstance(found, Unjudged) and why in found.reason


def test_token_wise_pooling_is_one_number_or_none() -> None:
    serves = serving(lambda *_: (200, {"data": [{"data": [[0.25]]}]}))
    with serves as server, VllmClient(server.address, api="pooling", **QUICK) as client:
        assert client.scores(ITEMS[:1]) == [Scored(0.25)]


@pytest.mark.parametrize("address", ["unix:/run/x", "vllm:", "ftp://x", "http://", "http://user:secret@host", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        connect(address)
