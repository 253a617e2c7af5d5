"""Real processes and a verifier that goes wrong on request: what is a verdict, what is an error, and who is delayed."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from faulty import EXTENSION, faulty_scorer, ref

from cascade_core.domain import BatchStats, DomainRef
from cascade_core.errors import ScoringError
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring


@pytest.fixture(scope="module")
def scorer():
    with faulty_scorer() as shared:
        yield shared


def row(response, task="t", domain="faulty", **more):
    return {"domain": domain, "id": task, "prompt": "p", "response": response, **more}


def rows(*responses):
    return [row(response, f"t{i}") for i, response in enumerate(responses)]


def events(log, word):
    lines = [line.split(" ", 1) for line in Path(log).read_text().splitlines()]
    return [(int(pid), event) for pid, event in lines if event.startswith(word)]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it was waited for meanwhile
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_verdicts_come_back_in_order(scorer):
    responses = ["right" if i % 3 else "wrong" for i in range(300)]
    found = scorer.score([row(r, str(i)) for i, r in enumerate(responses)])
    assert [score.value for score in found] == [float(bool(i % 3)) for i in range(300)]


def test_a_slow_verdict_keeps_its_place(scorer):
    found = scorer.score(rows("sleep 0.3", "wrong", "right", "wrong"))
    assert [score.value for score in found] == [1.0, 0.0, 1.0, 0.0]


def test_all_of_a_score_survives_the_way_back(scorer):
    (score,) = scorer.score([row("shown")])
    assert (score.value, score.reward, score.note, dict(score.metrics)) == (1.0, 2.5, "good", {"parts": 3})


def test_nothing_to_score_is_nothing(scorer):
    assert scorer.score([]) == []


@pytest.mark.parametrize(
    ("action", "cause"),
    [
        ("abort", "worker lost (killed by SIGABRT), twice"),
        ("bool", "Faulty.score must return a Score, found True"),
        ("close", "worker lost"),
        ("exit", "worker lost (ended with status 0), twice"),
        ("float", "Faulty.score must return a Score, found 1.0"),
        ("interrupt", "KeyboardInterrupt"),
        ("nan", "Score.value must be a finite number, found nan"),
        ("none", "Faulty.score must return a Score, found None"),
        ("note", "Score.note and Score.error must be text"),
        ("raise", "ValueError: no verdict (domains.py:"),
        ("recursion", "RecursionError"),
        ("segfault", "worker lost (killed by SIGSEGV), twice"),
        ("sigkill", "worker lost (killed by SIGKILL), twice"),
        ("systemexit", "SystemExit: 0"),
        ("task", "label '?' does not parse"),
        ("unprintable", "_Unprintable: its message cannot be shown"),
    ],
)
def test_what_goes_wrong_in_a_verifier_is_an_error_and_touches_no_other_sample(scorer, action, cause):
    found = scorer.score(rows("right", action, "wrong", "right"))
    assert cause in found[1].error
    assert "\n" not in found[1].error
    assert [score.is_judged for score in found] == [True, False, True, True]
    assert [score.value for score in found] == [1.0, 0.0, 0.0, 1.0]


def test_a_sample_that_fails_once_is_judged_at_the_second_try(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log) as scorer:
        found = scorer.score(rows("once raise", "once exit", "once sigkill", "once systemexit"))
    assert [score.value for score in found] == [1.0] * 4
    assert len(events(log, "score")) == 8


@pytest.mark.parametrize("action", ["raise", "sigkill"])
def test_the_second_try_is_on_a_process_that_has_judged_nothing_yet(tmp_path, action):
    log = tmp_path / "log"
    with faulty_scorer(log=log) as scorer:
        scorer.score([*rows("right", "right", "wrong", "right"), row(action, "bad"), *rows("wrong")])
    lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
    _, second = (i for i, (_, event) in enumerate(lines) if event == "score bad")
    assert [event for pid, event in lines[:second] if pid == lines[second][0]] == ["open "]


def test_a_broken_task_is_not_tried_again(tmp_path):
    with faulty_scorer(log=tmp_path / "log") as scorer:
        scorer.score([row("task")])
    assert len(events(tmp_path / "log", "score")) == 1


def test_a_verifier_that_always_fails_is_not_retried_for_ever(tmp_path):
    with faulty_scorer(log=tmp_path / "log") as scorer:
        found = scorer.score([row("raise", str(i)) for i in range(60)])
        assert all("no verdict" in score.error for score in found)
        assert 20 * 2 + 40 <= len(events(tmp_path / "log", "score")) <= 22 * 2 + 38
        assert scorer.score([row("right")])[0].value == 1.0


@pytest.mark.parametrize("action", ["spin", "deaf", "power"])
def test_cpu_time_used_up_by_a_response_is_a_verdict(action):
    with faulty_scorer(cpu_seconds=0.5, wall_seconds=60.0) as scorer:
        found = scorer.score(rows("right", action, "right"))
    assert found[1].is_judged
    assert found[1].is_limit
    assert (found[1].value, found[1].note) == (0.0, "limit: 0.5 s of CPU time")
    assert [found[0].value, found[2].value] == [1.0, 1.0]


def test_a_verdict_that_comes_past_the_limit_is_a_limit_too():
    with faulty_scorer(cpu_seconds=0.1) as scorer:
        assert scorer.score([row("burn 0.3")])[0].note == "limit: 0.1 s of CPU time"


def test_the_cpu_limit_is_per_verdict_not_per_process():
    with faulty_scorer(cpu_seconds=1.0, workers=1) as scorer:
        found = scorer.score([row("burn 0.3", str(i)) for i in range(5)])
    assert [score.value for score in found] == [1.0] * 5


def test_memory_used_up_by_a_response_is_a_verdict():
    with faulty_scorer(memory_mib=128) as scorer:
        found = scorer.score(rows("right", "memory", "right"))
    assert (found[1].value, found[1].note, found[1].error) == (0.0, "limit: 128 MiB of memory", "")
    assert [found[0].value, found[2].value] == [1.0, 1.0]


@pytest.mark.parametrize("action", ["hang", "stop"])
def test_a_hang_without_cpu_time_is_an_error_after_a_second_try(tmp_path, action):
    with faulty_scorer(log=tmp_path / "log", wall_seconds=1.5) as scorer:
        (score,) = scorer.score([row(action)])
    assert score.error == "no verdict within 1.5 s, twice"
    assert len(events(tmp_path / "log", "score")) == 2


def test_a_hanging_sample_delays_no_other():
    with faulty_scorer(wall_seconds=30.0) as scorer:
        futures = [scorer.submit(row("hang"))] + [scorer.submit(row("right", str(i))) for i in range(50)]
        assert [future.result(timeout=20).value for future in futures[1:]] == [1.0] * 50
        assert not futures[0].done()


def quick(count, prefix="q"):
    return [row("right", f"{prefix}{i}") for i in range(count)]


def test_samples_given_ahead_to_a_process_that_hangs_are_judged_by_others():
    with faulty_scorer(wall_seconds=60.0) as scorer:
        scorer.score(quick(300, "warm"))  # verdicts come quickly, so that processes are given samples ahead
        hanging = scorer.submit(row("hang"))
        futures = [scorer.submit(one) for one in quick(300)]
        assert [future.result(timeout=20).value for future in futures] == [1.0] * 300
        assert not hanging.done()


@pytest.mark.parametrize("action", ["sigkill", "exit", "memory", "raise"])
def test_samples_given_ahead_to_a_process_that_dies_are_judged_by_others(action):
    rows = quick(300)
    rows[150:150] = [row(action, "bad")]
    with faulty_scorer(memory_mib=64) as scorer:
        scorer.score(quick(300, "warm"))
        found = scorer.score(rows)
    assert [score.value for score in found] == [1.0] * 150 + [0.0] + [1.0] * 150
    assert [i for i, score in enumerate(found) if score.error or score.note] == [150]


OUTCOMES = {
    "right": "1.0",
    "wrong": "0.0",
    "sleep 0.02": "1.0",
    "burn 0.02": "1.0",
    "shown": "1.0",
    "noise": "1.0",
    "thread": "1.0",
    "burn 0.9": "limit",
    "memory": "limit",
    "spin": "limit",
    "raise": "error",
    "task": "error",
    "systemexit": "error",
    "sigkill": "error",
    "exit": "error",
    "none": "error",
}


@pytest.mark.parametrize("seed", [1, 2])
def test_no_mixture_of_faults_gives_a_sample_the_verdict_of_another(seed):
    chance = random.Random(seed)
    weights = [40, 40, 10, 10, 10, 2, 2, *[1] * 9]
    responses = chance.choices(list(OUTCOMES), weights, k=200)
    with faulty_scorer(cpu_seconds=0.6, wall_seconds=60.0, memory_mib=64) as scorer:
        found = scorer.score([row(response, str(i)) for i, response in enumerate(responses)])
    told = ["error" if s.error else "limit" if s.is_limit else str(s.value) for s in found]
    assert told == [OUTCOMES[response] for response in responses]


def test_more_hung_samples_than_processes_do_not_use_up_the_pool():
    with faulty_scorer(wall_seconds=1.0) as scorer:
        assert not any(score.is_judged for score in scorer.score([row("hang", str(i)) for i in range(3)]))
        assert scorer.score([row("right")])[0].value == 1.0


def test_the_clock_starts_with_the_execution_not_in_the_queue():
    with faulty_scorer(wall_seconds=1.0, workers=1) as scorer:
        found = scorer.score([row("sleep 0.3", str(i)) for i in range(6)])
    assert [score.value for score in found] == [1.0] * 6


def test_noise_on_standard_output_is_no_verdict_and_reaches_nobody(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from cascade_core.domain import DomainRef
            from cascade_core.scoring import Scorer
            from cascade_core.settings import Scoring
            row = {"domain": "f", "id": "t", "prompt": "p", "response": "noise"}
            with Scorer({"f": DomainRef("faulty")}, Scoring(workers=1)) as scorer:
                for i in range(5):
                    assert scorer.score([{**row, "id": str(i)}])[0].value == 1.0
            """
        )
    )
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": str(EXTENSION)}, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_last_words_of_a_lost_process_are_quoted(tmp_path):
    with faulty_scorer() as scorer:
        (score,) = scorer.score([row("speak")])
    assert score.error.startswith("worker lost (killed by SIGABRT), its last words: GNU MP: Cannot allocate memory")


def test_what_a_verifier_started_dies_with_it():
    marker = b"cascade-orphan"

    def orphans():
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if marker in entry.read_bytes():
                    found.append(entry)
            except OSError:
                continue
        return found

    with faulty_scorer() as scorer:
        assert "status 3" in scorer.score([row("orphan")])[0].error
        wait_until(lambda: not orphans())


def test_a_thread_that_a_verifier_leaves_behind_is_harmless():
    with faulty_scorer(workers=1) as scorer:
        assert [score.value for score in scorer.score(rows("thread", "right", "thread"))] == [1.0] * 3


def test_a_process_that_is_killed_while_idle_is_replaced(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log, workers=1) as scorer:
        scorer.score([row("right")])
        ((first, _),) = events(log, "open")
        os.kill(first, signal.SIGKILL)
        assert scorer.score([row("wrong")])[0].is_judged
        assert len(events(log, "open")) == 2


def test_processes_killed_from_outside_cost_no_verdict(tmp_path):
    log, killed = tmp_path / "log", set()

    def victims():
        """Processes that are past their first sample, which a second try would be."""
        judged = Counter(pid for pid, _ in events(log, "score")) if log.exists() else {}
        return [pid for pid, count in judged.items() if count > 1 and pid not in killed and alive(pid)]

    with faulty_scorer(log=log) as scorer:
        futures = [scorer.submit(row("sleep 0.005", str(i))) for i in range(400)]
        for _ in range(6):
            wait_until(victims)
            pid = victims()[0]
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError):  # it was sent home meanwhile, to make room for a fresh one
                os.kill(pid, signal.SIGKILL)
        assert not all(future.done() for future in futures)
        assert [future.result(timeout=60).value for future in futures] == [1.0] * 400


def test_identical_samples_of_one_call_are_judged_once(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log) as scorer:
        found = scorer.score([row("right", sample=i, group="g") for i in range(50)])
        assert [score.value for score in found] == [1.0] * 50
        assert len(events(log, "score")) == 1
        scorer.score([row("right")])
        assert len(events(log, "score")) == 2


@pytest.mark.parametrize(
    "other", [{"answer": "3"}, {"prompt": "q"}, {"prefill": "<think>"}, {"truncated": True}, {"mode": "think"}]
)
def test_samples_that_differ_in_what_a_verdict_may_see_are_judged_apart(tmp_path, other):
    with faulty_scorer(log=tmp_path / "log") as scorer:
        scorer.score([row("right"), row("right", **other)])
    assert len(events(tmp_path / "log", "score")) == 2


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        ({"domain": "absent"}, "no domain 'absent' is scored here (allowed: batchwise, faulty, grouped)"),
        ({"domain": None}, "no domain None"),
        ({"domain": ["faulty"]}, "no domain ['faulty']"),
        ({"response": None}, "needs a string 'response', found None"),
        ({"response": 5}, "needs a string 'response', found 5"),
        ({"prompt": None}, "needs a string 'id' and a 'prompt'"),
        ({"id": 7}, "needs a string 'id' and a 'prompt'"),
        ({"answer": {1, 2}}, "row 't' is not JSON"),
        ({"answer": b"2"}, "row 't' is not JSON"),
    ],
)
def test_a_row_that_cannot_be_judged_is_an_error_of_its_own(scorer, broken, cause):
    found = scorer.score([row("right"), {**row("right"), **broken}, row("wrong")])
    assert cause in found[1].error
    assert [found[0].value, found[2].value] == [1.0, 0.0]


def test_an_answer_nested_beyond_reason_is_an_error_of_its_own(scorer):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert "not JSON" in scorer.score([row("right", answer=deep)])[0].error


def test_a_row_without_response_is_an_error(scorer):
    assert "response" in scorer.score([{"domain": "faulty", "id": "t", "prompt": "p"}])[0].error


@pytest.mark.parametrize("text", ["\x00", "\ud800", "\u2028\r\n", "𝔘", "x" * 5_000_000])
def test_any_text_reaches_the_verifier(scorer, text):
    found = scorer.score([row("right " + text), row("wrong " + text)])
    assert [score.value for score in found] == [1.0, 0.0]


def test_a_domain_is_opened_and_closed_once_per_process_with_its_resources(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log, resources={"sandbox": "http://127.0.0.1:1"}) as scorer:
        for i in range(5):
            scorer.score([row("right", f"{i}-{j}") for j in range(8)])
    opened, closed = events(log, "open"), events(log, "close")
    assert [event for _, event in opened] == ["open sandbox"] * len(opened)
    assert 1 <= len(opened) <= 2
    assert sorted(pid for pid, _ in opened) == sorted(pid for pid, _ in closed)


def test_one_process_can_host_several_domains(tmp_path):
    with faulty_scorer(log=tmp_path / "log", workers=1) as scorer:
        found = scorer.score([row("right", domain=name) for name in ("faulty", "grouped", "batchwise")])
    assert [score.value for score in found] == [1.0] * 3
    assert len({pid for pid, _ in events(tmp_path / "log", "open")}) == 1


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (DomainRef("shut", {"how": "raise"}), "domain 'shut' cannot be opened: ValueError: no verdict"),
        (DomainRef("shut", {"how": "systemexit"}), "domain 'shut' cannot be opened: SystemExit"),
        (DomainRef("shut", {"how": "sigkill"}), "domain 'shut' cannot be opened: worker lost (killed by SIGKILL)"),
        (DomainRef("stillborn"), "needs a file that is not there"),
        (DomainRef("faulty", {"lgo": ""}), "option 'lgo', did you mean 'log'"),
        (DomainRef("missing"), "no domain is called 'missing'"),
        (DomainRef("faulty", {}, "cascade-plugin-faulty", "9.9"), "install the same version"),
    ],
)
def test_a_domain_that_cannot_be_opened_fails_its_samples_quickly_and_no_others(bad, cause):
    with faulty_scorer(domains={"bad": bad}) as scorer:
        start = time.monotonic()
        found = scorer.score([row("right", str(i), "bad") for i in range(200)] + rows("right"))
        assert time.monotonic() - start < 20
    assert all(cause in score.error for score in found[:-1])
    assert found[-1].value == 1.0


def test_rewards_of_a_group_are_computed_where_the_domain_is(scorer):
    group = [{**row("right", domain="grouped"), "score": {"value": value}} for value in (1.0, 0.0, 1.0)]
    assert scorer.rewards("grouped", group, BatchStats(3, 0, 2 / 3, 1)) == [3.0, 0.0, 3.0]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("short", "gave 1 rewards for 2 responses"),
        ("nan", "must return finite numbers, found nan"),
        ("scalar", "must return a list, found 1.0"),
        ("raise", "ValueError: no verdict"),
        ("exit", "worker lost"),
        ("spin", "limit: 0.5 s of CPU time"),
        ("memory", "limit: 256 MiB of memory"),
        ("hang", "no verdict within 1 s, twice"),
    ],
)
def test_rewards_that_go_wrong_are_an_error_naming_the_cause(fault, cause):
    group = [{**row("right", domain="grouped"), "score": {"value": value}} for value in (1.0, 0.0)]
    limits = {"cpu_seconds": 0.5 if fault == "spin" else 30.0, "wall_seconds": 1.0 if fault == "hang" else 60.0}
    with (
        faulty_scorer(domains={"grouped": ref("grouped", fault=fault)}, **limits) as scorer,
        pytest.raises(ScoringError) as found,
    ):
        scorer.rewards("grouped", group, BatchStats(2, 0, 0.5, 1))
    assert cause in str(found.value)
    assert str(found.value).startswith("grouped: rewards of a group: ")


def test_rewards_of_an_unknown_domain_are_an_error(scorer):
    with pytest.raises(ScoringError, match="no domain 'absent'"):
        scorer.rewards("absent", [], BatchStats(0, 0, 0, 0))


def test_the_default_rewards_are_known_to_need_no_process(scorer):
    scorer.score([row("right"), row("right", domain="grouped")])
    assert not scorer.overrides_rewards("faulty")
    assert scorer.overrides_rewards("grouped")


def test_a_stream_gives_rows_with_scores_in_order_and_reads_little_ahead(scorer):
    read = 0

    def source():
        nonlocal read
        for i in range(2000):
            read = i
            yield row("right" if i % 2 else "wrong", str(i))

    for i, (given, score) in enumerate(scorer.stream(source())):
        assert (given["id"], score.value) == (str(i), float(i % 2))
        assert read - i < 64
    assert i == 1999


def test_a_stream_judges_repeats_next_to_each_other_once(tmp_path):
    with faulty_scorer(log=tmp_path / "log") as scorer:
        found = list(scorer.stream(row("right", str(i // 10)) for i in range(100)))
    assert [score.value for _, score in found] == [1.0] * 100
    assert len(events(tmp_path / "log", "score")) == 10


def test_a_stream_whose_source_fails_gives_what_came_before(scorer):
    def source():
        yield from rows("right", "wrong")
        raise OSError("disk gone")

    found = []
    with pytest.raises(OSError, match="disk gone"):
        found.extend(score.value for _, score in scorer.stream(source()))
    stream = scorer.stream(source())
    assert [next(stream)[1].value, next(stream)[1].value] == [1.0, 0.0]


def test_a_stream_may_be_left_half_way():
    with faulty_scorer() as scorer:
        stream = scorer.stream(row("right", str(i)) for i in range(10_000))
        next(stream)
        stream.close()
        assert scorer.score([row("wrong")])[0].value == 0.0


def test_many_threads_may_score_at_once():
    found = {}
    with faulty_scorer() as scorer:

        def work(name):
            found[name] = [s.value for s in scorer.score([row("right", f"{name}-{i}") for i in range(20)])]

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {name: [1.0] * 20 for name in range(8)}


def test_an_event_loop_is_not_blocked_by_a_slow_sample():
    async def main(scorer):
        slow = asyncio.wrap_future(scorer.submit(row("sleep 1.0")))
        beats, quick = 0, [asyncio.wrap_future(scorer.submit(row("right", str(i)))) for i in range(200)]
        while not slow.done():
            start = time.perf_counter()
            await asyncio.sleep(0.01)
            beats += time.perf_counter() - start < 1.0
        return beats, [score.value for score in await asyncio.gather(*quick)]

    with faulty_scorer() as scorer:
        beats, quick = asyncio.run(main(scorer))
    assert beats > 5
    assert quick == [1.0] * 200


def test_a_closed_scorer_refuses():
    with faulty_scorer() as scorer:
        pass
    scorer.close()
    with pytest.raises(ScoringError, match="closed"):
        scorer.score([row("right")])
    with pytest.raises(ScoringError, match="closed"):
        scorer.submit(row("right"))


def test_closing_ends_what_is_running_at_once(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log, workers=1) as scorer:
        running, waiting = scorer.submit(row("hang")), scorer.submit(row("right"))
        wait_until(lambda: log.exists() and events(log, "score"))
        start = time.monotonic()
    assert time.monotonic() - start < 30  # a hang may take 60 seconds
    for future in (running, waiting):
        with pytest.raises(ScoringError, match="closed"):
            future.result(timeout=1)
    ((pid, _),) = events(log, "open")
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_a_parent_that_was_killed_or_interrupted(tmp_path, number):
    log, script = tmp_path / "log", tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            from cascade_core.domain import DomainRef
            from cascade_core.scoring import Scorer
            from cascade_core.settings import Scoring
            rows = [{{"domain": "f", "id": str(i), "prompt": "p", "response": r}} for i, r in enumerate(["spin", "hang"])]
            with Scorer({{"f": DomainRef("faulty", {{"log": {str(log)!r}}})}}, Scoring(workers=2)) as scorer:
                scorer.score(rows)
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(EXTENSION)}
    parent = subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: log.exists() and len(events(log, "score")) == 2)
        pids = [pid for pid, _ in events(log, "open")]
        assert all(alive(pid) for pid in pids)
        parent.send_signal(number)
        _, said = parent.communicate(timeout=60)
    finally:
        parent.kill()
        parent.communicate()
    assert parent.returncode == -number
    assert (b"KeyboardInterrupt" in said) == (number == signal.SIGINT)
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_nothing_is_left_open_after_many_lost_processes():
    with faulty_scorer() as scorer:
        scorer.score(rows("right", "wrong"))
        before = len(list(Path("/proc/self/fd").iterdir()))
        scorer.score([row("sigkill", str(i)) for i in range(4)])
        scorer.score(rows("right", "wrong"))
        wait_until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def test_a_process_that_grows_is_replaced_and_judges_go_on(tmp_path):
    with faulty_scorer(log=tmp_path / "log", workers=1, memory_mib=64) as scorer:
        found = scorer.score([row("leak", str(i)) for i in range(8)])
    assert [score.value for score in found] == [1.0] * 8
    assert len(events(tmp_path / "log", "open")) > 1


def test_a_machine_without_room_for_a_process_is_waited_for(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, resource, signal, time
            from cascade_core.domain import DomainRef
            from cascade_core.scoring import Scorer
            from cascade_core.settings import Scoring
            row = {{"domain": "f", "id": "t", "prompt": "p", "response": "right"}}
            log = {str(tmp_path / "log")!r}
            with Scorer({{"f": DomainRef("faulty", {{"log": log}})}}, Scoring(workers=1)) as scorer:
                scorer.score([row])
                pid = int(open(log).read().split()[0])
                os.kill(pid, signal.SIGKILL)
                while os.path.exists(f"/proc/{{pid}}"):
                    time.sleep(0.05)
                soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
                future = scorer.submit(row)
                time.sleep(1.5)
                assert not future.done()
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert future.result(timeout=30).value == 1.0
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(EXTENSION)}
    assert subprocess.run([sys.executable, script], env=environment, timeout=90).returncode == 0


def test_settings_decide_how_many_processes_there_are(tmp_path):
    log = tmp_path / "log"
    with faulty_scorer(log=log, workers=3) as scorer:
        for i in range(9):
            scorer.submit(row("hang", str(i)))
        wait_until(lambda: log.exists() and len(events(log, "score")) == 3, 60)
    assert len(events(log, "open")) == 3
    assert Scorer({}, Scoring()).workers == len(os.sched_getaffinity(0))


def test_importing_it_starts_nothing_and_loads_nothing_heavy():
    code = "import sys, cascade_core.judge; print([m for m in ('torch', 'sympy', 'transformers', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"


def test_an_interrupt_always_reaches_the_thread_that_waits_for_verdicts():
    with faulty_scorer(workers=1) as judge:
        judge.score([row("right")])
        pools = [thread for thread in threading.enumerate() if thread.name == "cascade-scoring"]
        statuses = [Path(f"/proc/self/task/{pool.native_id}/status").read_text() for pool in pools]
    assert pools
    for status in statuses:
        assert int(status.partition("SigBlk:")[2].split()[0], 16) >> (signal.SIGINT - 1) & 1
