"""How the trained reward goes with the surface of answers, as a step's metrics tell it."""

from cascade_core.domain import Score
from cascade_core.judge import Judge
from cascade_core.settings import Stage
from cascade_core.verdict import Verdict


class Scripted:
    """A scorer that gives each row the score that the row carries."""

    def verdicts(self, rows, handed):
        return [Verdict(row["said"], 0.0, 0.0, 0.0) for row in rows]

    def overrides_rewards(self, domain):
        return False


def judged(*groups, **stage):
    setting = Stage.model_validate({"name": "s", "domains": "d", "steps": 1, **stage})
    rows = [
        {
            "domain": "d",
            "id": str(number),
            "prompt": "p",
            "response": "r",
            "tokens": 1,
            "group": str(number),
            "said": said,
        }
        | ({"truncated": True} if said.note == "cut" else {})
        for number, group in enumerate(groups)
        for said in group
    ]
    return Judge(Scripted(), setting, 0, None, 1.0).judge(0, rows).metrics


def said(reward, length, note=""):
    return Score(0.5, reward=reward, note=note, metrics={"surface_length": length, "other": length})


def test_a_reward_that_is_length_has_a_correlation_of_one_and_other_metrics_none():
    metrics = judged([said(1.0, 10.0), said(2.0, 20.0)], [said(9.0, 40.0), said(7.0, 20.0)])
    assert metrics["correlation/d/surface_length"] == 1.0
    assert "correlation/d/other" not in metrics


def test_a_scorer_beside_the_domain_tells_how_the_reward_goes_with_what_it_saw():
    groups = [said(1.0, 10.0), said(2.0, 20.0)], [said(9.0, 40.0), said(7.0, 20.0)]
    metrics = judged(*groups, reward={"sum": ["d", "liked"]})
    assert metrics["correlation/liked/surface_length"] == metrics["correlation/d/surface_length"] == 1.0
    assert metrics["metric/liked/other"] == 22.5


def test_what_two_prompts_differ_in_is_no_correlation():
    flat = [said(1.0, 10.0), said(1.0, 12.0), said(2.0, 10.0), said(2.0, 12.0)]
    high = [said(8.0, 90.0), said(8.0, 92.0), said(9.0, 90.0), said(9.0, 92.0)]
    assert judged(flat, high)["correlation/d/surface_length"] == 0.0


def test_samples_that_are_masked_or_not_judged_have_no_part_in_it():
    group = [said(1.0, 1.0), said(2.0, 2.0), said(3.0, 3.0), said(-50.0, 99.0, "cut"), Score.failed("lost")]
    assert judged(group, overlong="mask")["correlation/d/surface_length"] == 1.0


def test_equal_rewards_or_equal_lengths_tell_nothing():
    assert "correlation/d/surface_length" not in judged([said(1.0, 1.0), said(1.0, 2.0), said(1.0, 3.0)])
    assert "correlation/d/surface_length" not in judged([said(1.0, 5.0), said(2.0, 5.0), said(3.0, 5.0)])
