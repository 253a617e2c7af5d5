"""Our verdicts in other people's trainers: TRL for real, verl by the way its reward managers call."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from faulty import faulty_scorer, importable, ref

from cascade_core.adapters import VerlReward, outgoing, trl, trl_reward, trl_rows, verl_rows
from cascade_core.domain import Task
from cascade_core.errors import ContractError, ScoringError, TooManyFailures
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

ROOT = Path(__file__).parents[1]
TRL_WARNS = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")
TASK = Task("t", "a question", {"deep": [1, None]}, "think", "here", {"rare": 1})


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with importable(), Scorer({"faulty": ref()}, Scoring(workers=1, cpu_seconds=1, max_error_rate=1.0)) as scorer:
        yield scorer


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """The extension is there for all tests of this file, whatever was looked up before it, and gone for those after."""
    with importable():
        registry.cache_clear()
        yield
    registry.cache_clear()


def example(name: str) -> ModuleType:
    """An example, loaded from its file as verl loads it."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(reward: Callable[..., Any], texts: list[Any], **more: Any) -> Any:
    """The reward of completions, called as TRL calls: by keywords, columns as lists, its own objects beside them."""
    ids = more.pop("completion_ids", [[1, 2]] * len(texts))
    given: dict[str, Any] = {"id": ["one"] * len(texts), **more}
    state = object()
    return reward(
        prompts=["q"] * len(texts), completions=texts, completion_ids=ids, trainer_state=state, log_extra=print, **given
    )


# TRL


def test_a_task_survives_a_data_set_whose_rows_have_other_keys() -> None:
    from datasets import Dataset

    other = Task("u", "another", "7")
    column = Dataset.from_list(trl_rows("faulty", [TASK, other]))["task"]
    found = [outgoing.opened(text) for text in column]
    assert [(row["answer"], row.get("meta")) for row in found] == [({"deep": [1, None]}, {"rare": 1}), ("7", None)]


def test_the_rewards_are_the_verdicts_and_what_could_not_be_judged_is_none(scorer: Scorer) -> None:
    assert called(trl_reward(scorer), ["right", "wrong", "raise", "shown", "spin", "task"]) == [
        1.0,
        0.0,
        None,
        2.5,
        0.0,
        None,
    ]


def test_a_conversation_is_judged_by_what_the_assistant_said_last(scorer: Scorer) -> None:
    plain = [{"role": "assistant", "content": "right"}]
    parts = [{"role": "assistant", "content": [{"type": "text", "text": "ri"}, {"type": "text", "text": "ght"}]}]
    tools = [{"role": "assistant", "content": "wrong"}, {"role": "tool", "content": "x"}, *plain]
    silent: list[Any] = [{"role": "tool", "content": "right"}]
    assert called(trl_reward(scorer), [plain, parts, tools, silent, 7]) == [1.0, 1.0, 1.0, None, None]


def test_columns_may_have_other_names(scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    judge = scorer.score
    monkeypatch.setattr(scorer, "score", lambda rows: seen.extend(rows) or judge(rows))
    called(
        trl_reward(scorer, columns={"answer": "solution"}, prefill="<think>"),
        ["right"],
        solution=["42"],
        meta=[{"a": 1}],
    )
    kept = {key: seen[0][key] for key in ("domain", "answer", "meta", "prefill")}
    assert kept == {"domain": "faulty", "answer": "42", "meta": {"a": 1}, "prefill": "<think>"}


def test_a_response_that_does_not_end_in_an_end_token_was_cut(scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    judge = scorer.score
    monkeypatch.setattr(scorer, "score", lambda rows: seen.extend(rows) or judge(rows))
    called(trl_reward(scorer, ends=[2]), ["right"] * 3, completion_ids=[[1, 2], [2, 1], []])
    assert [row["truncated"] for row in seen] == [False, True, True]


def test_a_damaged_task_column_fails_its_own_sample(scorer: Scorer) -> None:
    tasks = [outgoing.carried("faulty", TASK), "{", "[]", "7"]
    assert called(trl_reward(scorer), ["right"] * 4, task=tasks) == [1.0, None, None, None]


def test_too_many_failures_end_the_training(scorer: Scorer) -> None:
    scorer = replace_rate(scorer, 0.02)
    with pytest.raises(TooManyFailures, match=r"20 of the last 20 samples .* no verdict"):
        called(trl_reward(scorer), ["raise"] * 20)
    reward = trl_reward(scorer)
    for _ in range(24):
        called(reward, ["right"] * 20)
    with pytest.raises(TooManyFailures, match="11 of the last 500"):
        called(reward, ["raise"] * 11 + ["right"] * 9)


def replace_rate(scorer: Scorer, rate: float) -> Scorer:
    """The same workers, under another allowance."""
    other = Scorer.__new__(Scorer)
    other.__dict__.update(scorer.__dict__, settings=scorer.settings.model_copy(update={"max_error_rate": rate}))
    return other


def test_the_trainers_log_is_told_what_the_mean_leaves_out(scorer: Scorer) -> None:
    told: dict[str, float] = {}
    called(trl_reward(scorer), ["right", "wrong", "raise", "spin"], log_metric=told.__setitem__)
    assert told == {"cascade/failed": 0.25, "cascade/limit": 0.25, "cascade/value": pytest.approx(1 / 3)}


def test_a_domain_with_rewards_of_its_own_gets_whole_groups() -> None:
    with faulty_scorer() as many, pytest.raises(ContractError, match="whole batch"):
        trl_reward(many)
    with Scorer({"grouped": ref("grouped")}, Scoring(workers=1)) as scorer:
        with pytest.raises(ContractError, match="group_size"):
            trl_reward(scorer)
        reward = trl_reward(scorer, group_size=3)
        found = called(reward, ["right", "raise", "right", "right", "wrong", "right"], id=["a"] * 3 + ["b"] * 3)
        assert found == [2.0, None, 2.0, 3.0, 0.0, 3.0]  # times the group's judged samples
        for ids in (["a"] * 4, ["a", "a", "b", "a", "a", "a"]):
            with pytest.raises(ContractError, match="whole groups"):
                called(reward, ["right"] * len(ids), id=ids)


def test_group_rewards_that_fail_are_none_and_counted() -> None:
    with Scorer({"grouped": ref("grouped", fault="nan")}, Scoring(workers=1, max_error_rate=1.0)) as scorer:
        told: dict[str, float] = {}
        assert called(trl_reward(scorer, group_size=2), ["right"] * 2, log_metric=told.__setitem__) == [None, None]
        assert told["cascade/failed"] == 1.0


def test_a_trl_that_makes_zeros_of_none_is_refused(scorer: Scorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trl, "version", lambda name: "1.5.1")
    with pytest.raises(ContractError, match=r"TRL 1\.5\.1 makes a reward of 0"):
        trl_reward(scorer)
    monkeypatch.setattr(trl, "version", lambda name: "1.10.0.dev0")
    assert trl_reward(scorer)


@TRL_WARNS
@pytest.mark.slow
@pytest.mark.parametrize(
    "chat", ["", "{% for turn in messages %}{{ turn.content }}{% endfor %}"], ids=["plain", "chat"]
)
def test_the_trl_example_trains_and_every_sample_is_judged(chat: str, tmp_path: Path) -> None:
    logged = example("trl_reward").main(2, tmp_path, chat)
    assert len(logged) == 2
    assert all(line["cascade/failed"] == 0.0 and 0.0 <= line["reward"] <= 1.0 for line in logged)


@TRL_WARNS
@pytest.mark.slow
def test_trl_gives_a_sample_that_could_not_be_judged_no_advantage_and_no_part_in_the_mean(
    scorer: Scorer, tmp_path: Path
) -> None:
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from cascade_core.initial import make
    from cascade_core.settings import InitModel

    make(InitModel(hidden_size=16, layers=1, heads=2, context=32), 1, tmp_path / "start")
    words = ["right", "wrong", "raise", "right"]
    judged = trl_reward(scorer)

    def reward(completions: list[Any], **given: Any) -> list[float | None]:
        return judged(completions=words, **given)

    args = GRPOConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=4,
        logging_steps=1, save_strategy="no", report_to="none", use_cpu=True, bf16=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(tmp_path / "start"),
        reward_funcs=reward,
        args=args,
        train_dataset=Dataset.from_list(trl_rows("faulty", [TASK], plain=True)),
        processing_class=AutoTokenizer.from_pretrained(tmp_path / "start"),
    )
    trainer.train()
    high, low, none, again = trainer._logs["advantages"]
    assert none == 0.0
    assert high == again == pytest.approx(-low / 2)  # about the mean of three, 2/3
    assert trainer.state.log_history[0]["reward"] == pytest.approx(2 / 3)


# verl


def made(**limits: Any) -> Callable[[], Scorer]:
    return lambda: Scorer({"faulty": ref()}, Scoring(**{"workers": 1, "max_error_rate": 1.0, **limits}))


@pytest.fixture(scope="module")
def verl() -> Iterator[VerlReward]:
    reward = VerlReward(made(), sources={"elsewhere": "faulty"})
    yield reward
    reward.close()


def test_verl_gets_a_dictionary_with_the_score_and_always_the_same_keys(verl: VerlReward) -> None:
    found = [
        verl.compute_score(data_source="elsewhere", solution_str=text, ground_truth="x", extra_info={"num_turns": None})
        for text in ("right", "wrong", "shown")
    ]
    assert [one["score"] for one in found] == [1.0, 0.0, 2.5]
    assert {tuple(one) for one in found} == {("score", "value", "judged", "limit")}


def test_a_data_source_of_no_domain_is_told_with_what_says_which_it_is() -> None:
    reward = VerlReward(lambda: Scorer({"faulty": ref(), "other": ref()}, Scoring(workers=1, max_error_rate=1.0)))
    try:
        with pytest.raises(ScoringError, match="no domain of data_source 'gsm': sources must say .*faulty, other"):
            reward.compute_score("gsm", "right", "x")
    finally:
        reward.close()


def test_verls_batch_manager_gets_the_same_as_one_by_one(verl: VerlReward) -> None:
    texts = ["right", "wrong", "shown"] * 3
    whole = verl.compute_scores(
        data_sources=["faulty"] * 9, solution_strs=texts, ground_truths=[None] * 9, extra_infos=[{}] * 9, more=1
    )
    assert whole == [verl.compute_score("faulty", text, None) for text in texts]


def test_verls_reward_loop_awaits_many_at_once(verl: VerlReward) -> None:
    async def many() -> list[dict[str, float]]:
        return await asyncio.gather(
            *(
                verl.compute_score_async("faulty", f"{'right' if i % 2 else 'wrong'}", None, {"index": i})
                for i in range(200)
            )
        )

    assert asyncio.iscoroutinefunction(verl.compute_score_async)
    assert [one["score"] for one in asyncio.run(many())] == [float(i % 2) for i in range(200)]


def test_verl_is_told_by_an_exception_what_could_not_be_judged_and_never_by_a_zero(verl: VerlReward) -> None:
    for text in ("raise", "task"):
        with pytest.raises(
            ScoringError, match=r"task 'faulty/3' could not be judged, and verl cannot leave a sample out"
        ):
            verl.compute_score("faulty", text, None, {"index": 3})
        with pytest.raises(ScoringError):
            asyncio.run(verl.compute_score_async("faulty", text, None))
        with pytest.raises(ScoringError):
            verl.compute_scores(["faulty"] * 2, ["right", text], [None] * 2, [{}, {}])


def test_verl_takes_what_its_user_says_an_unjudged_sample_is_worth_up_to_the_allowed_share() -> None:
    reward = VerlReward(made(max_error_rate=0.5), unjudged=-1.0)
    found = reward.compute_score("faulty", "raise", None)
    assert (found["score"], found["judged"]) == (-1.0, 0.0)
    with pytest.raises(TooManyFailures):
        reward.compute_scores(["faulty"] * 20, ["raise"] * 20, [None] * 20, [{}] * 20)
    reward.close()


def test_verl_judges_the_task_that_its_row_carries(verl: VerlReward, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = verl_rows("faulty", [TASK])
    assert row["prompt"] == [{"role": "user", "content": "a question"}]
    assert json.loads(row["reward_model"]["ground_truth"]) == TASK.answer
    scorer, _ = verl._ready()
    seen: list[Any] = []
    judge = scorer.score
    monkeypatch.setattr(scorer, "score", lambda rows: seen.extend(rows) or judge(rows))
    verl.compute_score(row["data_source"], "right", row["reward_model"]["ground_truth"], row["extra_info"])
    assert {key: seen[0][key] for key in ("id", "prompt", "answer", "mode", "meta")} == {
        "id": "t", "prompt": "a question", "answer": {"deep": [1, None]}, "mode": "think", "meta": {"rare": 1},
    }  # fmt: skip


def test_verls_threads_share_one_scorer_and_another_process_makes_its_own() -> None:
    begun: list[Scorer] = []
    reward = VerlReward(lambda: begun.append(made()()) or begun[-1])  # type: ignore[func-returns-value]
    threads = [threading.Thread(target=reward.compute_score, args=("faulty", "right", None)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1
    reward.close()
    copy = pickle.loads(pickle.dumps(VerlReward(_make)))
    assert copy.compute_score("faulty", "right", None)["score"] == 1.0
    copy.close()


def _make() -> Scorer:
    return made()()


def test_verl_refuses_a_domain_that_makes_its_rewards_of_the_group() -> None:
    reward = VerlReward(lambda: Scorer({"grouped": ref("grouped")}, Scoring(workers=1)))
    with pytest.raises(ContractError, match="makes its rewards of the group"):
        reward.compute_score("grouped", "right", None)


def test_the_verl_example_judges_the_rows_that_it_wrote(tmp_path: Path) -> None:
    import pyarrow.parquet

    module = example("verl_reward")
    module.DOMAINS.clear()
    module.DOMAINS["math"] = {"generator": {"name": "arithmetic", "max_a": 9, "max_b": 9}}
    module.write("math", tmp_path / "train.parquet", 4)
    try:
        for row in pyarrow.parquet.read_table(tmp_path / "train.parquet").to_pylist():
            answer = row["reward_model"]["ground_truth"]
            for said, worth in ((f"\\boxed{{{json.loads(answer)['label']}}}", 1.0), ("\\boxed{100000}", 0.0)):
                found = module.compute_score(
                    data_source=row["data_source"], solution_str=said, ground_truth=answer, extra_info=row["extra_info"]
                )
                assert found["score"] == worth
        plain = module.compute_score(
            "openai/gsm8k", "so \\boxed{72}", "72", {"index": 0}
        )  # a data set of somebody else's
        assert plain["score"] == 1.0
    finally:
        module.reward.close()
