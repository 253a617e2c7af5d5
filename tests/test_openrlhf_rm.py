"""Reward_model stages with OpenRLHF: tokens that nothing changes, a job's end and its checkpoint, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import openrlhf_pass_rig as rig
import pytest
import tiny_stage as tiny
import torch
from hypothesis import given
from hypothesis import strategies as st
from openrlhf_flags import parser
from openrlhf_pass_rig import events
from transformers import AutoModel

from cascade_core import rehearsal
from cascade_core.errors import SpecError, TrainerError
from cascade_core.plan import plan
from cascade_core.pretrained import load_tokenizer as policy_tokenizer
from cascade_core.reward_model import RewardReader, Text, load_model, load_tokenizer, tokens
from cascade_core.settings import Engine
from cascade_core.spec import check, load
from cascade_core.trainers import Job
from cascade_core.trainers.openrlhf import OpenRlhfTrainer
from cascade_core.trainers.openrlhf_args import native
from cascade_core.trainers.openrlhf_parser import VERSIONS, recorded
from cascade_core.trainers.openrlhf_rm import classifier, end
from cascade_core.trainers.openrlhf_sizes import Cluster
from cascade_core.trainers.openrlhf_words import lend, words
from cascade_core.trainers.preference import Example, example

ONE = Cluster()
TEMPLATE = "{% for turn in messages %}[{{ turn.role }}]{{ turn.content }}<unk>\n{% endfor %}"
"""It ends every text on a line end, not on the end token."""
SPEC = """
name: pairs
trainer: openrlhf
model: {init: {context: 64}}
domains: {rlhf: {}}
resources: {reward_model: {server: {model: "stage:rm"}}}
evaluation: {sampling: {max_response_tokens: 8}}
stages:
  - {name: rm, kind: reward_model, domains: rlhf, steps: 3, batch_size: 8, micro_batch: 4, optim: {lr: 1e-3}}
"""


def pairs(count: int) -> list[dict[str, Any]]:
    """The chosen text of the n-th is n + 7 tokens long, its prompt and its end, spelled out, among them."""
    return [
        {"domain": "tiny", "id": f"p{n}", "prompt": "a", "chosen": "b" * (n + 1), "rejected": "c"} for n in range(count)
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.model(tmp_path_factory.mktemp("rm") / "model")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return rig.engine_in(tmp_path_factory.mktemp("engine"))


def train(folder: Path, engine: Engine, rows: Any = None, **changes: Any) -> Job:
    return rig.train("reward_model", folder, engine, pairs(24) if rows is None else rows, **changes)


def read_as_openrlhf_does(tokenizer: Any, text: str) -> list[int]:
    """What `RewardDataset` makes of a text."""
    text = text.rstrip("\n")
    if not text.endswith(tokenizer.eos_token):
        text += " " + tokenizer.eos_token
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return [*ids[:-1], tokenizer.eos_token_id]


@given(
    texts=st.lists(
        st.tuples(st.text("ab red\n<1>", max_size=12), st.text("blue \n<17>", max_size=9)), min_size=1, max_size=4
    )
)
def test_openrlhf_reads_exactly_the_tokens_that_every_trainer_trains_on(
    texts: list[tuple[str, str]], model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, tokenizer = tmp_path_factory.mktemp("lent"), load_tokenizer(model)
    rows = [{"id": str(n), "prompt": ask, "chosen": say, "rejected": "b"} for n, (ask, say) in enumerate(texts)]
    examples = [example(tokenizer, row, None) for row in rows]
    lend(model, folder, tokenizer, end(examples))
    lent = policy_tokenizer(folder)
    for one in examples:
        for side in one.values():
            assert read_as_openrlhf_does(lent, words(side.ids)) == side.ids


def test_a_head_that_openrlhf_trained_is_named_by_the_flags_alone(model: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in model.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    config = json.loads((source / "config.json").read_text())
    trained = {"value_head_prefix": "value_head", "mean": 1.0, "std": 2.0, "normalize_reward": True}
    (source / "config.json").write_text(json.dumps({**config, **trained}))
    lend(source, tmp_path / "lent", load_tokenizer(source), 1)
    assert json.loads((tmp_path / "lent" / "config.json").read_text()) == config


@pytest.fixture(scope="module")
def done(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Job:
    return train(tmp_path_factory.mktemp("done") / "stage", engine)


def test_a_stage_is_trained_for_exactly_its_steps_on_its_own_pairs(done: Job) -> None:
    told = events(done.folder, "step")
    assert [event["step"] for event in told] == list(range(6))
    assert [event["loss"] for event in told] == [4 * step + 8.5 for step in range(6)]
    assert {event["accuracy"] for event in told} == {0.75} and {event["grad_norm"] for event in told} == {0.25}
    assert [event["lr"] for event in told] == pytest.approx([1e-2, *(1e-2 / (step + 1) for step in range(1, 6))])
    assert [event["step"] for event in events(done.folder, "checkpoint")][-1] == 6


def test_the_checkpoint_is_a_classifier_whose_scores_are_those_of_the_head(done: Job) -> None:
    config = json.loads((done.output / "config.json").read_text())
    assert config["architectures"] == ["LlamaForSequenceClassification"] and config["id2label"] == {"0": "LABEL_0"}
    before = json.loads((done.model / "config.json").read_text())
    assert not {"value_head_prefix", "normalize_reward", "mean", "std"} & set(config)
    assert config["use_cache"] == before["use_cache"] and config["pad_token_id"] != before["eos_token_id"]
    assert load_model(done.output).config.num_labels == 1  # with a head: it is not to be made anew
    reader = RewardReader(done.output, 2)
    texts = [tokens(reader.tokenizer, row, row["chosen"]) for row in pairs(8)]
    body = AutoModel.from_pretrained(done.model)
    with torch.no_grad():
        wanted = [float(body(torch.tensor([text.ids])).last_hidden_state[0, -1, 0]) for text in texts]
    assert reader.scores(texts) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.drill
def test_a_reward_model_is_trained_on_from_one(done: Job, engine: Engine, tmp_path: Path) -> None:
    again = train(tmp_path / "again", engine, start=done.output, steps=2)  # which has no head of a policy
    assert load_model(again.output).config.num_labels == 1


@pytest.mark.drill
def test_a_job_that_was_killed_goes_on_from_its_checkpoint(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", "die 3")
    with pytest.raises(TrainerError, match=r"ended with status 137 at step \d of 6"):
        train(folder, engine)
    assert OpenRlhfTrainer().resume_step(folder) == 2
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    train(folder, engine)
    told = {event["step"]: (event["loss"], event["accuracy"]) for event in events(folder, "step")}
    assert told == {step: (4 * step + 8.5, 0.75) for step in range(6)}
    assert (folder / "checkpoint").is_dir()


@pytest.mark.drill
def test_other_weights_than_a_classifiers_are_not_handed_on(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "odd")
    with pytest.raises(TrainerError, match=r"LlamaForSequenceClassification has, such as 'odd\.weight'"):
        train(tmp_path / "stage", engine, steps=2)
    assert not (tmp_path / "stage" / "checkpoint").exists()


def made_of(*ids: list[int], types: list[int] | None = None) -> Example:
    return {side: Text(one, types) for side, one in zip(("chosen", "rejected"), ids, strict=True)}


def test_texts_that_do_not_end_on_one_token_are_refused() -> None:
    assert end([made_of([5, 7], [6, 7]), made_of([7], [8, 9, 7])]) == 7
    with pytest.raises(TrainerError, match="all end on one token, .* use trainer trl"):
        end([made_of([5, 7], [6, 8])])
    with pytest.raises(TrainerError, match="this tokenizer makes pairs; use trainer trl"):
        end([made_of([5, 7], [6, 7], types=[0, 1])])


def test_a_model_with_another_head_is_refused(tmp_path: Path) -> None:
    from transformers import BertConfig

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertConfig(vocab_size=20, **sizes).save_pretrained(tmp_path)
    with pytest.raises(TrainerError, match="BertForSequenceClassification has another head than OpenRLHF trains"):
        classifier(tmp_path)


@pytest.mark.parametrize(
    ("prompt", "changes", "told"),
    [
        ("a" * 50, {}, "'long' makes 57 tokens with its prompt, more than the model's context of 48"),
        ("a" * 30, {"trainer_args": {"data.max_len": 20}}, "'long' has 37 tokens, and data.max_len is 20; raise"),
    ],
)
def test_what_does_not_fit_is_refused_and_never_cut(
    prompt: str, changes: dict[str, Any], told: str, tmp_path: Path, engine: Engine
) -> None:
    row = {"domain": "tiny", "id": "long", "prompt": prompt, "chosen": "bc", "rejected": "c"}
    with pytest.raises(TrainerError, match=re.escape(told)):
        train(tmp_path / "stage", engine, rows=[row] * 4, steps=1, **changes)


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("data.disable_fast_tokenizer", True, "pairs are tokenized by the run"),
        ("data.prompt_key", "prompt", "cannot be set"),
        ("eval.dataset", "held.jsonl", "the run evaluates by itself"),
        ("model.loss_type", "logexp", "the loss is Bradley and Terry's"),
        ("model.margin_loss_enable", True, "the loss is Bradley and Terry's"),
        ("ds.value_head_prefix", "value_head", "the head is called as transformers calls it"),
        ("train.batch_size", 4, "set batch_size instead"),
        ("train.max_epochs", 2, "set steps instead"),
        ("ds.lora.rank", 8, "whole model"),
        ("vllm.num_engines", 2, "is no flag of OpenRLHF"),
    ],
)
def test_flags_that_would_change_what_a_reward_model_stage_means_are_refused(flag: str, value: Any, told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        native(tiny.stage("reward_model", trainer_args={flag: value}), ONE, recorded("reward_model", VERSIONS[0]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_command_on_a_cpu_has_flags_of_its_own_program_alone(version: str) -> None:
    known = recorded("reward_model", version)
    stage = tiny.stage("reward_model", trainer_args={"ds.packing_samples": True})
    flags, changed = rehearsal.on_cpu(native(stage, ONE, known))
    assert set(flags) <= set(known.flags) and flags["ds.attn_implementation"] == "sdpa"
    assert [one.flag for one in changed] == ["ds.packing_samples"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_prints_the_command_of_a_reward_model_stage_and_its_program_takes_it(
    version: str, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho openrlhf {version}\n")
    python.chmod(0o755)
    (tmp_path / "spec.yaml").write_text(SPEC)
    changes = [f"engine.python={python}", "engine.gpus=2"]
    loaded = load(tmp_path / "spec.yaml", changes)
    (stage,) = plan(loaded, check(loaded, tmp_path / "spec.yaml", changes)).stages
    start = [str(python), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--module"]
    assert list(stage.command[:7]) == [*start, "openrlhf.cli.train_rm"]
    found = vars(parser(recorded("reward_model", version)).parse_args(list(stage.command[7:])))
    assert found["model.model_name_or_path"].endswith("trainer/model") and found["ds.value_head_prefix"] == "score"
    assert (found["train.batch_size"], found["train.micro_batch_size"], found["data.max_samples"]) == (8, 4, 24)
    assert found["eval.dataset"] != found["data.dataset"] and not found["ckpt.load_enable"]
