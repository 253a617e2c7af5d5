"""The client of an OpenAI-compatible server against a real one that misbehaves on request."""

import asyncio
import itertools
import json
import socket

import pytest
from served import process, server

from cascade_core.answer import Garbage, Reply, read_reply
from cascade_core.endpoint import Client, Endpoint, retry_after
from cascade_core.errors import UsageError
from cascade_core.settings import Sampling

__all__ = ["process", "server"]

RIGHT = Reply("right", False, 7, 3)


def ask(server, prompt, *, row=None, sampling=None, seed=1, **settings):
    """The reply to one prompt, and how often the server was asked."""
    settings = {"timeout_seconds": 20.0, "tries": 3, "pause_seconds": 0.01, **settings}
    url = settings.pop("url", None) or server.url

    async def run():
        async with Client(Endpoint(url, "small", **settings), 4) as client:
            return await client.complete({"id": "t", "prompt": prompt, **(row or {})}, sampling or Sampling(), seed)

    return asyncio.run(run()), len(server.requests())


def test_an_answer_is_read_with_its_token_counts(server):
    assert ask(server, "right") == (RIGHT, 1)


@pytest.mark.parametrize(
    "trouble", ["500", "503", "408", "409", "425", "429", "html", "half", "drop", "empty", "list", "nochoices"]
)
def test_what_may_pass_is_tried_again(server, trouble):
    assert ask(server, f"{trouble}|right") == (RIGHT, 2)


@pytest.mark.parametrize("trouble", ["number", "error200", "abort", "deep"])
def test_an_answer_of_another_shape_is_tried_again(server, trouble):
    assert ask(server, f"{trouble}|right") == (RIGHT, 2)


def test_an_answer_that_does_not_come_in_time_is_tried_again(server):
    assert ask(server, "hang|right", timeout_seconds=2.0) == (RIGHT, 2)


@pytest.mark.parametrize("status", ["400", "401", "404", "422", "301"])
def test_other_refusals_are_final_at_once(server, status):
    reply, asked = ask(server, f"{status}|right")
    assert (reply.error, asked) == (f"refused: HTTP {status}: no", 1)


def test_a_filtered_response_is_a_failure_and_not_asked_for_again(server):
    reply, asked = ask(server, "filter|right")
    assert "content filter" in reply.error and asked == 1


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("500", "HTTP 500: no"),
        ("html", "<html><body>Bad gateway"),
        ("error200", "upstream is gone"),
        ("empty", "empty"),
    ],
)
def test_after_the_last_try_the_cause_is_told(server, trouble, told):
    reply, asked = ask(server, f"{trouble},{trouble},{trouble}|right")
    assert reply.error.startswith("no answer in 3 tries: ") and told in reply.error
    assert asked == 3


def test_a_server_that_is_not_there_is_a_failure_with_its_cause(server):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]  # nobody listens there, and nobody else can
        reply, _ = ask(server, "right", url=f"http://127.0.0.1:{port}/v1", tries=2)
    assert "ConnectError" in reply.error


@pytest.mark.parametrize(("trouble", "least"), [("later 1", 1.0), ("date", 0.9)])
def test_the_wait_that_the_server_asks_for_is_kept(server, trouble, least):
    prompt = f"{trouble}|right"
    assert ask(server, prompt) == (RIGHT, 2)
    first, second = (one["time"] for one in server.asked(prompt))
    assert second - first >= least


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3), ("0.5", 0.5), ("-1", 0), ("nan", 0), ("soon", 0), ("", 0), ("1e9", 600), ("inf", 600)],
)
def test_a_retry_after_header_is_read_as_seconds(header, seconds):
    assert retry_after(header) == seconds


def test_a_date_of_the_past_asks_for_no_wait():
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("Wed, 21 Oct 2999 07:28:00 GMT") == 600


def test_pauses_between_tries_grow(server):
    ask(server, "500,500,500|right", tries=4, pause_seconds=0.2, seed=9)
    times = [one["time"] for one in server.requests()]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert all(gap >= least for gap, least in zip(gaps, (0.1, 0.2, 0.4), strict=True))


def test_a_cut_response_is_truncated(server):
    assert ask(server, "cut|")[0] == Reply("rig", True, 7, 3)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("think", "<think>so\n</think>right"), ("reasoning", "<think>so</think>right"), ("thinkcut", "<think>so")],
)
def test_a_thought_told_apart_is_put_back(server, kind, text):
    assert ask(server, f"{kind}|")[0].text == text


def test_a_thought_that_was_cut_has_no_answer():
    from cascade_core import Response

    cut = {"choices": [{"message": {"content": "", "reasoning_content": "6 or"}, "finish_reason": "length"}]}
    assert Response(read_reply(json.dumps(cut).encode(), "chat").text).answer is None


@pytest.mark.parametrize(("kind", "text"), [("nousage", "right"), ("oddusage", "right"), ("null", "")])
def test_a_server_that_counts_no_tokens_gives_none(server, kind, text):
    assert ask(server, f"{kind}|")[0] == Reply(text)


def test_half_a_surrogate_pair_is_carried_both_ways(server):
    assert ask(server, "surrogate|")[0].text == "\ud800"
    assert ask(server, "\udfff")[0].text == "\udfff"


def test_a_chat_is_sent_as_it_is_and_as_plain_text_where_asked(server):
    turns = [{"role": "system", "content": "be short"}, {"role": "user", "content": "right"}]
    ask(server, turns)
    reply, _ = ask(server, turns, api="completions")
    chat, plain = server.requests()
    assert chat["path"].endswith("/v1/chat/completions") and chat["asked"]["messages"] == turns
    assert plain["path"].endswith("/v1/completions") and plain["asked"]["prompt"] == "be short\nright"
    assert reply.text == "be short\nright"


def test_sampling_settings_are_sent_and_switched_off_cut_offs_are_not(server):
    ask(server, "right", sampling=Sampling(temperature=0.5, max_response_tokens=9), seed=5)
    ask(server, "right", sampling=Sampling(top_p=0.9, top_k=4), row={"mode": "think"})
    first, second = (one["asked"] for one in server.requests())
    assert {k: v for k, v in first.items() if k != "messages"} == {
        "model": "small",
        "max_tokens": 9,
        "temperature": 0.5,
        "seed": 5,
        "stream": False,
    }
    assert (second["top_p"], second["top_k"]) == (0.9, 4)
    assert second["chat_template_kwargs"] == {"enable_thinking": True}


def test_more_fields_replace_the_usual_ones_and_null_takes_one_away(server):
    ask(server, "right", body={"max_completion_tokens": 8, "max_tokens": None, "temperature": 0.25})
    asked = server.requests()[0]["asked"]
    assert asked["max_completion_tokens"] == 8 and asked["temperature"] == 0.25 and "max_tokens" not in asked


def test_the_key_is_sent_and_cut_out_of_what_the_server_says(server):
    reply, _ = ask(server, "key|", key="sk-secret")
    assert server.requests()[0]["key"] == "Bearer sk-secret"
    assert "sk-secret" not in reply.error and "[key]" in reply.error
    assert "sk-secret" not in repr(Endpoint("http://h/v1", "m", "sk-secret"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://h/v1",
        "http://",
        "http://u:p@h/v1",
        "http://h/v1?k=1",
        "http://h:99999/",
        "http://h#a",
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UsageError, match="an endpoint is") as refusal:
        Endpoint(url, "m")
    assert "u:p" not in str(refusal.value)


def test_a_key_that_no_header_takes_is_refused_without_being_shown():
    with pytest.raises(UsageError, match="API key") as refusal:
        Endpoint("http://h", "m", "sk\nsecret")
    assert "secret" not in str(refusal.value)


def test_an_answer_without_end_is_given_up(server, monkeypatch):
    from cascade_core import endpoint

    monkeypatch.setattr(endpoint, "LARGEST_BODY_BYTES", 10)
    assert "more than 10 bytes" in ask(server, "right", tries=1)[0].error


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b"NaN"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_what_is_no_answer_is_garbage(content, api):
    with pytest.raises(Garbage):
        read_reply(content, api)
