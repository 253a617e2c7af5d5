"""`Scorer.look`: one verdict with its cost and the domain's reasons, whatever the domain does."""

import pytest
from faulty import faulty_scorer
from strangers import publish

from cascade_core.domain import DomainRef
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring
from cascade_core.verdict import Look

__all__ = ["publish"]


def row(response: str, domain: str = "faulty", **more) -> dict:
    return {"domain": domain, "id": "t", "prompt": "p", "answer": "7", "response": response, **more}


@pytest.fixture(scope="module")
def scorer():
    with faulty_scorer(workers=1, cpu_seconds=1.0, wall_seconds=20.0) as shared:
        yield shared


def test_a_verdict_is_told_with_its_cost(scorer: Scorer) -> None:
    (look,) = scorer.look([row("burn 0.2")])
    assert look.score.value == 1.0
    assert 0.19 <= look.cpu_seconds <= look.wall_seconds + 0.02 and look.held_bytes > 2**20
    assert (look.explanation, look.trouble) == (None, "")


def test_a_wait_costs_the_clock_and_no_cpu_time(scorer: Scorer) -> None:
    (look,) = scorer.look([row("sleep 0.3")])
    assert look.wall_seconds >= 0.3 > 0.2 > look.cpu_seconds


@pytest.mark.parametrize(
    ("response", "error"), [("raise", "ValueError: no verdict"), ("exit", "worker lost"), ("task", "does not parse")]
)
def test_a_failure_is_told_and_raises_nothing(scorer: Scorer, response: str, error: str) -> None:
    (look,) = scorer.look([row(response)], explain=True)
    assert error in look.score.error and error in look.trouble and look.wall_seconds is None


def test_a_limit_is_a_verdict_here_too(scorer: Scorer) -> None:
    (look,) = scorer.look([row("spin")])
    assert look.score.is_limit and look.cpu_seconds is None


def test_a_row_of_no_domain_is_told_as_score_tells_it(scorer: Scorer) -> None:
    (look,) = scorer.look([row("x", domain="nowhere")], explain=True)
    assert look == Look(scorer.score([row("x", domain="nowhere")])[0])


def test_the_same_row_twice_is_judged_twice(scorer: Scorer) -> None:
    assert all(look.cpu_seconds >= 0.04 for look in scorer.look([row("burn 0.05")] * 2))


@pytest.mark.parametrize("name", ["math", "if"])
def test_a_domain_of_this_checkout_explains_in_the_scoring_process(name: str) -> None:
    answer = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]} if name == "if" else "7"
    rows = [row("\\boxed{7}", domain=name, answer=answer)]
    with Scorer({name: registry().reference(name)}, Scoring(workers=1)) as scorer:
        (look,) = scorer.look(rows, explain=True)
        assert look.score == scorer.score(rows)[0] and look.score.value == 1.0
        assert look.explanation["rule"] and not look.trouble
        assert scorer.look(rows)[0].explanation is None


EXPLAINERS = """
    from cascade_core import Domain, Score, Task, hookimpl

    def odd(answer): raise ZeroDivisionError("no reason")

    class Odd(Domain):
        name = "odd"
        def tasks(self, split, seed): return []
        def score(self, task, response): return Score(1.0)
        def explain(self, task, response):
            return {"list": [1], "nan": {"a": float("nan")}, "raise": None}[response.text] if response.text != "raise" else odd(1)

    @hookimpl
    def cascade_domains(): return [Odd]
"""


@pytest.mark.parametrize(
    ("response", "trouble"),
    [
        ("list", "must return a mapping, found a list"),
        ("nan", "not JSON compliant"),
        ("raise", "ZeroDivisionError: no"),
    ],
)
def test_an_explanation_that_fails_leaves_the_verdict_alone(publish, response: str, trouble: str) -> None:
    publish("cascade-plugin-odd", EXPLAINERS)
    ref = DomainRef("odd", {}, "cascade-plugin-odd", "1.0")
    with Scorer({"odd": ref}, Scoring(workers=1)) as scorer:
        (look,) = scorer.look([row(response, domain="odd")], explain=True)
    assert look.score.value == 1.0 and look.explanation is None and trouble in look.trouble
