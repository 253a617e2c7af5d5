"""What a rehearsal makes small: the spec, with everything that it changes told, and the model, with nothing of its tokenizer changed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rehearsed import TEMPLATE, model

from cascade_core.errors import SpecError
from cascade_core.pretrained import load_model, load_tokenizer
from cascade_core.rehearsal import tiny
from cascade_core.rehearsal.shrink import shrunk
from cascade_core.settings import Model, Spec, Stage
from cascade_core.template import encode
from cascade_core.trainers.openrlhf import OpenRlhfTrainer


class Trainer:
    """Has no flags."""

    name, engine = "any", None

    def settings(self, stage):
        return {}


class Found:
    def trainer(self, name):
        return Trainer


SIZES = st.integers(1, 300)
OVERLONG = st.one_of(st.sampled_from(["mask", "zero", "keep"]), st.builds(lambda n: {"soft": {"buffer": n}}, SIZES))


@st.composite
def stages(draw):
    """A stage of either kind with sizes of all kinds, as a spec may have it."""
    steps, response = draw(SIZES), draw(st.integers(2, 4000))
    warmup = draw(st.integers(0, steps))
    decay = draw(st.sampled_from([0, steps - warmup, (steps - warmup) // 2]))
    optim = {"warmup_steps": warmup, **({"schedule": "linear", "decay_steps": decay} if decay else {})}
    data = {"name": "s", "steps": steps, "save_every": draw(st.integers(0, 50)), "optim": optim, "domains": "a"}
    if draw(st.booleans()):
        return {**data, "kind": "sft", "batch_size": draw(SIZES), "micro_batch": draw(SIZES)}
    overlong = draw(OVERLONG)
    if isinstance(overlong, dict):
        overlong["soft"]["buffer"] = min(overlong["soft"]["buffer"], response - 1)
    rollout = {
        "prompts_per_step": draw(SIZES),
        "samples_per_prompt": draw(st.integers(2, 64)),
        "max_response_tokens": response,
    }
    more = {"micro_batch": draw(SIZES)} if draw(st.booleans()) else {}
    return {**data, "overlong": overlong, "rollout": rollout, **more}


def flat(data, before=""):
    """Dotted names to values."""
    for name, value in data.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield before + name, value


@settings(max_examples=60, deadline=None)
@given(stages(), st.integers(1, 5))
def test_a_smaller_stage_is_one_that_can_be_and_every_change_is_told(tmp_path_factory, stage, steps):
    spec = Spec.model_validate({"name": "n", "model": "a/b", "domains": {"a": {}}, "stages": [stage]})
    small, replaced = shrunk(spec, tmp_path_factory.getbasetemp() / "m", None, steps, Found())
    before, after = (dict(flat(one.stages[0].model_dump(mode="json"))) for one in (spec, small))
    assert {one.setting: (one.before, one.after) for one in replaced} == {
        name: (before[name], after[name]) for name in before if before[name] != after[name]
    }
    made: Stage = small.stages[0]
    size = made.batch_size if made.kind == "sft" else made.rollout.prompts_per_step * made.rollout.samples_per_prompt
    assert made.steps <= steps and size <= 16 and size % (made.micro_batch or 1) == 0
    assert all(one.reason and str(one).startswith("stage s: ") for one in replaced)


def test_every_domain_of_a_stage_is_in_its_smaller_steps(tmp_path):
    names = [f"d{number}" for number in range(7)]
    spec = Spec.model_validate(
        {
            "name": "n",
            "model": "a/b",
            "domains": {name: {} for name in names},
            "stages": [{"name": "s", "domains": names, "steps": 9}],
        }
    )
    small, _ = shrunk(spec, tmp_path, None, 2, Found())
    assert small.stages[0].rollout.prompts_per_step == 7


def test_what_a_rehearsal_has_no_use_for_is_left_out(tmp_path):
    spec = Spec.model_validate(
        {
            "name": "n",
            "model": "a/b",
            "domains": {"a": {}},
            "stages": [{"name": "s", "domains": "a", "steps": 9}],
            "trackers": {"notes": {"path": "x"}},
            "engine": {"gpus": 8, "stall_seconds": 100.0},
            "scoring": {"workers": 1024, "cpu_seconds": 3.0},
        }
    )
    small, _ = shrunk(spec, tmp_path, "/env/bin/python", 2, Found())
    assert small.trackers == {} and small.model.path == str(tmp_path)
    assert (small.engine.cpu, small.engine.python, small.engine.gpus, small.engine.stall_seconds) == (
        True,
        "/env/bin/python",
        1,
        100.0,
    )
    assert isinstance(small.scoring.workers, int) and small.scoring.workers < 1024 and small.scoring.cpu_seconds == 3.0


def test_a_stage_that_trains_and_samples_at_once_on_a_cluster_is_tried_with_one_process_of_each(tmp_path):
    class Driven(Found):
        def trainer(self, name):
            return OpenRlhfTrainer

    beside = {"train.async_enable": True, "actor.num_nodes": 1, "actor.num_gpus_per_node": 4, "vllm.num_engines": 4}
    spec = Spec.model_validate(
        {
            "name": "n",
            "model": "a/b",
            "trainer": "openrlhf",
            "domains": {"a": {}},
            "stages": [{"name": "s", "domains": "a", "steps": 9, "kl": 0.1, "trainer_args": beside}],
            "engine": {"gpus": 8},
        }
    )
    small, replaced = shrunk(spec, tmp_path, None, 2, Driven())
    assert small.stages[0].trainer_args == {}
    told = {one.setting: (one.before, one.after) for one in replaced}
    assert (told["actor.num_gpus_per_node"], told["vllm.num_engines"]) == ((4, 1), (4, 1))
    assert told["train.async_enable"] == (True, None)


CONFIGS = ["llama", "qwen2", "qwen3", "mistral", "gemma2", "phi3", "gpt2", "olmo2", "qwen3_moe"]


def of_kind(folder, kind):
    """A model folder whose `config.json` is that of a large model of another architecture."""
    from transformers import AutoConfig

    model(folder, template=TEMPLATE)
    AutoConfig.for_model(kind).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_tiny_model_is_of_the_same_kind_and_reads_the_same_tokens(tmp_path, kind):
    folder = of_kind(tmp_path / "model", kind)
    assert tiny.make(Model(path=str(folder)), 1, tmp_path / "tiny") == []
    assert json.loads((tmp_path / "tiny" / "config.json").read_text())["model_type"] == kind
    made, ours, theirs = load_model(tmp_path / "tiny"), load_tokenizer(tmp_path / "tiny"), load_tokenizer(folder)
    row = {"id": "t", "prompt": "What is <user>1+1?"}
    assert encode(ours, row) == encode(theirs, row)
    assert (ours.chat_template, ours.eos_token, len(ours)) == (TEMPLATE, theirs.eos_token, len(theirs))
    assert made.config.vocab_size == len(ours) and sum(one.numel() for one in made.parameters()) < 1_000_000


def test_a_model_that_cannot_be_made_small_has_a_stand_in_and_that_is_said(tmp_path):
    folder = of_kind(tmp_path / "model", "falcon")
    (note,) = tiny.make(Model(path=str(folder)), 1, tmp_path / "tiny")
    assert note.startswith("a model of type 'falcon' could not be made small, so that a Qwen2 stands in for it: ")
    assert json.loads((tmp_path / "tiny" / "config.json").read_text())["max_position_embeddings"] == 2048


def test_weights_of_the_model_are_not_looked_at(tmp_path):
    folder = of_kind(tmp_path / "model", "qwen2")
    (folder / "model.safetensors").write_bytes(b"no weights")
    assert tiny.make(Model(path=str(folder)), 1, tmp_path / "tiny") == []


def test_a_model_that_the_run_makes_is_made_smaller_with_its_own_tokenizer(tmp_path):
    init = {"hidden_size": 512, "layers": 12, "heads": 8, "context": 99, "tokenizer": {"phrases": ["hello"]}}
    assert tiny.make(Model(init=init), 1, tmp_path / "tiny") == []
    config = json.loads((tmp_path / "tiny" / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"], config["max_position_embeddings"]) == (128, 2, 99)
    assert len(load_tokenizer(tmp_path / "tiny")("hello")["input_ids"]) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 16), st.integers(1, 40))
def test_the_heads_of_a_model_that_the_run_makes_are_those_that_every_engine_has(tmp_path_factory, heads, each):
    init = {"hidden_size": 2 * heads * each, "layers": 1, "heads": heads, "context": 99, "tokenizer": {"phrases": []}}
    folder = tmp_path_factory.mktemp("tiny")
    tiny.make(Model(init=init), 1, folder)
    config = json.loads((folder / "config.json").read_text())
    size, rest = divmod(config["hidden_size"], config["num_attention_heads"])
    assert (size in (32, 64, 96, 128), rest) == (True, 0)
    assert config["hidden_size"] <= 128 and config["num_attention_heads"] <= heads


def test_a_model_that_is_nowhere_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"model\.path: no folder is at '/nowhere/at/all'"):
        tiny.source(Model(path="/nowhere/at/all"))
