"""The reward service: every request gets one verdict, whoever asks how often; nothing that is sent ends it."""

import asyncio
import gzip
import json
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from echoed import wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_requests import PATHS, REQUESTS, check_answer
from serving import row, served

from cascade_core.rows import write
from cascade_core.serve.access import Access
from cascade_core.serve.app import Limits
from cascade_core.serve.index import Index
from cascade_core.serve.inflight import Entry, Inflight
from cascade_core.serve.kept import Kept
from cascade_core.serve.wire import Refused


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("serve") / "log"


@pytest.fixture(scope="module")
def shared(log, tmp_path_factory):
    """A service that all tests of this module ask, one after another."""
    prompts = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    tasks = [{"domain": "faulty", "id": f"known-{n}", "prompt": "p", "answer": "right"} for n in range(3)]
    write(prompts, [*tasks, *tasks])
    with served(Index([prompts]), log=log, limits=Limits(slow_seconds=0.3, body_mib=12), wall_seconds=20) as found:
        yield found


def executions(log: Path, task: str) -> int:
    return sum(line.endswith(f"score {task}") for line in log.read_text().splitlines()) if log.exists() else 0


def test_rows_get_their_scores_in_order(shared):
    status, told = shared.post("/score", {"rows": [row("right"), row("wrong"), row("shown")]})
    assert status == 200
    assert [score["value"] for score in told["scores"]] == [1.0, 0.0, 1.0]
    assert told["scores"][2] == {"value": 1.0, "reward": 2.5, "note": "good", "metrics": {"parts": 3}}


def test_what_cannot_be_judged_is_an_error_in_its_row_and_harms_no_other(shared):
    _, told = shared.post("/score", {"rows": [row("task"), row("right"), row("raise")]})
    assert [bool(score.get("error")) for score in told["scores"]] == [True, False, True]
    assert "does not parse" in told["scores"][0]["error"]


def test_a_request_that_is_sent_again_is_executed_once(shared, log):
    for _ in range(3):
        status, told = shared.post("/score", {"rows": [row("right", "again", request_id="again")]})
        assert (status, told["scores"][0]["value"]) == (200, 1.0)
    assert executions(log, "again") == 1


def test_a_request_id_over_other_content_is_refused(shared):
    shared.post("/score", {"rows": [row("right", request_id="mine")]})
    status, told = shared.post("/score", {"rows": [row("wrong", request_id="mine")]})
    assert (status, told["field"], told["found"]) == (409, "request_id", "'mine'")


def test_one_request_id_for_two_rows_of_a_request_begins_neither(shared, log):
    rows = [row("right", "two", request_id="two"), row("wrong", "two", request_id="two")]
    assert shared.post("/score", {"rows": rows})[0] == 409
    assert executions(log, "two") == 0


def test_a_kept_error_is_the_requests_answer_too(shared, log):
    first, second = (shared.post("/score", {"rows": [row("task", "kept", request_id="kept")]}) for _ in range(2))
    assert first == second
    assert executions(log, "kept") == 1


def test_requests_in_flight_are_joined_also_after_their_client_has_gone(shared, log):
    may = log.with_name("may-end")
    body = json.dumps({"rows": [row(f"until {may}", "joined", request_id="joined")]}).encode()
    head = f"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(shared.url.rpartition(":")[2]))) as channel:
        channel.sendall(head.encode() + body)
        wait_until(lambda: executions(log, "joined") == 1)
    before = shared.number("cascade_joined_total", domain="faulty")
    with ThreadPoolExecutor() as pool:
        again = pool.submit(shared.post, "/score", content=body)
        wait_until(lambda: shared.number("cascade_joined_total", domain="faulty") == before + 1)
        may.touch()
        assert again.result()[1]["scores"][0]["value"] == 1.0
    assert executions(log, "joined") == 1


def test_equal_rows_without_an_id_share_a_verdict_while_it_runs_and_not_afterwards(shared, log):
    for times in (1, 2):
        _, told = shared.post("/score", {"rows": [row("sleep 0.1", "equal")] * 3})
        assert [score["value"] for score in told["scores"]] == [1.0] * 3
        assert executions(log, "equal") == times


def test_verdicts_are_counted_once(shared):
    before = shared.number("cascade_verdicts_total", domain="faulty", outcome="scored")
    for _ in range(2):
        shared.post("/score", {"rows": [row("right", "counted", request_id="counted")]})
    assert shared.number("cascade_verdicts_total", domain="faulty", outcome="scored") == before + 1


def test_a_task_of_a_prompts_file_needs_no_answer_and_no_prompt(shared):
    status, told = shared.post("/score", {"rows": [{"domain": "faulty", "id": "known-1", "response": "right"}]})
    assert (status, told["scores"][0]["value"]) == (200, 1.0)
    status, told = shared.post("/score", {"rows": [{"domain": "faulty", "id": "unknown", "response": "right"}]})
    assert (status, told["field"]) == (422, "body.rows[0].prompt")


def test_two_tasks_of_one_name_are_refused_in_prompts_files(tmp_path):
    write(tmp_path / "p", [{"domain": "d", "id": "a", "prompt": "1"}, {"domain": "d", "id": "a", "prompt": "2"}])
    with pytest.raises(ValueError, match="task 'a' of domain 'd' stands there twice"):
        Index([tmp_path / "p"])


REFUSED = [
    (b"{", 400, "body"),
    (b"", 400, "body"),
    (b"\xff\xfe", 400, "body"),
    (b'{"rows": [NaN]}', 400, "body"),
    (b'{"rows": [-Infinity]}', 400, "body"),
    (b'{"rows": [1e999]}', 400, "body"),
    (b'{"rows": [' + b"-" + b"1" * 5000 + b"]}", 400, "body"),
    (b'{"rows": [], "rows": [{}]}', 400, "body"),
    (b'{"rows": [{"domain": "faulty", "id": "a", "response": "wrong", "response": "right"}]}', 400, "body"),
    (b"[" * 100_000, 400, "body"),
    (b'{"rows": ' + b"[" * 70 + b"]" * 70 + b"}", 400, "body"),
    (b"[]", 422, "body"),
    (b'{"row": []}', 422, "body.row"),
    (b'{"rows": []}', 422, "body.rows"),
    (b'{"rows": {}}', 422, "body.rows"),
    (b'{"rows": [7]}', 422, "body.rows[0]"),
    (b'{"rows": [{"id": "a"}]}', 422, "body.rows[0].domain"),
    (b'{"rows": [{"domain": "nope", "id": "a"}]}', 422, "body.rows[0].domain"),
    (b'{"rows": [{"domain": ["faulty"], "id": "a"}]}', 422, "body.rows[0].domain"),
    (b'{"rows": [{"domain": "faulty"}]}', 422, "body.rows[0].id"),
    (b'{"rows": [{"domain": "faulty", "id": 7}]}', 422, "body.rows[0].id"),
    (b'{"rows": [{"domain": "faulty", "id": "a"}]}', 422, "body.rows[0].response"),
    (b'{"rows": [{"domain": "faulty", "id": "a", "response": {}}]}', 422, "body.rows[0].response"),
    (b'{"rows": [{"domain": "faulty", "id": "a", "response": "r", "prompt": [{}]}]}', 422, "body.rows[0].prompt"),
    (
        b'{"rows": [{"domain": "faulty", "id": "a", "response": "r", "prompt": "p", "truncated": 1}]}',
        422,
        "body.rows[0].truncated",
    ),
    (
        b'{"rows": [{"domain": "faulty", "id": "a", "response": "r", "prompt": "p", "request_id": ""}]}',
        422,
        "body.rows[0].request_id",
    ),
]


@pytest.mark.parametrize(("body", "status", "field"), REFUSED, ids=lambda value: str(value)[:50])
def test_a_request_that_is_none_is_refused_with_the_field_what_was_found_and_what_is_allowed(
    shared, body, status, field
):
    found, told = shared.post("/score", content=body)
    assert (found, told["field"]) == (status, field)
    assert told["error"] and told["allowed"] and "found" in told
    assert len(json.dumps(told)) < 2000


def test_a_row_that_is_wrong_lets_no_other_row_of_its_request_begin(shared, log):
    status, told = shared.post("/score", {"rows": [row("right", "whole"), {"domain": "faulty"}]})
    assert (status, told["field"]) == (422, "body.rows[1].id")
    assert executions(log, "whole") == 0


@pytest.mark.parametrize("path", ["/nowhere", "/score/", "/%ED%A0%80"])
def test_an_endpoint_that_is_none_is_told_as_json(shared, path):
    status, told = shared.get(path)
    assert status in (404, 405) and "/score" in told["error"]


def test_ten_megabytes_of_response_and_one_of_label_are_judged(shared):
    big = row("right " + "x" * 10_000_000, answer="y" * 1_000_000)
    status, told = shared.post("/score", {"rows": [big]})
    assert (status, told["scores"][0]["value"]) == (200, 1.0)


def test_a_body_that_is_too_long_is_refused_whether_its_length_is_told_or_not(shared):
    body = b" " * (12 * 2**20 + 1)
    assert shared.post("/score", content=body)[0] == 413
    chunked = shared.client.post("/score", content=iter([body]))
    assert chunked.status_code == 413 and chunked.json()["field"] == "body"
    assert shared.post("/score", {"rows": [row("right")]})[0] == 200


def test_a_body_that_is_compressed_is_refused_as_such(shared):
    told = shared.client.post("/score", content=gzip.compress(b"{}"), headers={"content-encoding": "gzip"})
    assert (told.status_code, told.json()["field"], told.json()["found"]) == (415, "content-encoding", "'gzip'")
    plain = shared.client.post("/score", json={"rows": [row("right")]}, headers={"content-encoding": "identity"})
    assert plain.status_code == 200


@pytest.mark.parametrize("text", ["right \ud800", "right \udfff\ud800", "right \x00\u2028"])
def test_text_that_is_no_character_is_judged(shared, text):
    status, told = shared.post("/score", {"rows": [row(text, prompt="\udc80", answer="\ud800")]})
    assert (status, told["scores"][0]["value"]) == (200, 1.0)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATHS, REQUESTS)
def test_no_request_is_an_internal_error(shared, path, data):
    check_answer(*shared.post(path, data))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATHS, st.binary(max_size=60))
def test_no_bytes_are_an_internal_error(shared, path, body):
    status, told = shared.post(path, content=body)
    assert status in (200, 400, 404, 422) and isinstance(told, dict)


def test_what_is_no_http_closes_its_connection_and_nothing_else(shared):
    with socket.create_connection(("127.0.0.1", int(shared.url.rpartition(":")[2]))) as channel:
        channel.sendall(b"\x16\x03\x01 no http\r\n\r\n")
        channel.settimeout(10)
        assert b"400" in channel.recv(4096)
    assert shared.get("/health")[1]["status"] == "ok"


def test_a_web_page_and_a_strange_host_name_are_refused(shared):
    good = {"rows": [row("right")]}
    assert shared.post("/score", good, Origin="https://evil.example")[0] == 403
    assert shared.post("/score", good, Host="evil.example")[0] == 403
    assert shared.post("/score", good, Host="localhost:5000")[0] == 200


def test_a_domain_and_task_that_hang_are_named(shared, tmp_path):
    may = tmp_path / "may-end"
    asked = threading.Thread(target=shared.post, args=("/score", {"rows": [row(f"until {may}", "the-slow-one")]}))
    asked.start()
    wait_until(lambda: any("the-slow-one" in line for line in shared.said))
    slow = shared.get("/slow")[1]["slow"]
    assert [(one["domain"], one["task"]) for one in slow] == [("faulty", "the-slow-one")]
    assert shared.get("/health")[1]["slow"] == 1
    may.touch()
    asked.join()
    assert "domain 'faulty', task 'the-slow-one': no verdict after" in "\n".join(shared.said)


def test_what_only_stands_in_line_does_not_hang():
    async def main():
        now = [0.0]
        inflight = Inflight(Kept(9, 9.0, 9), lambda: now[0])
        entries = []
        for number in range(20):
            now[0] += 1.0
            future = asyncio.get_running_loop().create_future()
            entries.append(Entry(("row", bytes([number])), "d", str(number), b"", Future(), future, now[0]))
            inflight.begin(entries[-1])
        hanging = []
        for entry in [*entries[:5], *entries[6:]]:  # one of them is not answered
            now[0] += 10.0
            hanging.append([one.task for one in inflight.running() if inflight.hangs(one, 60.0)])
            entry.future.set_result(None)
            await asyncio.sleep(0)
        return hanging

    hanging = asyncio.run(main())
    assert hanging[:5] == [[]] * 5
    assert all(found == ["5"] for found in hanging[-5:])


def test_domains_are_told(shared):
    told = shared.get("/domains")[1]["domains"]
    assert set(told) == {"faulty", "grouped", "batchwise"}
    assert (told["faulty"]["tasks"], told["batchwise"]["needs_batch"]) == (3, True)


def test_many_who_wait_need_no_thread_each(shared):
    bodies = [json.dumps({"rows": [row("sleep 0.01", f"crowd-{n}")]}).encode() for n in range(150)]

    async def ask_all():
        limits = httpx2.Limits(max_connections=150)
        async with httpx2.AsyncClient(base_url=shared.url, timeout=60, limits=limits) as client:
            waiting = asyncio.gather(*(client.post("/score", content=body) for body in bodies))
            await asyncio.sleep(0.3)
            threads = threading.active_count()
            return threads, await waiting

    before = threading.active_count()
    during, answers = asyncio.run(ask_all())
    assert during <= before + 3
    assert [one.json()["scores"][0]["value"] for one in answers] == [1.0] * 150


def test_more_than_may_wait_is_refused_and_told_when_to_come_again(log, tmp_path):
    rows = [row(f"until {tmp_path / 'may-end'}", str(n)) for n in range(4)]
    with served(limits=Limits(most_rows=4), log=log) as small:
        asked = threading.Thread(target=small.post, args=("/score", {"rows": rows}))
        asked.start()
        wait_until(lambda: small.get("/health")[1]["waiting"] == 4)
        found = small.client.post("/score", json={"rows": [row("right", "late")]})
        assert (found.status_code, found.headers["retry-after"]) == (503, "1")
        (tmp_path / "may-end").touch()
        asked.join()
        assert small.post("/score", {"rows": [row("right", "late")]})[0] == 200
        assert executions(log, "late") == 1
        assert small.number("cascade_refused_total", what="rows") == 1


def test_kept_answers_are_bounded_by_number_and_age(log):
    now = [0.0]
    with served(limits=Limits(kept=2, kept_seconds=5.0), log=log) as small:
        small.service.kept.clock = lambda: now[0]
        for n in range(5):
            small.post("/score", {"rows": [row("right", f"bounded-{n}", request_id=str(n))]})
        assert small.number("cascade_kept") == 2
        for passed, times in ((4.0, 1), (6.0, 2)):
            now[0] = passed
            small.post("/score", {"rows": [row("right", "bounded-4", request_id="4")]})
            assert executions(log, "bounded-4") == times
        assert small.number("cascade_kept") == 1


def test_a_token_is_wanted_where_there_is_one():
    with served(token="t0ken") as guarded:
        good = {"rows": [row("right")]}
        assert guarded.get("/health")[0] == 200
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Basic !"},
        ):
            assert guarded.post("/score", good, **headers)[0] == 401
        assert guarded.get("/metrics")[0] == 401
        assert guarded.post("/score", good, Authorization="Bearer t0ken")[0] == 200
        with_url = guarded.url.replace("http://", "http://any:t0ken@")
        assert httpx2.post(f"{with_url}/score", json=good).status_code == 200


@pytest.mark.parametrize("text", ["pässword", "à", "п"])
def test_a_token_that_is_not_ascii_is_known_by_its_bytes(text):
    sent = text.encode().decode("latin-1")  # as a server reads a header
    Access(text).check("/score", {"authorization": f"Bearer {sent} "})
    with pytest.raises(Refused):
        Access(text).check("/score", {"authorization": f"Bearer {sent}x"})


def test_a_scorer_that_was_closed_is_no_verdict(log):
    with served(log=log) as ending:
        asked: list = []
        thread = threading.Thread(
            target=lambda: asked.append(ending.post("/score", {"rows": [row("hang", request_id="h")]}))
        )
        thread.start()
        wait_until(lambda: ending.get("/health")[1]["waiting"] == 1)
        ending.service.scorer.close()
        thread.join()
        assert asked[0][0] == 503
        assert ending.post("/score", {"rows": [row("right")]})[0] == 503
        assert ending.number("cascade_kept") == 0
