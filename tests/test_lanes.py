"""Domains that wait are judged beside those that compute, many at once; what verdicts took is told; rows may be handed over early."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from echoed import NEED, installed, rows
from faulty import faulty_scorer
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core.domain import DomainRef
from cascade_core.judge import Judge
from cascade_core.plugins import registry
from cascade_core.provision import choose, running
from cascade_core.request import Handed
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring, Stage
from cascade_core.testing import examine


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """One server for all tests here."""
    with installed(), running([choose(NEED, {NEED: {"local": {"slots": 64}}})]) as found:
        yield found.addresses[NEED]


def waiting(address: str, **limits: Any) -> Scorer:
    return Scorer({"echo": registry().reference("echo")}, Scoring(**{"workers": 1, **limits}), {NEED: address})


@pytest.mark.slow
def test_so_many_verdicts_wait_at_once_as_the_setting_says(address: str) -> None:
    with waiting(address, concurrency=4) as scorer:
        assert [score.value for score in scorer.score(rows(*["meet 4"] * 4))] == [1.0] * 4


def test_twice_the_workers_wait_where_nothing_is_said(address: str) -> None:
    assert waiting(address, workers=3).concurrency == 6


@pytest.mark.slow
def test_several_scorers_reach_one_address(address: str) -> None:
    with waiting(address, concurrency=2) as one, waiting(address, concurrency=2) as other, ThreadPoolExecutor() as pool:
        found = pool.map(lambda scorer: scorer.score(rows("meet 8", "meet 8")), [one, other])
        assert [score.value for scores in found for score in scores] == [1.0] * 4


def test_verdicts_that_wait_keep_no_other_domain_waiting(address: str) -> None:
    more = {"echo": registry().reference("echo")}
    with faulty_scorer(workers=1, concurrency=2, resources={NEED: address}, domains=more) as scorer:
        stuck = [scorer.submit(row) for row in rows("sleep 600", "sleep 600", "sleep 600")]
        (score,) = scorer.score([{"domain": "faulty", "id": "a", "prompt": "a", "response": "right"}])
        assert score.value == 1.0 and not any(future.done() for future in stuck)


def test_a_verdict_that_computes_keeps_no_waiting_one_from_beginning(address: str) -> None:
    more = {"echo": registry().reference("echo")}
    with faulty_scorer(workers=1, cpu_seconds=600, resources={NEED: address}, domains=more) as scorer:
        stuck = scorer.submit({"domain": "faulty", "id": "a", "prompt": "a", "response": "spin"})
        (score,) = scorer.score(rows("right"))
        assert score.value == 1.0 and not stuck.done()


def test_waiting_verdicts_have_a_backstop_of_their_own(address: str) -> None:
    with waiting(address, wall_seconds=0.2, io_wall_seconds=60.0) as scorer:
        assert scorer.score(rows("sleep 0.5"))[0].value == 1.0
    with waiting(address, wall_seconds=60.0, io_wall_seconds=0.2) as scorer:
        assert scorer.score(rows("sleep 30"))[0].error == "no verdict within 0.2 s, twice"


def test_a_resource_that_does_not_answer_gives_no_verdict(address: str, tmp_path: Path) -> None:
    with waiting(f"unix:{tmp_path}/none") as scorer:
        (score,) = scorer.score(rows("right"))
    assert not score.is_judged and "FileNotFoundError" in score.error and score.error.endswith(", twice")


def test_time_in_the_queue_and_under_judgement_are_told_apart(address: str) -> None:
    with waiting(address, concurrency=1) as scorer:
        scorer.score(rows("right"))
        first, second, unknown = scorer.verdicts([*rows("sleep 0.3", "sleep 0.4"), {"domain": "none"}])
    assert first.run_seconds >= 0.3 and second.run_seconds >= 0.4
    assert second.queue_seconds >= 0.3 and second.queue_seconds > first.queue_seconds
    assert second.ended >= first.ended
    assert (unknown.queue_seconds, unknown.run_seconds) == (0.0, 0.0) and unknown.score.error


def test_a_try_that_failed_counts_as_waiting(tmp_path: Path) -> None:
    with faulty_scorer(log=tmp_path / "log", wall_seconds=1.0) as scorer:
        row = {"domain": "faulty", "id": "a", "prompt": "a", "response": "once hang"}
        (verdict,) = scorer.verdicts([row])
    assert verdict.score.value == 1.0 and verdict.queue_seconds >= 1.0 > verdict.run_seconds


STAGE = Stage.model_validate(
    {
        "name": "s",
        "domains": "faulty",
        "steps": 9,
        "rollout": {"prompts_per_step": 2, "samples_per_prompt": 2, "max_response_tokens": 9},
        "control": "permuted-rewards",
    }
)
RESPONSES = ("right", "wrong", "shown", "task", "huge")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scorer, Path]]:
    """A scorer of well-behaved and broken answers, and the file that tells how often each was judged."""
    log = tmp_path_factory.mktemp("log") / "log"
    with faulty_scorer(log=log, workers=2) as scorer:
        yield scorer, log


def sampled(choices: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {
            "domain": domain,
            "id": f"{domain}{i // 2}",
            "prompt": "p",
            "answer": "right",
            "response": text,
            "tokens": 1,
            "sample": i % 2,
            "group": f"{domain}{i // 2}",
        }
        for i, (domain, text) in enumerate(choices)
    ]


@settings(max_examples=15, deadline=None)
@given(
    choices=st.lists(
        st.tuples(st.sampled_from(["faulty", "grouped", "batchwise", "none"]), st.sampled_from(RESPONSES)),
        min_size=1,
        max_size=12,
    ),
    data=st.data(),
)
def test_rewards_are_the_same_whether_rows_were_handed_over_or_not(
    kept: tuple[Scorer, Path], tmp_path_factory: pytest.TempPathFactory, choices: list[tuple[str, str]], data: Any
) -> None:
    scorer, _ = kept
    drawn = sampled(choices)
    early = data.draw(st.permutations(drawn))[: data.draw(st.integers(0, len(drawn)))]
    plain, ahead = (Judge(scorer, STAGE, 7, tmp_path_factory.mktemp("stage"), 1.0) for _ in range(2))
    for row in early:
        ahead.hand_over({key: value for key, value in row.items() if key not in ("group", "tokens", "sample")})
    ahead.hand_over({**drawn[0], "response": "burn 0.001"})  # never asked for
    first, second = plain.judge(3, drawn), ahead.judge(3, drawn)
    assert first.rows == second.rows
    assert without_times(first.metrics) == without_times(second.metrics)


def without_times(metrics: Any) -> dict[str, float]:
    return {key: value for key, value in metrics.items() if "_seconds" not in key}


def test_a_row_that_was_handed_over_is_judged_once(kept: tuple[Scorer, Path], tmp_path: Path) -> None:
    scorer, log = kept
    drawn = sampled([("faulty", "right"), ("faulty", "wrong"), ("faulty", "sleep 0.2")])
    for number, row in enumerate(drawn):
        row["id"] = f"once-{number}"
    judge = Judge(scorer, STAGE, 7, tmp_path, 1.0)
    for row in drawn:
        for _ in range(3):
            judge.hand_over(row)
    judge.judge(0, drawn)
    seen = Counter(line.split()[-1] for line in log.read_text().splitlines() if "once-" in line)
    assert seen == {f"once-{number}": 1 for number in range(3)}


def test_what_was_handed_over_for_one_step_is_not_kept_for_the_next(kept: tuple[Scorer, Path], tmp_path: Path) -> None:
    scorer, log = kept
    judge = Judge(scorer, STAGE, 7, tmp_path, 1.0)
    (row,) = sampled([("faulty", "right")])
    row["id"] = "again"
    judge.hand_over(row)
    judge.judge(0, [row])
    judge.judge(1, [row])
    assert sum("score again" in line for line in log.read_text().splitlines()) == 2


def test_a_step_waits_only_for_what_is_left_of_its_judging(kept: tuple[Scorer, Path], tmp_path: Path) -> None:
    scorer, _ = kept
    judge = Judge(scorer, STAGE, 7, tmp_path, 1.0)
    drawn = sampled([("faulty", "sleep 1.5"), ("faulty", "right")])
    began = time.monotonic()
    judge.hand_over(drawn[0])
    time.sleep(1.0)
    metrics = judge.judge(0, drawn).metrics
    assert metrics["run_max_seconds/faulty"] >= 1.5 > metrics["run_seconds/faulty"] > 0.7
    assert metrics["wait_seconds/faulty"] <= time.monotonic() - began - 1.0
    assert metrics["queue_seconds/faulty"] >= 0.0
    assert metrics["wait_seconds/faulty"] <= metrics["verify_seconds"] + 0.001


def test_rows_may_be_handed_over_by_many_threads(kept: tuple[Scorer, Path]) -> None:
    scorer, log = kept
    drawn = [{"domain": "faulty", "id": f"thread-{i}", "prompt": "p", "response": "right"} for i in range(40)]
    handed: Handed = {}
    start = threading.Barrier(8)

    def give(number: int) -> None:
        start.wait()
        for row in drawn[number::4]:  # each row by two of them
            scorer.hand_over(row, handed)

    threads = [threading.Thread(target=give, args=(number % 4,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.score.value for verdict in scorer.verdicts(drawn, handed)] == [1.0] * 40
    seen = Counter(line.split()[-1] for line in log.read_text().splitlines() if "thread-" in line)
    assert set(seen.values()) == {1} and len(seen) == 40


def test_the_lane_of_a_domain_goes_where_its_reference_goes(address: str) -> None:
    assert registry().reference("echo").lane == "io"
    assert registry().reference("if").lane == DomainRef("any").lane == "cpu"


@pytest.mark.slow
def test_a_domain_that_waits_passes_its_check_with_a_resource_of_its_own(address: str) -> None:
    domain = registry().build(registry().reference("echo"))
    findings = {finding.check: finding for finding in examine(domain, tasks=3)}
    assert [check for check, finding in findings.items() if not finding.ok] == []
    assert "a score needs no network" not in findings
    again = examine(domain, tasks=3, resources={NEED: address})
    assert all(finding.ok for finding in again)
