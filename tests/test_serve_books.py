"""Rows that come in groups and from engines are in the same books as all others: bounded, counted, named when they hang, judged once."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from echoed import wait_until
from serving import row, served
from test_serve_rollout import SAMPLES, SLOTS, draw, rollouts, sample, step

from cascade_core.serve.app import Limits
from cascade_core.serve.kept import Kept


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def executions(log, task):
    return sum(line.endswith(f"score {task}") for line in log.read_text().splitlines()) if log.exists() else 0


def group(*responses, name="t", **more):
    return {"rows": [row(text, name) for text in responses], **more}


def until_taken(service, path, body):
    """Sent until there is room for it, as clients do."""
    while (found := service.post(path, body))[0] == 503:
        time.sleep(0.02)
    return found


def test_groups_beyond_what_may_wait_are_refused_and_told_when_to_come_again(log, tmp_path):
    waiting = [f"until {tmp_path}/may-end-{n}" for n in range(4)]
    with served(limits=Limits(most_rows=4), log=log) as service, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(service.post, "/rewards", group(*waiting))
        wait_until(lambda: service.get("/health")[1]["waiting"] == 4)
        late = service.client.post("/rewards", json=group("right", name="late"))
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        for number in range(4):
            (tmp_path / f"may-end-{number}").touch()
        assert asked.result()[0] == 200
        assert executions(log, "late") == 0
        assert service.post("/rewards", group("right", name="late"))[0] == 200
        wait_until(lambda: service.number("cascade_verdicts_total", domain="faulty", outcome="scored") == 5)
        assert service.number("cascade_refused_total", what="rows") == 1


def test_a_stages_samples_beyond_what_may_wait_come_again_and_the_step_is_done(log, tmp_path):
    may = tmp_path / "may-end"
    bodies = [
        {
            "group": f"0/{slot}",
            "index": index,
            "response": f"until {may}-{slot}{index}",
            "truncated": False,
            "tokens": 1,
        }
        for slot in range(SLOTS)
        for index in range(SAMPLES)
    ]
    with served(limits=Limits(most_rows=2), log=log, rollouts=rollouts(tmp_path)) as service:
        draw(service, 0)
        with ThreadPoolExecutor(len(bodies)) as pool:
            asked = [pool.submit(until_taken, service, "/sample", body) for body in bodies]
            wait_until(lambda: service.number("cascade_refused_total", what="rows") > 0)
            assert service.get("/health")[1]["waiting"] == 2
            for body in bodies:
                Path(body["response"].removeprefix("until ")).touch()
            assert [one.result()[0] for one in asked] == [200] * len(bodies)
        wait_until(lambda: service.number("cascade_verdicts_total", domain="faulty", outcome="scored") == len(bodies))


def test_who_waits_at_a_barrier_with_a_verdict_keeps_nobody_away(log):
    batch = {"id": "b", "groups": 8}
    bodies = [group("right", "wrong", name=f"t{n}", group=str(n), batch=batch) for n in range(8)]
    with served(limits=Limits(most_rows=2), log=log) as service, ThreadPoolExecutor(8) as pool:
        asked = []
        for number, body in enumerate(bodies):
            assert service.get("/health")[1]["waiting"] == 0 and service.service.groups.waiting == number
            asked.append(pool.submit(service.post, "/rewards", body))
            last = number == len(bodies) - 1
            done = 2 * (number + 1)
            wait_until(
                lambda done=done: service.number("cascade_verdicts_total", domain="faulty", outcome="scored") == done
            )
            wait_until(lambda last=last, number=number: last or service.service.groups.waiting == number + 1)
        assert [one.result()[0] for one in asked] == [200] * 8


def test_a_request_of_more_rows_than_may_wait_is_begun_when_nothing_waits():
    with served(limits=Limits(most_rows=2)) as service:
        assert service.post("/score", {"rows": [row("right", str(n)) for n in range(5)]})[0] == 200


def test_the_task_of_a_stages_sample_that_hangs_is_named(tmp_path):
    may = tmp_path / "may-end"
    with (
        served(limits=Limits(slow_seconds=0.3), rollouts=rollouts(tmp_path)) as service,
        ThreadPoolExecutor(2) as pool,
    ):
        names = draw(service, 0)
        asked = pool.submit(sample, service, names[1], 0, f"until {may}")
        wait_until(lambda: any("domain 'faulty', task 't1': no verdict after" in line for line in service.said))
        slow = service.get("/slow")[1]["slow"]
        assert [(one["domain"], one["task"]) for one in slow] == [("faulty", "t1")]
        assert (service.get("/health")[1]["waiting"], service.number("cascade_slow_total", domain="faulty")) == (1, 1)
        may.touch()
        other = pool.submit(sample, service, names[1], 1)
        step(service, [names[0], names[2]])
        assert other.result()[0] == asked.result()[0] == 200


def test_equal_samples_of_a_step_are_one_verdict_also_when_it_is_there(log, tmp_path):
    with served(log=log, rollouts=rollouts(tmp_path)) as service, ThreadPoolExecutor(2) as pool:
        names = draw(service, 0)
        first = pool.submit(sample, service, names[0], 0, "same")
        wait_until(lambda: service.number("cascade_verdicts_total", domain="faulty", outcome="scored") == 1)
        second = pool.submit(sample, service, names[0], 1, "same")
        step(service, names[1:])
        assert first.result()[0] == second.result()[0] == 200
        assert executions(log, "t0") == 1


@pytest.mark.parametrize("batch", [None, {"id": "b", "groups": 1}], ids=["alone", "batch"])
def test_a_row_of_a_group_that_is_sent_again_is_executed_once(log, batch):
    body = group("right", "wrong", name="again", batch=batch)
    for number, one in enumerate(body["rows"]):
        one["request_id"] = f"r{number}"
    with served(log=log) as service:
        first, second = (service.post("/rewards", body) for _ in range(2))
        assert first == second and first[0] == 200
        assert service.post("/score", {"rows": body["rows"]})[1]["scores"][0]["value"] == 1.0
        other = {"rows": [{**body["rows"][0], "response": "other"}]}
        assert service.post("/rewards", other)[1]["field"] == "request_id"
    assert executions(log, "again") == 2


def test_a_batch_that_was_given_up_and_is_sent_again_costs_no_second_verdict(log):
    bodies = [group("right", name=name, group=name, batch={"id": "b", "groups": 2}) for name in ("x", "y")]
    for body in bodies:
        body["rows"][0]["request_id"] = body["group"]
    with served(limits=Limits(batch_seconds=0.3), log=log) as service, ThreadPoolExecutor(2) as pool:
        assert service.post("/rewards", bodies[0])[0] == 504
        service.service.groups._seconds = 60.0
        assert [found[0] for found in pool.map(lambda body: service.post("/rewards", body), bodies)] == [200, 200]
    assert (executions(log, "x"), executions(log, "y")) == (1, 1)


def test_a_finished_batch_is_forgotten_with_its_age_and_its_name_is_free():
    batch = {"id": "step-7", "groups": 1}
    with served(limits=Limits(kept_seconds=0.0)) as service:
        for responses, rewards in ((("right", "wrong"), [1.0, 0.0]), (("wrong", "right", "right"), [0.0, 1.0, 1.0])):
            status, told = service.post("/rewards", group(*responses, batch=batch))
            assert (status, [one["reward"] for one in told["rows"]]) == (200, rewards)


def test_a_batch_whose_rewards_failed_is_judged_anew_when_it_is_sent_again(monkeypatch):
    def broken(*_):
        raise RuntimeError("not today")

    body = group("right", batch={"id": "b", "groups": 1})
    with served() as service:
        with monkeypatch.context() as patch:
            patch.setattr("cascade_core.judge.Judge.judge", broken)
            assert service.post("/rewards", body)[0] == 500
        assert service.post("/rewards", body)[0] == 200


def test_answers_are_kept_up_to_a_number_an_age_and_a_size():
    now = [0.0]
    kept = Kept(4, 10.0, 100, lambda: now[0])
    for key in "abcde":
        kept.put(key, key.upper(), 10)
    assert [kept.get(key) for key in "abcde"] == [None, "B", "C", "D", "E"]
    kept.put("three", "T", 10, count=3)
    assert (len(kept), kept.get("d"), kept.get("e")) == (4, None, "E")
    kept.put("large", "L", 95)
    assert (len(kept), kept.get("e"), kept.get("three"), kept.get("large")) == (1, None, None, "L")
    kept.put("huge", "H", 101)
    assert len(kept) == 0
    kept.put("old", "O", 100)
    now[0] = 10.0
    assert kept.get("old") == "O"
    now[0] = 10.1
    assert kept.get("old") is None


def test_a_sample_that_waits_for_its_step_holds_none_of_the_bytes_that_requests_may_hold(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service, ThreadPoolExecutor(2) as pool:
        names = draw(service, 0)
        first = pool.submit(sample, service, names[0], 0, "x" * 1_000_000)
        wait_until(lambda: service.get("/stage")[1]["waiting"]["0"]["samples"] == 1)
        assert service.number("cascade_held_bytes") == 0
        second = pool.submit(sample, service, names[0], 1)
        step(service, names[1:])
        assert first.result()[0] == second.result()[0] == 200


def test_what_is_told_of_a_sample_that_its_engine_gave_up_says_so(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service:
        names = draw(service, 0)
        gone = threading.Thread(
            target=service.post, args=("/sample", {"group": names[0], "index": 0, "gave_up": "no room"})
        )
        gone.start()
        wait_until(lambda: service.get("/stage")[1]["waiting"]["0"]["samples"] == 1)
        step(service, names)
        gone.join()
        assert sample(service, names[0], 0)[1]["error"] == "its engine gave it up: no room"
        assert "no room" in json.dumps(service.post("/sample", {"group": names[0], "index": 0, "gave_up": "x"})[1])
