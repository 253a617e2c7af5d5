"""The cases of `data/server_cases.jsonl` that speak of results, groups, batches, calls and truncation.

A case describes a situation; here it is brought about, with the real verifiers in real processes. Debatable cases follow
the policy written in docs/scoring.md.
"""

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import numpy
import pytest
from faulty import faulty_scorer

from cascade_core.adapters import ABSTAINED, as_score, reward_function
from cascade_core.advantages import advantages
from cascade_core.errors import ContractError
from cascade_core.judge import Judge
from cascade_core.plugins import registry
from cascade_core.rows import read
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring, Stage

CASES = list(read(Path(__file__).parent / "data" / "server_cases.jsonl"))


def of(*kinds):
    found = [case for case in CASES if case["input"]["kind"] in kinds]
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def thing(value):
    """A value that JSON has not."""
    if not isinstance(value, dict):
        return value
    if "__float__" in value:
        return float(value["__float__"])
    if "__json__" in value:
        return json.loads(value["__json__"])
    if value.get("__type__") == "numpy.ndarray":
        return numpy.array(value["data"], dtype=value["dtype"])
    if value.get("__type__") == "coroutine":
        return resolving(value["resolves_to"])
    return value


async def resolving(value):
    return value


@pytest.fixture(scope="module")
def scorer():
    """The real verifiers."""
    refs = {"math": registry().reference("math"), "if": registry().reference("if")}
    with Scorer(refs, Scoring(workers=2)) as shared:
        yield shared


def math_row(item, number=0):
    return {
        "domain": "math",
        "id": f"item-{number}",
        "prompt": item.get("prompt", "1+1?"),
        "answer": item["label"],
        "response": item["response"],
    }


def test_every_kind_of_case_is_tried_here():
    kinds = {case["input"]["kind"] for case in CASES}
    assert kinds == {"reward_fn_output", "reward_value", "group", "groups", "batch", "call", "request"}
    assert len(CASES) == 42


@of("reward_fn_output")
def test_what_a_reward_function_returns(case):
    count = case["input"]["num_completions"]
    function = reward_function(lambda prompts, completions: thing(case["input"]["returned"]))
    if case["expected"] == "error-clearly":
        with pytest.raises(ContractError, match=r"results|must return"):
            function(["p"] * count, ["c"] * count)
    else:
        found = function(["p"] * count, ["c"] * count)
        assert [score.trained for score in found] == case["expected_detail"]["rewards"]


@of("reward_value")
def test_what_a_reward_is(case):
    value, declared = thing(case["input"]["value"]), case["input"].get("declared_range")
    if case["expected"] == "error-clearly":
        with pytest.raises(ContractError, match=r"a re"):
            as_score(value, tuple(declared) if declared else None)
    elif case["expected_detail"].get("masked"):
        assert as_score(value).error == ABSTAINED
    else:
        assert as_score(value).trained == case["expected_detail"]["reward"]


@of("group")
def test_a_group_with_rewards_missing_or_equal(case):
    rewards, detail = case["input"]["rewards"], case["expected_detail"]
    found = advantages(rewards)
    if "advantages" in detail:
        assert found == detail["advantages"]
    elif detail.get("group_dropped"):
        assert found == [0.0] * len(rewards)  # and the judge counts it: test_judge, masked_groups
    else:
        assert [reward is not None for reward in rewards] == detail["valid"]
        plain = advantages(rewards, std="none")
        assert plain == [0.0 if reward is None else reward - detail["mean"] for reward in rewards]
        assert all((a == detail["advantage_of_masked"]) == (r is None) for a, r in zip(found, rewards, strict=True))


@of("groups")
def test_groups_go_by_their_name(case, tmp_path):
    with faulty_scorer(workers=1) as scorer:
        stage = Stage.model_validate(
            {"name": "s", "domains": "faulty", "steps": 1, "advantage": {"std": "none", "epsilon": 0.0}}
        )
        rows = [
            {
                "domain": "faulty",
                "id": "t",
                "prompt": row.get("prompt", "p"),
                "response": "right" if row["reward"] else "wrong",
                "tokens": 1,
                "group": row["uid"],
            }
            for row in case["input"]["rows"]
        ]
        judged = Judge(scorer, stage, 0, tmp_path, 0.0).judge(0, rows)
    for row in judged.rows:
        assert row["reward"] - row["advantage"] == case["expected_detail"]["group_means"][row["group"]]


BATCHES = [c for c in CASES if c["input"]["kind"] == "batch"]


@pytest.mark.parametrize("case", [c for c in BATCHES if "fault" not in c["input"]], ids=lambda case: case["id"])
def test_a_bad_item_of_a_batch_harms_no_other(case, scorer):
    items, detail = case["input"]["items"], case["expected_detail"]
    scorer.score([math_row({"response": "\\boxed{1}", "label": "1"}, number) for number in range(4)])  # warm
    start = time.monotonic()
    found = scorer.score([math_row(item, number) for number, item in enumerate(items)])
    assert time.monotonic() - start < detail.get("max_seconds", 60)
    for score, reward in zip(found, detail["rewards"], strict=True):
        if isinstance(reward, float):
            assert score.is_judged
            assert score.trained == reward
        else:  # `null`, or "0.0 or flagged": flagged is our choice
            assert score.error


@pytest.mark.parametrize("fault", ["sigkill", "once sigkill"])
def test_a_worker_that_dies_is_replaced_and_its_item_tried_again_or_flagged(fault, tmp_path):
    case = next(c for c in BATCHES if "worker" in c["input"].get("fault", {}))
    rewards = faulted(case, fault, tmp_path)
    assert [rewards[0], rewards[2]] == [1.0, 1.0]
    assert rewards[1] == (1.0 if "once" in fault else None)


def test_system_exit_from_scored_code_ends_nothing(tmp_path):
    case = next(c for c in BATCHES if "SystemExit" in str(c["input"].get("fault")))
    assert faulted(case, "systemexit", tmp_path) == case["expected_detail"]["rewards"]


@pytest.mark.slow
def test_64_hung_items_do_not_use_up_the_pool(tmp_path):
    case = next(c for c in BATCHES if c["input"].get("fault", {}).get("hangs"))
    with faulty_scorer(wall_seconds=1.0, workers=16) as scorer:
        found = scorer.score([custom_row("hang", number) for number, _ in enumerate(case["input"]["items"])])
        assert len(found) == 64
        assert not any(score.is_judged for score in found)
        then = scorer.score([custom_row("right", number) for number, _ in enumerate(case["input"]["then"]["items"])])
    assert [score.trained for score in then] == case["expected_detail"]["then_rewards"]


def custom_row(response, number):
    return {"domain": "faulty", "id": f"item-{number}", "prompt": "1+1?", "response": response}


def faulted(case, fault, folder):
    """The rewards of a batch of right answers, one of which brings about the fault; `None` where flagged."""
    rows = [custom_row("right", number) for number, _ in enumerate(case["input"]["items"])]
    rows[case["input"]["fault"]["item"]]["response"] = fault
    with faulty_scorer(log=folder / "log") as scorer:
        return [score.trained if score.is_judged else None for score in scorer.score(rows)]


TRUNCATIONS = [c for c in CASES if c["input"]["kind"] == "request"]


@pytest.mark.parametrize("case", TRUNCATIONS, ids=lambda case: case["id"])
def test_what_becomes_of_a_truncated_response(case, scorer, tmp_path):
    given = case["input"]
    rule, limit = given.get("truncated_reward", "zero"), 1024
    if isinstance(rule, dict):
        limit = rule["soft"]["max"]
        rule = {"soft": {"buffer": rule["soft"]["buffer"], "factor": rule["soft"]["factor"]}}
    stage = Stage.model_validate(
        {"name": "s", "domains": "math", "steps": 1, "overlong": rule, "rollout": {"max_response_tokens": limit}}
    )
    row = {
        **math_row(given),
        "truncated": given["finish_reason"] == "length",
        "tokens": given.get("response_tokens", 10),
        "group": "g",
    }
    if given["finish_reason"] == "abort":  # an aborted sample has no response, whatever text it left
        row["response"] = None
    (judged,) = Judge(scorer, stage, 0, tmp_path, 1.0).judge(0, [row]).rows
    if case["expected"] == "error-clearly":
        assert (judged["reward"], judged["masked"]) == (None, "error")
    else:
        expected = 0.0 if case["expected"] == "reject" else case["expected"]["score"]
        assert (judged["reward"], judged["masked"]) == (pytest.approx(expected), "")


def call(identifier):
    return next(case["input"] for case in CASES if case["id"] == identifier)


def test_a_call_from_another_thread_is_answered(scorer):
    found = []
    for identifier, value in (("server-threads-state-01", 1.0), ("server-threads-state-02", 0.0)):
        start = time.monotonic()
        thread = threading.Thread(target=lambda i=identifier: found.extend(scorer.score([math_row(call(i))])))
        thread.start()
        thread.join(call(identifier).get("max_seconds", 60))
        assert not thread.is_alive(), f"{time.monotonic() - start} s"
        assert (found[-1].is_judged, found[-1].value) == (True, value)


def test_a_verifier_may_be_called_from_a_thread_directly():
    from cascade_core.rows import row_response, row_task

    domain, row, found = registry().build(registry().reference("math")), math_row(call("server-threads-state-01")), []
    thread = threading.Thread(target=lambda: found.append(domain.score(row_task(row), row_response(row))))
    thread.start()
    thread.join(60)
    assert found[0].value == 1.0


def test_a_slow_item_does_not_block_the_event_loop(scorer):
    given = call("server-threads-state-03")
    slow = math_row({"response": "\\boxed{9^{9^{9^{9}}}}", "label": "2"})

    async def main():
        rows = [math_row(given, number) for number in range(given["concurrent"])] + [slow] * given["slow_items"]
        waiting = asyncio.gather(*(asyncio.wrap_future(scorer.submit(row)) for row in rows))
        beats = []
        while not waiting.done():
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            beats.append(time.perf_counter() - start)
        return await waiting, max(beats)

    with beating() as others:  # what the machine itself holds up is not the loop's
        scores, longest = asyncio.run(main())
    assert fmean(score.value for score in scores[:-1]) == 1.0
    assert longest * 1000 < 1000 + max(others) * 1000


@contextmanager
def beating():
    """How long each beat of a thread takes that has nothing to do with the loop."""
    beats, is_over = [0.0], threading.Event()

    def beat():
        while not is_over.is_set():
            start = time.perf_counter()
            time.sleep(0.005)
            beats.append(time.perf_counter() - start)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield beats
    finally:
        is_over.set()
        thread.join()


def if_row(identifier, kwargs):
    given = call(identifier)
    answer = {"instruction_id_list": [given["instruction"].split(" ")[0]], "kwargs": [kwargs]}
    return {"domain": "if", "id": identifier, "prompt": "p", "answer": answer, "response": given["response"]}


def test_equal_calls_give_equal_verdicts(scorer):
    given = call("server-threads-state-04")
    row = if_row("server-threads-state-04", {"language": given["language"]})
    found = [scorer.score([row])[0] for _ in range(given["repeat"])]
    assert {(score.value, score.error) for score in found} == {(1.0, "")}


def test_an_instruction_without_its_bounds_is_an_error_not_a_verdict_by_chance(scorer):
    found = [scorer.score([if_row("server-threads-state-05", {})])[0] for _ in range(2)]
    assert found[0].error
    assert found[0] == found[1]
