"""What domains want a person to look at after a stage: asked with their own numbers, told as lines."""

import pytest

from cascade_core.domain import Domain, Estimate
from cascade_core.errors import PluginBroken
from cascade_core.warning import warned


class Watching(Domain):
    name = "watching"

    def __init__(self, say):
        self.say, self.heard = say, []

    def tasks(self, split, seed):
        return ()

    def score(self, task, response):
        raise NotImplementedError

    def warnings(self, steps, now, before):
        self.heard.append((list(steps), dict(now), dict(before)))
        return self.say


STEP = {
    "kind": "step",
    "step": 0,
    "metric/mine/raw": 2.0,
    "correlation/mine/surface_length": 0.5,
    "value/mine": 0.25,
    "metric/other/raw": 9.0,
}
BENCHMARKS = {
    "mine/test": {
        "domain": "mine",
        "benchmark": "test",
        "estimates": {"score": {"value": 1.5, "stderr": 0.1, "n": 40}},
    },
    "other/test": {"domain": "other", "benchmark": "test", "estimates": {}},
}


def test_a_domain_is_told_its_own_numbers_by_plain_names_and_nobody_elses():
    domain = Watching([])
    assert list(warned({"mine": domain}, [STEP], BENCHMARKS, {})) == []
    steps = [{"metric/raw": 2.0, "correlation/surface_length": 0.5, "value": 0.25}]
    assert domain.heard == [(steps, {"test": {"score": Estimate(1.5, 0.1, 40)}}, {})]


def test_a_stage_that_did_not_train_a_domain_has_no_steps_of_it():
    domain = Watching([])
    list(warned({"third": domain}, [STEP], BENCHMARKS, BENCHMARKS))
    assert domain.heard == [([], {}, {})]


def test_a_warning_is_one_line_whatever_is_in_it():
    assert list(warned({"mine": Watching(["two\nlines \t here"])}, [], {}, {})) == [("mine", "two lines here")]


@pytest.mark.parametrize("said", [[3], 7, [None]])
def test_a_domain_that_warns_with_anything_but_text_is_broken(said):
    with pytest.raises(PluginBroken, match="domain 'mine'"):
        list(warned({"mine": Watching(said)}, [], {}, {}))


def test_a_domain_says_nothing_unless_it_has_something_to_say():
    assert list(Domain.warnings(Watching([]), [], {}, {})) == []
