"""The webhook: posts arrive in order and once, whatever the receiver does; what is refused is lost and said."""

import hashlib
import hmac
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_webhook.delivery import NotDelivered
from cascade_plugin_webhook.tracker import WebhookTracker
from webhook_receiver import Receiver, receiver

from cascade_core import RunInfo, Secret
from cascade_core.errors import SpecError
from cascade_core.plugins import Registry

EVENTS: list[dict[str, Any]] = [
    {"kind": "step", "stage": "01-rl", "step": 0, "time": 1.5, "reward": 0.25},
    {"kind": "eval", "stage": "01-rl", "time": 2.5, "benchmark": "math/test", "value": 0.5},
]


def started(url: str, tmp_path: Path, **options: Any) -> WebhookTracker:
    tracker = WebhookTracker(url, **options)
    tracker.start(RunInfo("00ff", "small", tmp_path, {"rl": 1}, {}))
    return tracker


def bodies(hook: Receiver) -> list[Any]:
    return [json.loads(body) for _, body, _ in hook.posts]


def test_a_batch_is_one_post_that_names_the_run(tmp_path: Path) -> None:
    with receiver() as hook:
        tracker = started(hook.url, tmp_path)
        tracker.events(EVENTS)
        tracker.events(EVENTS[:1])
        tracker.finish("finished")
    run = {"id": "00ff", "name": "small"}
    assert bodies(hook) == [{"run": run, "events": EVENTS}, {"run": run, "events": EVENTS[:1]}]
    assert {headers["Content-Type"] for headers, _, _ in hook.posts} == {"application/json"}
    assert all("Authorization" not in headers and "Cascade-Signature" not in headers for headers, _, _ in hook.posts)


def test_only_the_wanted_kinds_are_posted(tmp_path: Path) -> None:
    with receiver() as hook:
        tracker = started(hook.url, tmp_path, kinds=["eval"])
        tracker.events(EVENTS[:1])
        tracker.events(EVENTS)
    assert hook.taken == EVENTS[1:] and len(hook.posts) == 1


@pytest.mark.parametrize("answers", [(500, 503), (429,), ("slam", 502), (408,)])
def test_a_receiver_that_is_not_ready_gets_the_same_bytes_again(answers: tuple[Any, ...], tmp_path: Path) -> None:
    with receiver(*answers) as hook:
        tracker = started(hook.url, tmp_path)
        tracker.events(EVENTS)
        tracker.events(EVENTS[:1])
    assert hook.taken == [*EVENTS, EVENTS[0]]
    assert len({body for _, body, _ in hook.posts[: len(answers) + 1]}) == 1


def test_waits_between_tries_grow_and_the_receiver_may_ask_for_more(tmp_path: Path) -> None:
    with receiver(503, 503) as hook:
        begin = time.monotonic()
        started(hook.url, tmp_path).events(EVENTS)
        assert time.monotonic() - begin >= 0.5 + 1.0
    assert len(hook.posts) == 3
    with receiver(503, Retry_After="2") as hook:
        begin = time.monotonic()
        started(hook.url, tmp_path).events(EVENTS)
        assert time.monotonic() - begin >= 2.0


@pytest.mark.parametrize("answer", [301, 307, 400, 401, 404, 410])
def test_a_refusal_is_final_for_its_batch_and_the_next_one_is_posted(answer: int, tmp_path: Path) -> None:
    with receiver(answer, Location="http://127.0.0.1:9/elsewhere") as hook:
        tracker = started(hook.url, tmp_path)
        with pytest.raises(NotDelivered, match=f"the receiver answered {answer}$"):
            tracker.events(EVENTS)
        tracker.events(EVENTS[1:])
    assert hook.taken == EVENTS[1:] and len(hook.posts) == 2


def test_a_receiver_that_hangs_is_left_and_tried_again(tmp_path: Path) -> None:
    with receiver("hang") as hook:
        started(hook.url, tmp_path, timeout_seconds=2.0).events(EVENTS)
        assert hook.taken == EVENTS


def test_a_receiver_that_is_gone_is_given_up_in_time(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/s3cret-path"
        tracker = started(url, tmp_path, retry_seconds=1.0)
        begin = time.monotonic()
        with pytest.raises(NotDelivered, match="no answer .*tried for 1 s") as error:
            tracker.events(EVENTS)
    assert time.monotonic() - begin < 40  # without the option it would go on for 300
    assert "s3cret" not in str(error.value)


def test_a_signature_is_of_the_time_and_the_very_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "k3y")
    (tmp_path / "token").write_text("t0ken\n")
    with receiver() as hook:
        options = {"sign": Secret(env="HOOK_KEY"), "token": Secret(file=str(tmp_path / "token"))}
        started(hook.url, tmp_path, **options).events(EVENTS)
    ((headers, body, _),) = hook.posts
    assert headers["Authorization"] == "Bearer t0ken"
    assert abs(int(headers["Cascade-Timestamp"]) - time.time()) < 60
    expected = hmac.digest(b"k3y", headers["Cascade-Timestamp"].encode() + b"." + body, hashlib.sha256).hex()
    assert headers["Cascade-Signature"] == f"sha256={expected}"


def test_text_of_any_kind_is_posted_as_json(tmp_path: Path) -> None:
    event = {"kind": "note", "stage": "", "text": "Grüße \ud800 \0 \u2028 \U0001f600"}
    with receiver() as hook:
        started(hook.url, tmp_path).events([event])
    assert hook.taken == [event]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option 'url' must be given"),
        ({"url": "ftp://a/b"}, "url must be http"),
        ({"url": "https://"}, "url must be http"),
        ({"url": "https://a:99999/"}, "url must be http"),
        ({"url": "https://a/ b"}, "url must be http"),
        ({"url": "https://user:hunter2@a/"}, "url must hold no user and password"),
        ({"url": "https://a", "token": "hunter2"}, "option 'token' must be {env: NAME} or {file: PATH}"),
        ({"url": "https://a", "timeout_seconds": 0}, "timeout_seconds must lie in 0.1..300, found 0"),
        ({"url": "https://a", "retry_seconds": -1}, "retry_seconds must lie in"),
        ({"url": "https://a", "kinds": []}, "kinds must name a kind"),
        ({"url": "https://a", "kinds": "eval"}, "option 'kinds' must be a list"),
        ({"url": "https://a", "retries": 3}, "unknown option 'retries'"),
    ],
)
def test_options_are_refused_and_no_secret_is_repeated(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as error:
        Registry().build_tracker("webhook", options)
    assert told in str(error.value) and "hunter2" not in str(error.value)


def test_a_whole_url_may_be_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as hook:
        monkeypatch.setenv("HOOK_URL", hook.url)
        tracker = Registry().build_tracker("webhook", {"url": {"env": "HOOK_URL"}})
        tracker.start(RunInfo("00ff", "small", tmp_path, {}, {}))
        tracker.events(EVENTS)
    assert hook.taken == EVENTS
