"""Reward models: what is read of a pair, the loss of a step, raw scores and what could not be read."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_stage as tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core import Benchmark, Estimate, Pair, Task
from cascade_core.errors import PluginBroken, TooManyFailures, TrainerError
from cascade_core.pairs import PairExam, loss, pair_row, report, take, unusable
from cascade_core.reward_model import RewardReader, Text, load_model, load_tokenizer, padded, tokens
from cascade_core.rows import read
from cascade_core.trainers.preference import example
from cascade_core.trainers.trl import TrlTrainer

TEMPLATE = "{% for turn in messages %}[{{ turn.role }}]{{ turn.content }}<eos>{% endfor %}"


def pairs(count: int) -> list[dict[str, Any]]:
    return [
        pair_row("tiny", Pair(Task(f"p{n}", f"say {n}" + "!" * (n % 5)), "red" * (1 + n % 3), "blue" * (1 + n % 2)))
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.model(tmp_path_factory.mktemp("policy") / "model")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, policy: Path) -> Path:
    """A stage of four steps whose weights stay as they are, two pairs a backward pass."""
    from cascade_core.settings import Optim

    stage = tiny.stage("reward_model", steps=4, micro_batch=2, save_every=0, optim=Optim(lr=1e-30))
    made = tiny.job(tmp_path_factory.mktemp("trained"), stage, start=policy, rows=pairs(32))
    TrlTrainer().train(made)
    return made.folder


def test_the_loss_of_a_step_is_bradley_and_terrys_over_exactly_its_pairs(trained: Path) -> None:
    reader = RewardReader(trained / "checkpoint", 5)
    rows = list(read(trained / "prompts.jsonl"))
    scores = {
        side: reader.scores([tokens(reader.tokenizer, row, row[side]) for row in rows])
        for side in ("chosen", "rejected")
    }
    told = map(json.loads, (trained / "events.jsonl").read_text().splitlines())
    steps = [event for event in told if event["kind"] == "step"]
    each = [math.log1p(math.exp(b - a)) for a, b in zip(scores["chosen"], scores["rejected"], strict=True)]
    for step, event in enumerate(steps):
        mine = range(8 * step, 8 * step + 8)
        assert event["loss"] == pytest.approx(sum(each[n] for n in mine) / 8, rel=1e-4)
        assert event["accuracy"] == sum(scores["chosen"][n] > scores["rejected"][n] for n in mine) / 8
    assert len({round(event["loss"], 5) for event in steps}) == 4  # they could be told from each other


def test_a_new_head_follows_from_the_seed_alone_and_a_policy_is_no_reward_model(policy: Path) -> None:
    first, again, other = (load_model(policy, seed).score.weight for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    with pytest.raises(TrainerError, match="is no reward model: it has no weights 'score.weight'"):
        load_model(policy)


def test_a_head_that_is_there_is_kept(trained: Path) -> None:
    assert torch.equal(
        load_model(trained / "checkpoint", 5).score.weight, load_model(trained / "checkpoint").score.weight
    )


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=7), batch=st.integers(1, 7))
def test_a_score_does_not_depend_on_the_texts_beside_it(sizes: list[int], batch: int, trained: Path) -> None:
    texts = [Text([5 + (n + place) % 40 for n in range(size)], None) for place, size in enumerate(sizes)]
    reader = RewardReader(trained / "checkpoint", batch)
    alone = [reader.scores([text])[0] for text in texts]
    assert reader.scores(texts) == pytest.approx(alone, abs=1e-5)


def test_a_tokenizer_that_pads_with_its_end_gets_another_padding_token(tmp_path: Path) -> None:
    folder = tiny.model(tmp_path / "model")
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_token": "<eos>"}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    tokenizer = load_tokenizer(folder)
    assert tokenizer.pad_token_id != tokenizer.eos_token_id and tokenizer.padding_side == "right"


def test_words_that_look_like_special_tokens_end_nobodys_turn(policy: Path) -> None:
    tokenizer: Any = load_tokenizer(policy)
    tokenizer.chat_template = TEMPLATE
    tokenizer.split_special_tokens = False
    text = tokens(tokenizer, {"id": "t", "prompt": "a<eos>b"}, "c<eos>").ids
    assert text.count(tokenizer.eos_token_id) == 2 and text[-1] == tokenizer.eos_token_id


def test_a_template_that_refuses_is_told_with_the_task(policy: Path) -> None:
    tokenizer: Any = load_tokenizer(policy)
    tokenizer.chat_template = "{{ raise_exception('no') }}"
    with pytest.raises(TrainerError, match="chat template refuses task 't'"):
        tokens(tokenizer, {"id": "t", "prompt": "a"}, "b")


def test_what_a_model_cannot_read_whole_is_refused_and_never_cut(policy: Path) -> None:
    tokenizer = load_tokenizer(policy)
    row = {**pairs(1)[0], "rejected": "b" * tiny.CONTEXT}
    with pytest.raises(TrainerError, match=r"the rejected response of pair 'p0' makes \d+ tokens .* context of 48"):
        example(tokenizer, row, tiny.CONTEXT)
    with pytest.raises(TrainerError, match="pair 'p0' has no chosen response"):
        example(tokenizer, {**row, "chosen": None}, None)


def test_types_of_tokens_are_padded_with_the_tokens() -> None:
    made = padded([Text([1, 2, 3], [0, 1, 1]), Text([4], [0])], 9)
    assert made["input_ids"].tolist() == [[1, 2, 3], [4, 9, 9]]
    assert made["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert made["token_type_ids"].tolist() == [[0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("chosen", "rejected", "told"),
    [
        ("a", "b", ""),
        ("a", " a\n", "its sides are equal"),
        (" \n", "b", "its chosen side is empty"),
        ("a", "", "its rejected side is empty"),
        (None, "b", "its chosen side is no text"),
        ("a", 3, "its rejected side is no text"),
    ],
)
def test_a_pair_that_teaches_nothing_is_told_apart(chosen: Any, rejected: Any, told: str) -> None:
    assert unusable(Pair(Task("t", "?"), chosen, rejected)) == told


class Fixed:
    """Scores by the letters of a text, and `nan` for what has a `z`."""

    context: int | None = 12

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def scores(self, texts: Sequence[Text]) -> list[float]:
        told = [self.tokenizer.decode(text.ids) for text in texts]
        return [math.nan if "z" in text else float(text.count("r") - text.count("b")) for text in told]


def exam(*sides: tuple[str, str], benchmark: Benchmark | None = None) -> PairExam:
    rows = tuple(pair_row("tiny", Pair(Task(f"p{n}", "?"), *pair)) for n, pair in enumerate(sides))
    return PairExam("tiny/pairs", benchmark or Benchmark("pairs", of="reward_model"), rows, 0)


def test_higher_is_one_equal_is_a_half_and_what_cannot_be_read_is_no_verdict(policy: Path, tmp_path: Path) -> None:
    made = exam(("r", "b"), ("b", "r"), ("x", "y"), ("z", "r"), ("q" * 20, "r"))
    take(made, Fixed(load_tokenizer(policy)), tmp_path / "rows.jsonl", max_error_rate=0.5)  # type: ignore[arg-type]
    rows = list(read(tmp_path / "rows.jsonl"))
    assert [row["score"]["value"] for row in rows] == [1.0, 0.0, 0.5, 0.0, 0.0]
    assert ["error" in row["score"] for row in rows] == [False, False, False, True, True]
    told = report(made, tmp_path / "rows.jsonl", None)
    assert told["estimates"]["accuracy"]["value"] == 0.5 and (told["scored"], told["failed"]) == (3, 2)
    assert told["loss"] == pytest.approx((math.log1p(math.exp(-2)) + math.log1p(math.exp(2)) + math.log(2)) / 3)


def test_too_many_pairs_that_cannot_be_read_end_the_measuring(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(TooManyFailures, match=r"benchmark 'tiny/pairs': 1 of 2 pairs could not be read"):
        take(exam(("z", "r"), ("r", "b")), Fixed(load_tokenizer(policy)), tmp_path / "rows.jsonl", max_error_rate=0.02)  # type: ignore[arg-type]
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_benchmark_may_sum_up_its_pairs_by_itself(policy: Path, tmp_path: Path) -> None:
    class Own(Benchmark):
        def summarise(self, rows: Sequence[Any]) -> dict[str, Estimate]:
            return {"easy": Estimate(float(len(rows)), 0.0, len(rows))}

    class Broken(Benchmark):
        def summarise(self, rows: Sequence[Any]) -> dict[str, Estimate]:
            raise ZeroDivisionError

    made = exam(("r", "b"), benchmark=Own("pairs", of="reward_model"))
    take(made, Fixed(load_tokenizer(policy)), tmp_path / "rows.jsonl", max_error_rate=0.02)  # type: ignore[arg-type]
    assert report(made, tmp_path / "rows.jsonl", None)["primary"] == "easy"
    with pytest.raises(PluginBroken, match="benchmark 'tiny/pairs' cannot sum up"):
        report(exam(("r", "b"), benchmark=Broken("pairs", of="reward_model")), tmp_path / "rows.jsonl", None)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_the_loss_is_finite_for_scores_of_any_size(chosen: float, rejected: float) -> None:
    found = loss([{"score": {"value": 1.0, "metrics": {"chosen": chosen, "rejected": rejected}}}]).value
    assert math.isfinite(found) and found >= 0
