"""A judge: both orders, grades, prose, refusals, rates, kept replies; no failure is half a point."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_rlhf.judge import Comparison, Judge, connect_judge
from cascade_plugin_rlhf.judging import JudgeEndpoint, Judging
from cascade_plugin_rlhf.opinions import PAIRWISE, asked
from cascade_plugin_rlhf.verdict import Scored, Unjudged
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Script, Scripted, serving

from cascade_core.errors import SpecError, UsageError
from cascade_core.provision import build, choose
from cascade_core.secret import Secret

CONTEST = ("2 and 2?", "4, since 2 + 2 = 4", "5")


def said(text: str, **choice: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}]}


def prefers(right: str) -> Script:
    """A judge that finds one answer better, wherever it stands."""

    def script(path: str, body: dict[str, Any], number: int) -> Any:
        text = body["messages"][-1]["content"]
        is_first = text.index(right) < text.index("<answer B>")
        return said(f"One of them is right. [[{'A>B' if is_first else 'B>>A'}]]")

    return script


def judge(server: Scripted, **more: Any) -> Judge:
    return Judge(Judging(server.address + "/v1", "m", **{"tries": 3, "pause_seconds": 0.02, **more}))


def test_answers_are_compared_in_both_orders() -> None:
    with serving(prefers("since")) as server, judge(server) as one:
        (found,) = one.compare([CONTEST])
        assert isinstance(found, Comparison)
        assert (found.forward, found.backward, found.value, found.is_consistent) == (1, 2, 1.0, True)
        (other,) = one.compare([(CONTEST[0], CONTEST[2], CONTEST[1])])
        assert isinstance(other, Comparison) and (other.forward, other.backward, other.value) == (-2, -1, 0.0)
        assert all(path == "/v1/chat/completions" for path, *_ in server.asked)


def test_a_judge_that_always_takes_the_first_gives_nobody_a_win() -> None:
    with serving(lambda *_: said("[[A>>B]]")) as server, judge(server) as one:
        (found,) = one.compare([CONTEST])
    assert isinstance(found, Comparison) and (found.value, found.is_consistent) == (0.5, False)


@given(st.integers(-2, 2), st.integers(-2, 2))
def test_a_comparison_turned_around_is_worth_the_rest(forward: int, backward: int) -> None:
    assert Comparison(forward, backward).value + Comparison(-forward, -backward).value == 1.0


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (said("Both are fine, I suppose."), "the judge gave no verdict: 'Both are fine, I suppose.'"),
        (said(""), "the judge gave no verdict: ''"),
        (said("A>B"), "the judge gave no verdict"),
        (said("I weigh", finish_reason="length"), "the judge gave no verdict within its tokens"),
        (said("<think>[[A>B]] is what I would"), "the judge gave no verdict"),
        ((200, {"choices": []}), "the judge did not answer: no answer in 3 tries"),
        ((200, "<html>"), "the judge did not answer"),
        ((401, {"error": {"message": "no such key"}}), "the judge did not answer: refused: HTTP 401: no such key"),
        ((500, ""), "no answer in 3 tries: HTTP 500"),
        (None, "no answer in 3 tries"),
    ],
    ids=str,
)
def test_no_verdict_is_unjudged_with_its_reason(reply: Any, why: str) -> None:
    with serving(lambda *_: reply) as server, judge(server) as one:
        found = one.compare([CONTEST])[0], one.scores([CONTEST[:2]])[0]
    assert all(isinstance(verdict, Unjudged) and why in verdict.reason for verdict in found)


def test_one_order_without_verdict_is_no_half_comparison() -> None:
    with serving(lambda _, __, number: said("[[A>B]]" if number else "hm")) as server, judge(server) as one:
        assert isinstance(one.compare([CONTEST])[0], Unjudged)


@pytest.mark.parametrize(
    ("text", "grade"),
    [("[[7]]", 7.0), ("Not [[3]] but [[ 8.5 ]]", 8.5), ("<think>[[1]]</think>Good. [[10]]", 10.0), ("[[0]]", None)],
)
def test_a_grade_is_the_last_number_in_brackets_from_1_to_10(text: str, grade: float | None) -> None:
    with serving(lambda *_: said(text)) as server, judge(server) as one:
        (found,) = one.scores([CONTEST[:2]])
    assert found == (Scored(grade) if grade else Unjudged("the judge's grade is 0, allowed is 1 to 10"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would rate the opening [[2]]. Final rating: [[0]]", "the judge's grade is 0, allowed is 1 to 10"),
        ("I would rate the opening 2. Final rating: 0", "the judge gave no verdict"),
        ("[[2]], out of ten [[11]]", "the judge's grade is 11, allowed is 1 to 10"),
        ("[[-3]]", "the judge's grade is -3, allowed is 1 to 10"),
    ],
)
def test_what_is_no_grade_on_our_scale_is_neither_a_0_nor_an_earlier_grade(text: str, why: str) -> None:
    with serving(lambda *_: said(text)) as server, judge(server) as one:
        (found,) = one.scores([CONTEST[:2]])
    assert isinstance(found, Unjudged) and why in found.reason


@given(question=st.text(), first=st.text(), second=st.text())
def test_what_is_put_into_the_question_is_put_in_once(question: str, first: str, second: str) -> None:
    before, rest = PAIRWISE.split("{question}")
    between, rest = rest.split("{first}")
    last, after = rest.split("{second}")
    assert asked(PAIRWISE, question, first, second) == before + question + between + first + last + second + after


def test_an_answer_that_holds_a_place_is_text() -> None:
    assert "{second}" in asked(PAIRWISE, "q", "{second}", "x")


def test_a_rate_limit_of_the_server_is_waited_for() -> None:
    def limited(path: str, body: dict[str, Any], number: int) -> Any:
        return (429, "slow down") if number == 0 else said("[[5]]")

    with serving(limited) as server, judge(server) as one:
        server.headers = {"Retry-After": "0.5"}
        assert one.scores([CONTEST[:2]]) == [Scored(5.0)]
        assert server.asked[1][2] - server.asked[0][2] >= 0.5


def test_requests_begin_no_closer_together_than_is_allowed() -> None:
    with serving(lambda *_: said("[[5]]")) as server, judge(server, per_minute=1200) as one:
        begin = time.monotonic()
        one.scores([("q", str(number)) for number in range(6)])
        times = sorted(when for *_, when in server.asked)
    assert times[-1] - begin >= 5 * 0.05


ASKS = """
import sys
from cascade_plugin_rlhf.judge import connect_judge

with connect_judge(sys.argv[1]) as judge:
    print("ready", flush=True)
    sys.stdin.readline()
    judge.scores([("q", f"{sys.argv[2]} {number}") for number in range(4)])
"""


def test_the_processes_of_a_run_keep_one_rate_together() -> None:
    with serving(lambda *_: said("[[5]]")) as server:
        options = {"url": server.address + "/v1", "model": "m", "per_minute": 600}
        resource = build(choose("judge", {"judge": {"endpoint": options}}))
        address = resource.start()
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        asking = [subprocess.Popen([sys.executable, "-c", ASKS, address, name], **pipes) for name in "abc"]
        for one in asking:
            assert one.stdout and one.stdout.readline() == "ready\n"
        begin = time.monotonic()
        for one in asking:
            one.communicate("go\n")
            assert one.returncode == 0
        resource.stop()
        last = max(when for *_, when in server.asked)
    assert len(server.asked) == 12 and last - begin >= 11 * 0.1


def test_the_file_of_the_rate_goes_with_the_resource(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    resource = JudgeEndpoint("http://127.0.0.1:1/v1", "m", per_minute=60)
    resource.start()
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600]
    resource.stop()
    resource.stop()
    assert not list(tmp_path.iterdir())
    JudgeEndpoint("http://127.0.0.1:1/v1", "m").start()
    assert not list(tmp_path.iterdir())


def test_what_was_said_is_kept_and_what_failed_is_asked_again(tmp_path: Path) -> None:
    cache, items = str(tmp_path / "judge" / "replies.sqlite"), [("q", "a\ud800"), ("q", "b")]

    def script(path: str, body: dict[str, Any], number: int) -> Any:
        return said("hm" if number == 0 else f"[[{number}]] \ud800")

    with serving(script) as server:
        with judge(server, cache=cache, concurrency=1) as one:
            assert [type(verdict) for verdict in one.scores(items)] == [Unjudged, Scored]
            assert one.scores(items) == [Scored(2.0), Scored(1.0)]
        with judge(server, cache=cache) as other:
            assert other.scores(items) == [Scored(2.0), Scored(1.0)]
        with judge(server, cache=cache, temperature=0.5) as other:
            assert other.scores(items[:1]) == [Scored(3.0)]
        assert len(server.asked) == 4


def test_a_cache_that_is_no_file_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, and long enough to be seen as none")
    with pytest.raises(UsageError, match="cannot be used"):
        Judge(Judging("http://127.0.0.1:1/v1", "m", cache=str(tmp_path / "text")))


def test_a_judge_is_named_in_a_spec_and_its_key_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "t0p-secret")
    with serving(lambda *_: said("[[5]]")) as server:
        options = {"url": server.address + "/v1", "model": "m", "key": {"env": "JUDGE_KEY"}, "per_minute": 60_000}
        provision = choose("judge", {"judge": {"endpoint": options}})
        assert "per_minute" not in provision.pinned["endpoint"]
        resource = build(provision)
        address = resource.start()
        assert "t0p" not in address and "t0p" not in str(resource.describe())
        with connect_judge(address) as one:
            assert one.scores([("q", "a")]) == [Scored(5.0)]
        resource.stop()
        with connect_judge(f"{server.address}/v1#m") as one:
            assert one.scores([("q", "a")]) == [Scored(5.0)]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/v1", "unix:/x#m", "http://u:p@host/v1#m"])
def test_an_address_that_names_no_judge_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        connect_judge(address)


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"per_minute": -1}, {"temperature": -0.1}, {"tries": 0}])
def test_an_option_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} of a judge must be at least"):
        Judging("http://127.0.0.1:1/v1", "m", **wrong)


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match="is not set"):
        Judge(Judging("http://127.0.0.1:1/v1", "m", key=Secret(env="NO_SUCH_KEY_OF_A_JUDGE")))
