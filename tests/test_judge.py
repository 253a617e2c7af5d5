"""One step through the judge: groups, length rules, the control, what is stored, and when it stops."""

import json
import math
import statistics

import pytest
from faulty import faulty_scorer, ref

from cascade_core.errors import ContractError, TooManyFailures
from cascade_core.judge import Judge
from cascade_core.settings import Stage


@pytest.fixture(scope="module")
def scorer():
    with faulty_scorer() as shared:
        yield shared


def row(group, response, domain="faulty", **more):
    return {
        "domain": domain,
        "id": group,
        "prompt": "p",
        "response": response,
        "prefill": "",
        "truncated": False,
        "tokens": 5,
        "sample": 0,
        "group": group,
        **more,
    }


@pytest.fixture
def judge(scorer, tmp_path):
    def make(max_error_rate=1.0, seed=0, **stage):
        setting = Stage.model_validate({"name": "s", "domains": "faulty", "steps": 1, **stage})
        return Judge(scorer, setting, seed, tmp_path, max_error_rate)

    return make


def column(judged, name):
    return [row[name] for row in judged.rows]


def test_rewards_become_advantages_within_each_group(judge):
    judged = judge().judge(0, [row("a", "right"), row("a", "wrong"), row("b", "right"), row("b", "right")])
    high = 0.5 / (statistics.stdev([1, 0]) + 1e-4)
    assert column(judged, "advantage") == pytest.approx([high, -high, 0.0, 0.0])
    assert column(judged, "reward") == [1.0, 0.0, 1.0, 1.0]
    assert column(judged, "masked") == [""] * 4


def test_groups_go_by_their_name_not_by_place_or_prompt(judge):
    rows = [row(group, response) for group, response in zip("abab", ["right", "right", "wrong", "right"], strict=True)]
    judged = judge(advantage={"std": "none"}).judge(0, rows)
    assert column(judged, "advantage") == [0.5, 0.0, -0.5, 0.0]


def test_the_same_task_drawn_twice_is_two_groups(judge):
    rows = [row(g, r, id="same") for g, r in [("0-0", "right"), ("0-0", "wrong"), ("0-1", "wrong"), ("0-1", "wrong")]]
    assert column(judge(advantage={"std": "none"}).judge(0, rows), "advantage") == [0.5, -0.5, 0.0, 0.0]


def test_the_stage_settles_how_advantages_are_normalised(judge):
    rows = [row("a", "right"), row("a", "wrong"), row("a", "wrong")]
    judged = judge(advantage={"std": "population", "epsilon": 0.0, "shaping": "tanh"}).judge(0, rows)
    spread = statistics.pstdev([1, 0, 0])
    assert column(judged, "advantage") == pytest.approx([math.tanh(x / spread) for x in (2 / 3, -1 / 3, -1 / 3)])


def test_a_failed_sample_is_masked_and_moves_nobody(judge):
    alone = judge().judge(0, [row("a", "right"), row("a", "wrong")])
    judged = judge().judge(1, [row("a", "right"), row("a", "task"), row("a", "wrong")])
    assert column(judged, "masked") == ["", "error", ""]
    assert column(judged, "reward") == [1.0, None, 0.0]
    high, low = column(alone, "advantage")
    assert column(judged, "advantage") == [high, 0.0, low]
    assert judged.rows[1]["score"]["error"] == "label '?' does not parse"


def test_a_group_without_a_verdict_is_all_zeros_and_counted(judge):
    judged = judge().judge(0, [row("a", "task"), row("a", "task"), row("b", "right"), row("b", "wrong")])
    assert column(judged, "advantage")[:2] == [0.0, 0.0]
    assert judged.metrics["masked_groups"] == 1
    assert judged.metrics["zero_variance"] == 0.5
    assert judged.metrics["failed"] == 2


def test_nothing_judged_gives_no_mean_rather_than_zero_or_nan(judge):
    metrics = judge().judge(0, [row("a", "task"), row("a", "task")]).metrics
    assert "reward_mean" not in metrics
    assert "value_mean" not in metrics
    assert all(math.isfinite(value) for value in metrics.values())


CUT = [row("a", "right", truncated=True), row("a", "right"), row("a", "wrong")]


def test_overlong_mask_leaves_the_sample_out_of_the_mean_and_the_gradient(judge):
    judged = judge(overlong="mask").judge(0, CUT)
    alone = judge(overlong="mask").judge(1, CUT[1:])
    assert column(judged, "masked") == ["overlong", "", ""]
    assert column(judged, "advantage") == [0.0, *column(alone, "advantage")]
    assert judged.metrics["masked"] == 1


def test_overlong_zero_is_a_reward_of_0_and_not_a_mask(judge):
    judged = judge(overlong="zero", advantage={"std": "none"}).judge(0, CUT)
    assert column(judged, "reward") == [0.0, 1.0, 0.0]
    assert column(judged, "advantage") == pytest.approx([-1 / 3, 2 / 3, -1 / 3])
    assert column(judged, "masked") == ["", "", ""]


def test_overlong_keep_changes_nothing(judge):
    assert column(judge(overlong="keep").judge(0, CUT), "reward") == [1.0, 1.0, 0.0]


def test_no_length_rule_changes_the_verdict(judge):
    rules = ["mask", "zero", "keep", {"soft": {"buffer": 10}}]
    for step, rule in enumerate(rules):
        judged = judge(overlong=rule).judge(step, CUT)
        assert [score["value"] for score in column(judged, "score")] == [1.0, 1.0, 0.0]
        assert judged.metrics["value_mean"] == pytest.approx(2 / 3)
        assert judged.metrics["truncated"] == 1


def test_overlong_soft_takes_from_the_reward_by_length(judge):
    soft = {"overlong": {"soft": {"buffer": 200}}, "rollout": {"max_response_tokens": 1000}}
    rows = [row("a", "right", tokens=tokens) for tokens in (5, 800, 900, 1000)]
    judged = judge(**soft).judge(0, [*rows, row("a", "right", tokens=990, truncated=True)])
    assert column(judged, "reward") == pytest.approx([1.0, 1.0, 0.5, 0.0, 0.0])


def test_a_failed_sample_that_was_cut_is_masked_as_an_error(judge):
    judged = judge(overlong="mask").judge(0, [row("a", "task", truncated=True), row("a", "right")])
    assert column(judged, "masked") == ["error", ""]


def test_a_domain_with_group_rewards_has_the_last_word_on_them(judge):
    judged = judge().judge(0, [row("a", "right", "grouped"), row("a", "wrong", "grouped"), row("b", "right")])
    assert column(judged, "reward") == [2.0, 0.0, 1.0]
    assert [score["value"] for score in column(judged, "score")] == [1.0, 0.0, 1.0]


def test_group_rewards_see_the_judged_samples_alone(judge):
    rows = [row("a", response, "grouped") for response in ("right", "task", "right", "wrong")]
    judged = judge().judge(0, rows)
    assert column(judged, "reward") == [3.0, None, 3.0, 0.0]


def test_batch_statistics_are_those_of_the_whole_step(judge):
    rows = [row("a", "shown", "batchwise"), row("a", "wrong", "batchwise"), row("b", "right", "batchwise")]
    assert column(judge().judge(0, rows), "reward") == [2.5, -10.0, 1.0]
    assert column(judge().judge(1, [row("a", "right", "batchwise")] * 2), "reward") == [1.0, 1.0]


def test_batch_statistics_do_not_mix_the_scales_of_two_domains(judge):
    rows = [row("a", "shown", "batchwise"), row("b", "wrong", "faulty")]
    assert column(judge().judge(0, [*rows, row("a", "wrong", "batchwise")]), "reward") == [2.5, 0.0, -10.0]


@pytest.mark.parametrize("fault", ["short", "nan", "none", "bool", "scalar", "raise", "sigkill"])
def test_group_rewards_that_go_wrong_fail_their_group_alone(tmp_path, fault):
    with faulty_scorer(domains={"grouped": ref("grouped", fault=fault)}) as scorer:
        stage = Stage.model_validate({"name": "s", "domains": "grouped", "steps": 1})
        rows = [row("a", "right", "grouped"), row("a", "wrong", "grouped"), row("b", "right"), row("b", "wrong")]
        judged = Judge(scorer, stage, 0, tmp_path, 1.0).judge(0, rows)
    assert column(judged, "masked") == ["error", "error", "", ""]
    assert column(judged, "reward") == [None, None, 1.0, 0.0]
    assert "rewards of a group" in judged.rows[0]["score"]["error"]


def test_the_control_permutes_rewards_over_the_batch_and_nothing_else(judge):
    rows = [row(str(i // 4), "right" if i % 4 == 0 else "wrong", tokens=i) for i in range(64)]
    plain, control = judge().judge(0, rows), judge(control="permuted-rewards").judge(1, rows)
    assert column(control, "reward") != column(plain, "reward")
    assert sorted(column(control, "reward")) == sorted(column(plain, "reward"))
    assert column(control, "score") == column(plain, "score")
    assert column(control, "tokens") == column(plain, "tokens")


def test_the_control_depends_on_seed_and_step_alone(judge):
    rows = [row(str(i // 4), "right" if i % 4 == 0 else "wrong") for i in range(64)]

    def rewards(step, seed):
        return column(judge(control="permuted-rewards", seed=seed).judge(step, rows), "reward")

    assert rewards(3, 1) == rewards(3, 1)
    assert rewards(3, 1) != rewards(4, 1)
    assert rewards(3, 1) != rewards(3, 2)


def test_the_control_gives_masked_samples_nothing(judge):
    rows = [row("a", "task"), row("a", "right"), row("a", "wrong"), row("a", "wrong", truncated=True)]
    judged = judge(control="permuted-rewards", overlong="mask").judge(0, rows)
    assert column(judged, "masked") == ["error", "", "", "overlong"]
    assert column(judged, "reward")[0] is None
    assert sorted(column(judged, "reward")[1:3]) == [0.0, 1.0]


def test_every_step_is_stored_with_its_scores_and_advantages(judge, tmp_path):
    judged = judge().judge(7, [row("a", "right"), row("a", "task"), row("a", "\ud800 wrong")])
    stored = [json.loads(line) for line in (tmp_path / "rollouts/step-00007.jsonl").read_text().splitlines()]
    assert stored == [{**row, "step": 7} for row in judged.rows]


def test_the_same_step_is_stored_as_the_same_bytes(judge, tmp_path):
    path, rows = tmp_path / "rollouts/step-00000.jsonl", [row("a", "right"), row("a", "raise"), row("a", "exit")]
    judge().judge(0, rows)
    first = path.read_bytes()
    judge().judge(0, rows)
    assert path.read_bytes() == first


def test_a_reward_beyond_all_measure_is_a_failure_of_its_sample(judge):
    judged = judge().judge(0, [row("a", "huge"), row("a", "right"), row("a", "wrong")])
    assert column(judged, "masked") == ["error", "", ""]
    assert "reward 1e+200 is out of range" in judged.rows[0]["score"]["error"]


def test_a_step_without_samples_is_stored_as_such(judge, tmp_path):
    judged = judge().judge(0, [])
    assert (judged.rows, judged.metrics["total"]) == ([], 0)
    assert (tmp_path / "rollouts/step-00000.jsonl").read_text() == ""


def test_rows_are_given_back_in_their_order_with_unknown_fields(judge):
    rows = [row("ab"[i % 2], "right", sample=i, extra={"kept": i}) for i in range(9)]
    judged = judge().judge(0, rows)
    assert [{name: r[name] for name in rows[0]} for r in judged.rows] == rows


def test_components_of_the_verdict_are_averaged_per_domain(judge):
    metrics = judge().judge(0, [row("a", "shown"), row("a", "right"), row("b", "wrong", "grouped")]).metrics
    assert metrics["metric/faulty/parts"] == 3.0
    assert metrics["value/faulty"] == 1.0
    assert metrics["value/grouped"] == 0.0
    assert metrics["response_tokens_mean"] == 5.0


def test_a_whole_step_without_a_verdict_stops_the_stage_and_is_kept(judge, tmp_path):
    with pytest.raises(TooManyFailures, match=r"20 of the last 20 samples of domain 'faulty'.*task 'a' among.*'\?'"):
        judge(max_error_rate=0.02).judge(0, [row("a", "task")] * 20)
    assert len((tmp_path / "rollouts/step-00000.jsonl").read_text().splitlines()) == 20


def test_some_failures_in_a_short_stretch_do_not_stop_the_stage(judge):
    strict = judge(max_error_rate=0.02)
    for step in range(4):
        strict.judge(step, [row("a", "task")] * 40 + [row("b", "right")] * 80)


def test_the_failure_rate_over_the_last_500_samples_stops_the_stage(judge):
    strict = judge(max_error_rate=0.02)
    strict.judge(0, [row("a", "task")] * 11 + [row("b", "right")] * 439)
    with pytest.raises(TooManyFailures, match="11 of the last 500"):
        strict.judge(1, [row("b", "right")] * 50)


def test_failures_that_an_earlier_process_saw_are_counted_after_a_resume(judge):
    judge(max_error_rate=0.02).judge(0, [row("a", "task")] * 11 + [row("b", "right")] * 439)
    with pytest.raises(TooManyFailures, match="11 of the last 500"):
        judge(max_error_rate=0.02).judge(1, [row("b", "right")] * 50)


def test_failures_before_the_window_are_forgotten(judge):
    strict = judge(max_error_rate=0.02)
    strict.judge(0, [row("a", "task")] * 11 + [row("b", "right")] * 400)
    strict.judge(1, [row("b", "right")] * 600)


def test_a_failing_domain_is_not_hidden_by_a_larger_healthy_one(judge):
    with pytest.raises(TooManyFailures, match="'grouped'"):
        judge(max_error_rate=0.02).judge(0, [row("a", "task", "grouped")] * 20 + [row("b", "right")] * 2000)


@pytest.mark.parametrize("broken", [{"group": None}, {"group": 3}, {"tokens": None}, {"tokens": True}])
def test_a_row_that_a_trainer_did_not_finish_is_refused(judge, broken):
    with pytest.raises(ContractError, match="'group' and an integer 'tokens'"):
        judge().judge(0, [{**row("a", "right"), **broken}])
