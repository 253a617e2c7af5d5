"""Sft stages as OpenRLHF is given them: tokens that nothing changes, in the core's order, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tiny_stage as tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core import rehearsal
from cascade_core.errors import SpecError, TrainerError
from cascade_core.pretrained import load_tokenizer
from cascade_core.settings import Optim, Stage
from cascade_core.trainers import openrlhf_pass_log as log
from cascade_core.trainers import openrlhf_sft_data as data
from cascade_core.trainers.demonstration import IGNORED, example, taken
from cascade_core.trainers.openrlhf_args import SPARE, command, native, room
from cascade_core.trainers.openrlhf_parser import VERSIONS, recorded
from cascade_core.trainers.openrlhf_sizes import Cluster
from cascade_core.trainers.openrlhf_words import lend

TEMPLATE = "{% for turn in messages %}[{{ turn.content }}]{% endfor %}{% if add_generation_prompt %}say {% endif %}"
ONE = Cluster()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.model(tmp_path_factory.mktemp("sft") / "model")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> Any:
    return load_tokenizer(model)


def written(path: Path, tokenizer: Any, rows: list[dict[str, Any]], **more: Any) -> list[dict[str, str]]:
    given = {"per_step": 4, "seed": 5, "limits": (tiny.CONTEXT, tiny.CONTEXT + SPARE), **more}
    data.write(path, tokenizer, rows, **given)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_as_openrlhf_does(tokenizer: Any, row: dict[str, str]) -> tuple[list[int], int]:
    """What `SFTDataset` makes of a row: the tokens, and how many of them are the prompt's."""
    prompt = len(tokenizer(row["prompt"], add_special_tokens=False)["input_ids"])
    text = (row["prompt"] + row["response"]).rstrip("\n")
    if not text.endswith(tokenizer.eos_token):
        text += " " + tokenizer.eos_token
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return [*ids[:-1], tokenizer.eos_token_id], prompt


@settings(deadline=None)  # each example writes a model's folder and loads its tokenizer
@given(
    texts=st.lists(
        st.tuples(st.text("ab red\n<1>", min_size=1), st.text("blue \n<17>", max_size=9)), min_size=1, max_size=4
    )
)
def test_openrlhf_reads_exactly_the_tokens_that_every_trainer_trains_on(
    texts: list[tuple[str, str]], tokenizer: Any, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lent")
    rows = [{"id": str(n), "prompt": ask[:12], "response": say} for n, (ask, say) in enumerate(texts)]
    lend(model, folder, tokenizer)
    lent = load_tokenizer(folder)
    told = written(folder / "data.jsonl", tokenizer, rows, per_step=len(rows))
    found = sorted(read_as_openrlhf_does(lent, row) for row in told)
    wanted = [example(tokenizer, row, None) for row in rows]
    assert found == sorted((one["input_ids"], one["labels"].count(IGNORED)) for one in wanted)


def test_the_lent_model_has_the_weights_and_nothing_that_could_run(model: Path, tokenizer: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in model.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoConfig": "evil.Config"}}))
    (source / "evil.py").write_text("raise SystemExit")
    lend(source, tmp_path / "lent", tokenizer)
    lend(source, tmp_path / "lent", tokenizer)  # again, after a kill
    assert json.loads((tmp_path / "lent" / "config.json").read_text()) == config
    assert {path.name for path in (tmp_path / "lent").iterdir()} == {
        *("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    }
    assert (tmp_path / "lent" / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_every_update_takes_the_demonstrations_that_follow(replicas: int, tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"id": str(n), "prompt": "a", "response": "b" * (1 + n % 30)} for n in range(24)]
    told = written(tmp_path / "data.jsonl", tokenizer, rows, seed=99)
    generator = torch.Generator()
    generator.manual_seed(99)
    shuffled = [told[place] for place in torch.randperm(24, generator=generator).tolist()]
    ranks = [shuffled[rank::replicas] for rank in range(replicas)]
    each = 4 // replicas
    for step in range(6):
        mine = [row["response"].count("<") - 1 for rank in ranks for row in rank[step * each : (step + 1) * each]]
        assert sorted(mine) == sorted(1 + n % 30 for n in range(step * 4, step * 4 + 4))


def test_the_same_demonstrations_are_not_written_twice(tokenizer: Any, tmp_path: Path) -> None:
    rows = [{"id": str(n), "prompt": "a", "response": "b"} for n in range(4)]
    written(tmp_path / "data.jsonl", tokenizer, rows)
    before = (tmp_path / "data.jsonl").stat()
    written(tmp_path / "data.jsonl", tokenizer, rows)
    assert (tmp_path / "data.jsonl").stat() == before


@pytest.mark.parametrize(
    ("prompt", "most", "is_fine"), [(20, 64, True), (20, 41, False), (38, 41, True), (39, 41, False), (39, 42, True)]
)
def test_what_openrlhf_would_cut_or_leave_out_is_refused(
    prompt: int, most: int, is_fine: bool, tokenizer: Any, tmp_path: Path
) -> None:
    rows = [{"id": "long", "prompt": "a" * (prompt - 3), "response": "b" * (22 if prompt == 20 else 1)}]
    if is_fine:
        assert written(tmp_path / "data.jsonl", tokenizer, rows, per_step=1, limits=(None, most))
        return
    with pytest.raises(
        TrainerError, match=rf"'long' has \d+ tokens, {prompt} of them .*data\.max_len is {most}; raise"
    ):
        written(tmp_path / "data.jsonl", tokenizer, rows, per_step=1, limits=(None, most))


def test_too_few_demonstrations_are_said_so(tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"id": "a"}\n' * 5)
    assert len(taken(tmp_path / "prompts.jsonl", 2, 2)) == 4
    with pytest.raises(TrainerError, match=r"prompts\.jsonl has 5 rows, and 3 steps of 2 take 6"):
        taken(tmp_path / "prompts.jsonl", 3, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_command_on_a_cpu_has_flags_of_its_own_program_alone(version: str, tmp_path: Path) -> None:
    known, stage = recorded("sft", version), tiny.stage("sft", trainer_args={"ds.packing_samples": True})
    flags, changed = rehearsal.on_cpu(native(stage, ONE, known))
    assert set(flags) <= set(known.flags) and flags["ds.attn_implementation"] == "sdpa"
    assert [one.flag for one in changed] == ["ds.packing_samples"]


def test_room_is_for_every_demonstration_that_the_model_reads() -> None:
    stage = tiny.stage("sft")
    assert room(stage, 4096) == 4096 + SPARE
    assert room(tiny.stage("sft", trainer_args={"data.max_len": 512}), 4096) == 512


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("data.disable_fast_tokenizer", True, "demonstrations are tokenized by the run"),
        ("data.apply_chat_template", True, "template"),
        ("train.batch_size", 4, "set batch_size instead"),
        ("train.max_epochs", 2, "set steps instead"),
        ("adam.lr", 1e-3, "set optim.lr instead"),
        ("model.pretrain_mode_enable", True, "the loss is on the response"),
        ("ds.lora.rank", 8, "whole model"),
        ("vllm.num_engines", 2, "is no flag of OpenRLHF"),
    ],
)
def test_flags_that_would_change_what_an_sft_stage_means_are_refused(flag: str, value: Any, told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        native(tiny.stage("sft", trainer_args={flag: value}), ONE, recorded("sft", VERSIONS[0]))


def test_one_machine_has_a_process_for_every_gpu(tmp_path: Path) -> None:
    from cascade_core.trainers.openrlhf_args import Places

    places = Places.of(tmp_path, tmp_path / "model", tmp_path / "out")
    words = command(
        tiny.stage("sft", batch_size=64), 7, Cluster(gpus_per_node=8), places, known=recorded("sft", VERSIONS[0])
    )
    assert words[:7] == [
        "python",
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=8",
        "--module",
        words[6],
    ]


def test_an_update_tells_the_rate_that_it_used() -> None:
    numbers = {"loss": 1.0, "grad_norm": 2.0, "next_lr": 0.3, "time": 12.5}
    first = log.event(numbers, None, Optim(lr=0.4))
    assert first == {"loss": 1.0, "grad_norm": 2.0, "lr": 0.4}
    assert log.event(numbers, None, Optim(lr=0.4, warmup_steps=3))["lr"] == 0.0
    assert log.event({**numbers, "time": 14.0}, numbers, None) == {**first, "lr": 0.3, "update_seconds": 1.5}
    assert log.event({}, numbers, None) == {"lr": 0.3}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "lower micro_batch"),
        ("[rank0]: ValueError: something of its own", "ValueError: something of its own"),
        ("RuntimeError: NCCL error: ncclSystemError", "NCCL failed"),
        ("train_sft.py: error: unrecognized arguments: --nope 1", "does not know its command line"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", ""),
    ],
)
def test_why_a_job_ended_is_told_with_its_cure(line: str, told: str) -> None:
    launcher = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    assert told in log.reason([line, launcher], "python") and (told or not log.reason([line, launcher], "python"))


def test_all_kinds_are_driven() -> None:
    from cascade_core.trainers.openrlhf import OpenRlhfTrainer

    assert set(OpenRlhfTrainer.kinds) == {"sft", "rl", "reward_model"}
    made = OpenRlhfTrainer().settings(Stage.model_validate({"name": "s", "kind": "sft", "domains": "tiny", "steps": 3}))
    assert made["train.max_epochs"] == 1
