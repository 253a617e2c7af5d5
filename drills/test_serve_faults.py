"""The reward service under faults, with real processes: killed in mid-rollout, verifiers that hang or fail, a full disk, labels of a megabyte."""

import contextlib
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psutil
import pytest
from serving import CASCADE, EXTENSION, Program, row, served

from cascade_core.errors import UsageError
from cascade_core.judge import Judge
from cascade_core.rows import read
from cascade_core.serve.journal import Journal
from cascade_core.serve.listen import bound
from cascade_core.serve.rollout import Rollouts
from cascade_core.settings import Stage
from cascade_core.template import Prompt

KILLS = 3
SAMPLES = 240
STAGE = {
    "name": "s",
    "domains": {"faulty": 1.0},
    "steps": 3,
    "rollout": {"prompts_per_step": 3, "samples_per_prompt": 8, "max_response_tokens": 9},
}


def free_port():
    """Below those that the kernel gives to whoever connects, so that nobody gets it by chance while the service is gone."""
    for port in range(20_000 + os.getpid() % 5_000, 32_768):
        with contextlib.suppress(UsageError), bound("127.0.0.1", port):
            return port
    raise AssertionError("no port is free")


def serve(port, log):
    """`cascade serve` at an address that stays, as a launch script names it."""
    command = f"serve --domain faulty --option log={log} --port {port} --workers 2 --json"
    return Program(*CASCADE, *command.split(), PYTHONPATH=EXTENSION)


def answered(client, path, body):
    """Asks until there is an answer, as OpenRLHF and its like do."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(httpx2.HTTPError):
            found = client.post(path, json=body)
            if found.status_code == 200:
                return found.json()
            assert found.status_code == 503, found.text
        time.sleep(0.05)
    raise AssertionError("never answered")


@pytest.mark.parametrize("path", ["/get_reward", "/score"])
def test_a_service_that_is_killed_thrice_in_a_rollout_loses_no_sample(path, tmp_path):
    port, log, chance = free_port(), tmp_path / "log", random.Random(path)
    program, found = serve(port, log), {}

    def ask(number):
        text = "right" if number % 3 else "wrong"
        if path == "/score":
            told = answered(client, path, {"rows": [row(text, f"n{number}", request_id=f"r{number}")]})
            value = told["scores"][0]["value"]
        else:
            label = {"domain": "faulty", "id": f"n{number}", "prompt": "p", "answer": "right"}
            body = {"query": [f"p{text}"], "prompts": ["p"], "labels": [label], "request_id": f"r{number}"}
            (value,) = answered(client, path, body)["rewards"]
        assert number not in found
        found[number] = value

    client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    with client, ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(ask, number) for number in range(SAMPLES)]
        for kill in range(1, KILLS + 1):
            while len(found) < kill * SAMPLES // (KILLS + 2) + chance.randrange(20):
                time.sleep(0.005)
            program.process.send_signal(signal.SIGKILL)
            assert program.end() == -signal.SIGKILL
            program = serve(port, log)
        for one in asked:
            one.result()
    executed = Counter(line.split()[-1] for line in log.read_text().splitlines() if " score " in line)
    assert found == {number: float(number % 3 > 0) for number in range(SAMPLES)}
    assert set(executed) == {f"n{number}" for number in range(SAMPLES)}
    assert sum(executed.values()) <= SAMPLES + KILLS * 16  # again: only what was in flight at a kill
    assert program.served.number("cascade_verdicts_total", domain="faulty", outcome="failed") == 0
    program.process.terminate()
    assert program.end() == 0


def test_a_verifier_that_hangs_on_five_percent_delays_nobody_else():
    rows = [row("hang" if number % 20 == 7 else "right", f"n{number}") for number in range(100)]
    with served(workers=4, wall_seconds=2.0) as service:
        began, done = time.monotonic(), {}

        def ask(number):
            (score,) = service.post("/score", {"rows": [rows[number]]})[1]["scores"]
            done[number] = time.monotonic() - began
            return score

        with ThreadPoolExecutor(64) as pool:
            scores = list(pool.map(ask, range(100)))
    hung = [number for number in range(100) if number % 20 == 7]
    assert all("no verdict within 2 s" in scores[number]["error"] for number in hung)
    others = [number for number in range(100) if number not in hung]
    assert all(scores[number]["value"] == 1.0 and "error" not in scores[number] for number in others)
    # Five rows hang for two seconds, twice, on four processes: that is five seconds of all of them, and their new starts.
    assert max(done.values()) < 60


def rollouts(folder, start=0, attempt="a", answer="right", **more):
    stage = Stage.model_validate(STAGE)
    tasks = [
        {"domain": "faulty", "id": f"t{n}", "prompt": f"question {n}", "answer": answer, "mode": "", **more}
        for n in range(9)
    ]

    def made(scorer):
        shown = (lambda task: Prompt(f"<{task['prompt']}>", "", [1, 2, 3]), 60.0, lambda line: None)
        return Rollouts(stage, tasks, Judge(scorer, stage, 0, folder, 0.02), Journal(folder, attempt, start), *shown)

    return made


def step(service, number, text):
    """All samples of a step, `text` of (slot, index): statuses and answers by place."""
    for slot in range(3):
        status, told = service.post("/slot", {"slot": slot, "group": f"{number}/{slot}"})
        assert (status, told["step"]) == (200, number)
        assert "answer" not in told and "meta" not in told
    places = [(slot, index) for slot in range(3) for index in range(8)]

    def hand_in(place):
        name = {"group": f"{number}/{place[0]}", "index": place[1]}
        return service.post("/sample", {**name, "response": text(*place), "truncated": False, "tokens": 3})

    with ThreadPoolExecutor(len(places)) as pool:
        return dict(zip(places, pool.map(hand_in, places), strict=True))


def mixed(slot, index):
    return "right" if index % 2 else "wrong"


def test_a_group_without_any_verdict_is_masked_a_batch_without_one_stops_and_the_stage_can_be_resumed(tmp_path):
    with served(workers=2, rollouts=rollouts(tmp_path)) as service:
        found = step(service, 0, lambda slot, index: "task" if slot == 1 else mixed(slot, index))
        assert {told["masked"] for (slot, _), (_, told) in found.items() if slot == 1} == {"error"}
        assert {told["reward"] for (slot, _), (_, told) in found.items() if slot == 1} == {0.0}
        assert all(told["reward"] for (slot, _), (_, told) in found.items() if slot != 1)
        found = step(service, 1, lambda slot, index: "task")
        assert {status for status, _ in found.values()} == {409}
        assert "could not be judged" in service.get("/stage")[1]["stopped"]
    # The verifier was mended, and the job goes on from its checkpoint at step 1: another attempt.
    with served(workers=2, rollouts=rollouts(tmp_path, start=1, attempt="b")) as service:
        for number in (1, 2):
            assert {status for status, _ in step(service, number, mixed).values()} == {200}
        assert service.get("/stage")[1]["stopped"] == ""
    assert len(list((tmp_path / "rollouts").iterdir())) == 3


@contextlib.contextmanager
def full_disk(folder):
    """A place where hardly anything fits: a file system of 64 KiB, or, where none can be mounted, files of at most 8 KiB."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        try:
            filler = folder / "filler"
            filler.write_bytes(b"x" * 50_000)
            yield filler.unlink
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_the_stage_with_its_reason_and_leaves_no_half_step(tmp_path):
    folder, source = tmp_path / "stage", "x" * 700  # of each row, so that a step is more than what fits
    with full_disk(folder) as make_room:
        with served(workers=2, rollouts=rollouts(folder, source=source)) as service:
            found = step(service, 0, mixed)
            assert {status for status, _ in found.values()} == {409}
            told = service.get("/stage")[1]["stopped"]
            assert told.startswith("step 0 could not be written: ")
            assert "No space left on device" in told or "File too large" in told
            assert service.get("/health")[1]["status"] == "stopped"
            assert not (folder / "rollouts" / "step-00000.jsonl").exists()
        make_room()
        with served(workers=2, rollouts=rollouts(folder, attempt="b", source=source)) as service:
            assert {status for status, _ in step(service, 0, mixed).values()} == {200}
            assert len(list(read(folder / "rollouts" / "step-00000.jsonl"))) == 24


@pytest.mark.parametrize("answer", ["\ud800 lone \udfff", "x" * 2**20, ["assert f(1) == 2\n" * 60_000]])
def test_labels_with_surrogates_or_a_megabyte_of_tests_are_judged_and_never_leave_the_service(answer, tmp_path):
    with served(workers=2, rollouts=rollouts(tmp_path, answer=answer, meta={"tests": answer})) as service:
        found = step(service, 0, mixed)
        assert {status for status, _ in found.values()} == {200}
        assert max(len(json.dumps(told)) for _, told in found.values()) < 1000
        body = {"query": ["pright"], "prompts": ["p"], "labels": [{"domain": "faulty", "answer": answer}]}
        assert service.post("/get_reward", body)[1]["rewards"] == [1.0]
    (first, *_) = read(tmp_path / "rollouts" / "step-00000.jsonl")
    assert first["answer"] == answer


def test_memory_of_the_service_and_its_workers_stays_where_it_is():
    with served(workers=2) as service:
        process = psutil.Process()

        def held(first):
            for start in range(first, first + 6_000, 500):
                service.post(
                    "/score", {"rows": [row("right", f"n{n}", answer="x" * 200) for n in range(start, start + 500)]}
                )
            return [one.memory_info().rss for one in (process, *process.children())]

        rounds = [held(first) for first in range(0, 30_000, 6_000)]
        assert {len(found) for found in rounds} == {len(rounds[0])} and len(rounds[0]) >= 3
        # What is kept of every row would make each round grow; what an allocator takes once, it takes in one of them.
        for each in zip(*rounds, strict=True):
            assert min(new - old for old, new in itertools.pairwise(each)) < 6_000 * 100
