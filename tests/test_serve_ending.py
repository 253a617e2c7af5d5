"""What a service that ends, and one whose disk is full, leave behind: nothing that keeps the next one from going on."""

import asyncio
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from echoed import wait_until
from serving import row, served
from test_serve_rollout import SAMPLES, SLOTS, draw, rollouts, sample, step

from cascade_core.rows import read
from cascade_core.serve.journal import Journal

WANTED = SLOTS * SAMPLES


class Ended:
    """The rollouts of a stage, and how its service is told that it ends."""

    def __init__(self, folder, **more):
        self.folder, self.more = folder, more

    def __call__(self, scorer):
        self.loop = asyncio.get_running_loop()
        self.made = rollouts(self.folder, **self.more)(scorer)
        return self.made

    def drain(self, service):
        done = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, service.service.drain()), self.loop)
        done.result()


def early(pool, service, stage, names):
    """All samples of a step but the last, on their way."""
    places = [(name, index) for name in names for index in range(SAMPLES)]
    asked = [pool.submit(sample, service, *place) for place in places[:-1]]
    wait_until(lambda: stage.made.heard == WANTED - 1)
    return asked, places[-1]


def test_the_last_sample_of_a_step_that_comes_while_the_service_ends_stops_nothing(tmp_path):
    stage = Ended(tmp_path)
    with served(rollouts=stage) as service, ThreadPoolExecutor(WANTED) as pool:
        names = draw(service, 0)
        asked, last = early(pool, service, stage, names)
        stage.drain(service)
        assert {one.result()[0] for one in asked} == {503}
        assert sample(service, *last)[0] == 503
        assert service.post("/slot", {"slot": 0, "group": "later"})[0] == 503
        assert service.get("/stage")[1]["stopped"] == ""
    with served(rollouts=rollouts(tmp_path)) as service:  # the same attempt goes on
        assert {status for status, _ in step(service, names).values()} == {200}


def test_the_patience_that_passes_while_the_service_ends_completes_no_step(tmp_path):
    stage = Ended(tmp_path, patience=0.2)
    with served(rollouts=stage) as service, ThreadPoolExecutor(WANTED) as pool:
        asked = pool.submit(sample, service, *draw(service, 0)[:1], 0)
        stage.drain(service)
        assert asked.result()[0] in (200, 503)  # 200: it had passed before
        time.sleep(0.5)
    journal = Journal(tmp_path, "a", 0)
    journal.close()
    assert journal.stopped == ""


def test_a_stage_that_stops_tells_the_samples_of_other_steps_too(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "step-00001.jsonl.part")

    stage = Ended(tmp_path)
    with served(rollouts=stage) as service, ThreadPoolExecutor(WANTED) as pool:
        asked, _ = early(pool, service, stage, draw(service, 0))
        monkeypatch.setattr("cascade_core.judge.write", full)
        assert {status for status, _ in step(service, draw(service, 1)).values()} == {409}
        assert {one.result()[0] for one in asked} == {409}


@contextmanager
def files_of_at_most(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_at_a_visit_stops_the_stage_and_counts_no_visit(tmp_path):
    with served(rollouts=rollouts(tmp_path)) as service:
        draw(service, 0)
        whole = (tmp_path / "service.jsonl").read_bytes()
        with files_of_at_most(len(whole) + 20):  # a part of the line still fits
            status, told = service.post("/slot", {"slot": 1, "group": "g"})
        assert status == 409 and told["error"].startswith("the visit of slot 1 could not be written: File too large")
        assert service.get("/stage")[1]["stopped"] == told["error"]
    kept = [line for line in read(tmp_path / "service.jsonl") if "group" in line]
    assert [(line["step"], line["slot"]) for line in kept] == [(0, slot) for slot in range(SLOTS)]


def test_a_group_that_comes_to_a_batch_while_the_service_ends_is_to_be_sent_again(tmp_path):
    stage = Ended(tmp_path)
    batch = {"id": "b", "groups": 2}
    first, second = ({"rows": [row("right")], "group": name, "batch": batch} for name in "ab")
    with served(rollouts=stage) as service, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(service.post, "/rewards", first)
        wait_until(lambda: service.service.groups.waiting == 1)
        stage.drain(service)
        assert asked.result()[0] == 503
        assert [service.post("/rewards", one)[0] for one in (first, second)] == [503, 503]


@pytest.mark.parametrize("attempt", ["a", "b"])
def test_a_journal_that_is_opened_again_goes_on_at_its_end(tmp_path, attempt):
    for name in ("a", attempt):
        journal = Journal(tmp_path, name, 0)
        journal.visit("g", 0, 0)
        journal.close()
    again = Journal(tmp_path, attempt, 0)
    again.close()
    assert again.groups == {"g": (0, 0)} and again.next_step(0) == (2 if attempt == "a" else 1)
