"""Evaluation: the same tasks every time, counts beside every mean, failures never zeros, benchmarks that cannot be are refused."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pytest
from faulty import faulty_scorer

from cascade_core import Benchmark, Domain, Response, Score, Task
from cascade_core.errors import PluginBroken, SpecError, TooManyFailures
from cascade_core.evaluate import exams, held_out, report, take
from cascade_core.sampling import Sample
from cascade_core.settings import Evaluation


@dataclass
class Listed(Domain):
    """Tasks and benchmarks as the test wants them."""

    name = "listed"
    ids: Iterable[str] = ("a", "b")
    found: Sequence[Benchmark] = (Benchmark("test", samples=2),)

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        return (Task(f"{id_}", f"{split} {id_}") for id_ in self.ids)

    def score(self, task: Task, response: Response) -> Score:
        return Score(1.0)

    def benchmarks(self) -> Sequence[Benchmark]:
        return self.found


@pytest.fixture(scope="module")
def scorer():
    with faulty_scorer(workers=1) as made:
        yield made


class Parrot:
    """A sampler that answers what it was told to, in turn."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers

    def sample(self, prompts, samples, sampling, seed):
        return [
            [Sample(self.answers[(i + j) % len(self.answers)], 3, False) for j in range(samples)]
            for i in range(len(prompts))
        ]


def exam(**options):
    (found,) = exams({"faulty": Listed(**options)}, Evaluation())
    return found


def test_rows_hold_the_sample_and_its_verdict(scorer, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    take(exam(), Parrot("right", "wrong"), scorer, path, seed=0, max_error_rate=0.0)
    result = report(exam(), path, None)
    assert result["estimates"]["avg@2"] == {"value": 0.5, "stderr": 0.0, "n": 2}
    assert (result["scored"], result["failed"], result["total"]) == (4, 0, 4)
    assert result["response_tokens"] == 3.0


def test_an_answer_that_could_not_be_judged_is_out_of_the_mean_and_counted(scorer, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    take(exam(), Parrot("right", "raise"), scorer, path, seed=0, max_error_rate=0.5)
    result = report(exam(), path, None)
    assert result["estimates"][result["primary"]]["value"] == 1.0
    assert (result["scored"], result["failed"], result["total"]) == (2, 2, 4)


def test_too_many_failures_end_the_evaluation_and_write_nothing(scorer, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(TooManyFailures, match="2 of 4 responses could not be judged.*no verdict"):
        take(exam(), Parrot("right", "raise"), scorer, path, seed=0, max_error_rate=0.0)
    assert not path.exists()


def test_failed_rows_are_kept_apart_to_be_looked_at_until_the_benchmark_is_judged(scorer, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(TooManyFailures, match=r"all are in .*rows\.failed\.jsonl"):
        take(exam(), Parrot("right", "raise"), scorer, path, seed=0, max_error_rate=0.0)
    assert (tmp_path / "rows.failed.jsonl").read_text().count("no verdict") == 2
    take(exam(), Parrot("right"), scorer, path, seed=0, max_error_rate=0.0)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_one_failure_among_few_samples_ends_nothing(scorer, tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    take(exam(), Parrot("right", "raise"), scorer, path, seed=0, max_error_rate=0.02)
    assert report(exam(), path, None)["failed"] == 2


def test_no_verdict_at_all_is_no_result_whatever_rate_is_allowed(scorer, tmp_path) -> None:
    with pytest.raises(TooManyFailures):
        take(exam(), Parrot("raise"), scorer, tmp_path / "rows.jsonl", seed=0, max_error_rate=1.0)


class Summing(Benchmark):
    """A benchmark whose summary is what the test wants; an exception is raised."""

    result: object = None

    def summarise(self, rows):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ZeroDivisionError("a bug"), "benchmark 'faulty/test' cannot sum up: ZeroDivisionError: a bug"),
        ({}, "sums up as nothing, though 4 rows were judged"),
        ({"avg": 0.5}, "must sum up as names to Estimate"),
        (None, "must sum up as names to Estimate"),
    ],
)
def test_a_summary_that_is_none_names_its_benchmark(scorer, tmp_path, monkeypatch, result, told) -> None:
    monkeypatch.setattr(Summing, "result", result)
    examined = exam(found=(Summing("test", samples=2),))
    take(examined, Parrot("right"), scorer, tmp_path / "rows.jsonl", seed=0, max_error_rate=0.0)
    with pytest.raises(PluginBroken, match=told):
        report(examined, tmp_path / "rows.jsonl", None)


def test_stages_are_compared_in_pairs_on_the_same_tasks(scorer, tmp_path) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    take(exam(), Parrot("wrong"), scorer, before, seed=0, max_error_rate=0.0)
    take(exam(), Parrot("right"), scorer, after, seed=0, max_error_rate=0.0)
    change = report(exam(), after, before)["change"]
    assert (change["difference"], change["n"]) == (1.0, 2)


def test_a_benchmark_that_nobody_offers_is_refused_with_those_there_are() -> None:
    with pytest.raises(SpecError, match=r"names 'math/tset', which no domain offers \(offered: listed/test\)"):
        exams({"listed": Listed()}, Evaluation(benchmarks=["math/tset"]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ids": ()}, "has no tasks"),
        ({"ids": ("a", "a")}, "two tasks with one id"),
        ({"found": (Benchmark("test", sampling={"temprature": 1}),)}, "sets sampling 'temprature'"),
    ],
)
def test_a_benchmark_that_cannot_be_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        exam(**options)


def test_an_endless_benchmark_without_a_limit_is_refused() -> None:
    with pytest.raises(SpecError, match="set evaluation.limit"):
        exam(ids=map(str, count()))


def test_the_smaller_of_two_limits_counts_and_the_spec_may_set_samples_and_sampling() -> None:
    settings = Evaluation.model_validate({"limit": 3, "samples": 5, "sampling": {"temperature": 0.5}})
    benchmark = Benchmark("test", limit=7, sampling={"top_k": 2}, mode="think")
    (found,) = exams({"listed": Listed(ids=map(str, count()), found=(benchmark,))}, settings)
    assert (len(found.tasks), found.samples) == (3, 5)
    assert (found.sampling.temperature, found.sampling.top_k) == (0.5, 2)
    assert {row["mode"] for row in found.tasks} == {"think"}


def test_the_fingerprint_changes_with_tasks_samples_and_sampling() -> None:
    found = exam()
    others = [
        replace(found, samples=3),
        replace(found, tasks=found.tasks[:1]),
        replace(found, sampling=found.sampling.model_copy(update={"top_k": 1})),
    ]
    assert found.fingerprint == exam().fingerprint
    assert len({found.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_all_benchmark_prompts_are_held_out() -> None:
    assert held_out([exam()]) == {"test a", "test b"}


def test_benchmarks_of_a_reward_model_are_not_asked_of_the_policy() -> None:
    assert exams({"listed": Listed(found=(Benchmark("pairs", of="reward_model"),))}, Evaluation()) == []
