"""A stage as OpenRLHF's command line: what is accepted, by both versions' flags, and what is refused with which words."""

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from openrlhf_flags import parser

from cascade_core.errors import SpecError
from cascade_core.pretrained import context
from cascade_core.settings import Stage
from cascade_core.trainers import openrlhf_rules as rules
from cascade_core.trainers.openrlhf_args import Places, command, native, program_seed, room
from cascade_core.trainers.openrlhf_order import unshuffled
from cascade_core.trainers.openrlhf_parser import VERSIONS, Flag, Known, recorded
from cascade_core.trainers.openrlhf_sizes import Cluster, share
from cascade_core.trainers.schedule import factor

EIGHT = Cluster(nodes=8, gpus_per_node=8, address="http://head:8265")
PLACES = Places.of(Path("runs/r/stages/01-s"), Path("model"), Path("runs/r/stages/01-s/checkpoint.part"))
versions = pytest.mark.parametrize("version", VERSIONS)


def stage(kind: str = "rl", **settings: Any) -> Stage:
    return Stage.model_validate({"name": "s", "kind": kind, "domains": "toy", "steps": 100, **settings})


def parsed(made: Stage, cluster: Cluster = EIGHT, version: str = VERSIONS[0], **more: Any) -> dict[str, Any]:
    known = recorded(made.kind, version)
    words = command(made, 7, cluster, PLACES, known=known, **more)
    program = f"openrlhf.cli.{known.program}"
    return vars(parser(known).parse_args(words[words.index(program) + 1 :]))


def refused(made: Stage, cluster: Cluster = EIGHT, version: str = VERSIONS[0]) -> str:
    with pytest.raises(SpecError) as caught:
        command(made, 7, cluster, PLACES, known=recorded(made.kind, version))
    return str(caught.value)


def micro(size: int) -> Stage:
    """A stage of 1024 responses in micro-batches of that size."""
    return stage(micro_batch=size)


@versions
@pytest.mark.parametrize("kind", ["rl", "sft"])
def test_a_stage_for_eight_machines_is_a_command_line_that_the_program_accepts(kind: str, version: str) -> None:
    assert parsed(stage(kind), version=version)["train.seed"] == 7


@versions
def test_a_step_is_one_update_on_all_responses(version: str) -> None:
    found = parsed(stage(rollout={"prompts_per_step": 128, "samples_per_prompt": 8}), version=version)
    assert found["rollout.batch_size"] * found["rollout.n_samples_per_prompt"] == found["train.batch_size"] == 1024
    assert (found["train.num_episodes"], found["train.max_epochs"]) == (100, 1)


@versions
def test_nothing_is_done_to_a_finished_advantage(version: str) -> None:
    found = parsed(stage(), version=version)
    assert found["algo.advantage.estimator"] == "dr_grpo"
    assert found["reward.clip_range"] == [-1e6, 1e6]
    assert found["reward.overlong_buffer_len"] is found["reward.stop_properly_penalty_coef"] is None
    assert not (found["algo.dynamic_filtering_enable"] or found["reward.normalize_enable"])
    assert found["algo.kl.init_coef"] == 0 and found["algo.advantage.gamma"] == 1


@versions
def test_a_kl_term_is_in_the_loss_and_never_in_the_reward(version: str) -> None:
    found = parsed(stage(kl=0.02), version=version)
    assert (found["algo.kl.init_coef"], found["algo.kl.estimator"], found["algo.kl.use_loss"]) == (0.02, "k3", True)
    assert (found["ref.num_nodes"], found["ref.num_gpus_per_node"]) == (8, 8)


@versions
def test_the_weight_sync_can_be_seen(version: str) -> None:
    found = parsed(stage(), version=version)
    assert found.get("algo.advantage.is_correction_level", "token") == "token"
    assert found.get("algo.advantage.is_correction_enable", True) is True


def test_a_correction_of_the_users_own_gets_the_programs_own_defaults() -> None:
    given = {"algo.advantage.is_correction_level": "seq", "algo.advantage.is_correction_gating": "binary_kl"}
    found = parsed(stage(trainer_args={**given, "algo.advantage.is_correction_threshold": [0.1]}))
    assert found["algo.advantage.is_correction_mode"] == "mask"
    assert found["algo.advantage.is_correction_level"] == "seq"


@pytest.mark.parametrize("kind", ["rl", "sft"])
def test_only_a_cluster_with_an_address_is_given_the_job(kind: str) -> None:
    known = recorded(kind, VERSIONS[0])
    local = command(stage(kind), 7, Cluster(gpus_per_node=8), PLACES, known=known)
    there = command(stage(kind), 7, EIGHT, PLACES, known=known)
    assert local[0] == "python"
    assert there[:5] == ["ray", "job", "submit", "--address", "http://head:8265"]
    assert ("--entrypoint-num-gpus" in there) == (kind == "sft")


def test_training_and_sampling_share_all_gpus() -> None:
    found = parsed(stage(trainer_args={"vllm.tensor_parallel_size": 4}))
    assert found["train.colocate_all"] and found["vllm.num_engines"] == 16
    assert found["actor.num_nodes"] * found["actor.num_gpus_per_node"] == 64


def test_sampling_beside_training_takes_the_gpus_that_it_is_given() -> None:
    given = {"train.async_enable": True, "actor.num_nodes": 4, "vllm.num_engines": 32}
    found = parsed(stage(trainer_args=given))
    assert not (found["train.colocate_all"] or found["vllm.enable_sleep"] or found["ds.enable_sleep"])
    assert (found["actor.num_nodes"], found["vllm.num_engines"]) == (4, 32)


def test_a_reference_model_takes_no_gpus_beside_those_of_training() -> None:
    given = {"train.async_enable": True, "actor.num_nodes": 4, "vllm.num_engines": 32}
    for args, shares in ((given, "train.colocate_actor_ref"), ({}, "train.colocate_all")):
        found = parsed(stage(kl=0.01, trainer_args=args))
        assert found[shares] and found["ref.num_nodes"] == found["actor.num_nodes"]
        assert found["ref.num_gpus_per_node"] == found["actor.num_gpus_per_node"] == 8


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"train.async_enable": True}, "give each its GPUs of 64"),
        (
            {"train.async_enable": True, "vllm.num_engines": 8},
            "training takes 8 × 8 = 64 GPUs, sampling 8 engines × tensor_parallel_size 1 = 8, together 72, and there are engine.nodes 8 × engine.gpus 8 = 64",
        ),
        ({"vllm.num_engines": 3}, "training takes 8 × 8 = 64 GPUs, sampling 3 engines × tensor_parallel_size 1 = 3"),
        ({"vllm.tensor_parallel_size": 3}, "3 must divide the 8 GPUs of a machine: 1, 2, 4, 8 fit"),
        ({"vllm.tensor_parallel_size": 16}, "16 must divide the 8 GPUs of a machine"),
        (
            {"actor.num_nodes": 16, "vllm.num_engines": 128},
            "training takes 16 × 8 = 128 GPUs, and there are engine.nodes 8 × engine.gpus 8 = 64",
        ),
        ({"ds.ring_attn_size": 3}, "must divide 64 GPUs"),
        ({"vllm.tensor_parallel_size": 0}, "must be at least 1, found 0"),
        ({"rollout.micro_batch_size": 3}, "rollout.micro_batch_size 3 must divide the 16 responses"),
    ],
)
def test_parts_that_do_not_fit_the_cluster_are_refused(given: dict[str, Any], told: str) -> None:
    assert told in refused(stage(trainer_args=given))


@pytest.mark.parametrize(
    ("made", "cluster", "told"),
    [
        (stage(rollout={"prompts_per_step": 100, "samples_per_prompt": 8}), EIGHT, "96 and 104 fit"),
        (stage(rollout={"prompts_per_step": 3, "samples_per_prompt": 8}), EIGHT, "8 fit"),
        (stage("sft", batch_size=100), EIGHT, "96 and 104 fit"),
        (micro(3), EIGHT, "must divide the 16 responses that each of 64 replicas has of a step: 1, 2, 4, 8 fit"),
        (micro(1024), EIGHT, "must divide the 16 responses"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_size_whose_gradients_would_leak_is_refused_with_those_that_fit(
    made: Stage, cluster: Cluster, told: str
) -> None:
    assert told in refused(made, cluster)


@settings(deadline=None)
@given(
    nodes=st.integers(1, 9),
    gpus=st.integers(1, 9),
    prompts=st.integers(1, 300),
    samples=st.integers(2, 20),
    size=st.none() | st.integers(1, 40),
)
def test_a_size_that_is_accepted_shares_evenly_and_one_that_is_named_is_accepted(
    nodes: int, gpus: int, prompts: int, samples: int, size: int | None
) -> None:
    cluster = Cluster(nodes=nodes, gpus_per_node=gpus)
    rollout = {"prompts_per_step": prompts, "samples_per_prompt": samples}
    made = stage(rollout=rollout, micro_batch=size)
    try:
        each = share(made, cluster)
    except SpecError as error:
        (listed,) = re.findall(r"[;:] ([\d, and]+) fit$", str(error))
        named = [int(word) for word in re.findall(r"\d+", listed)]
        assert named
        key = "prompts_per_step" if "rollout." in str(error) else "micro_batch"
        for number in named:
            changed = {"rollout": {**rollout, key: number}} if key in rollout else {"rollout": rollout}
            share(stage(**changed, micro_batch=number if key == "micro_batch" else None), cluster)
        return
    assert each.replicas * each.responses == prompts * samples
    assert each.responses % each.micro == 0 and each.micro == (size or 1)


@settings(deadline=None)
@given(steps=st.integers(1, 10_000), data=st.data())
def test_the_warm_up_has_as_many_steps_as_the_spec_says(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps))
    made = stage(steps=steps, optim={"warmup_steps": warmup})
    found = native(made, EIGHT, recorded("rl", VERSIONS[0]))
    assert math.ceil(steps * found["actor.lr_warmup_ratio"]) == warmup  # as OpenRLHF computes it


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"loss": "token-group"}, "loss must be token or sequence"),
        ({"loss": "sequence", "overlong": "mask"}, "would shrink the gradient"),
        ({"optim": {"schedule": "linear", "decay_steps": 10}}, "optim.decay_steps must be 0 or all 100 steps"),
    ],
)
def test_a_setting_that_openrlhf_cannot_do_is_refused(settings: dict[str, Any], told: str) -> None:
    assert told in refused(stage(**settings))


def test_the_mean_over_responses_needs_the_newer_version() -> None:
    made = stage(loss="sequence")
    assert parsed(made)["actor.loss_agg_mode"] == "seq-mean-token-mean"
    assert "needs OpenRLHF 0.11.2, and this is 0.11.1" in refused(made, version="0.11.1")


@pytest.mark.parametrize(
    ("version", "flag", "told"),
    [
        ("0.11.2", "ds.zero_stge", "did you mean 'ds.zero_stage'"),
        ("0.11.2", "zero_stage", "did you mean 'ds.zero_stage'"),
        ("0.11.2", "--ds.zero-stage", "did you mean 'ds.zero_stage'"),
        ("0.11.2", "vllm_gpu_memory_utilization", "did you mean 'vllm.gpu_memory_utilization'"),
        ("0.11.2", "micro_train_batch_size", "calls it train.micro_batch_size"),
        ("0.11.2", "algo.advantage.is_correction_enable", "calls it algo.advantage.is_correction_level: token"),
        ("0.11.2", "algo.advantage.is_correction_type", "algo.advantage.is_correction_level and algo.advantage"),
        ("0.11.2", "use_kl_loss", "calls it algo.kl.use_loss, which cannot be set"),
        ("0.11.2", "async_train", "calls it train.async_enable"),
        ("0.11.2", "temperature", "calls it rollout.temperature, which is decided by the stage"),
        ("0.11.2", "lora_rank", "'ds.lora.rank' cannot be set"),
        ("0.11.1", "algo.advantage.is_correction_level", "calls it algo.advantage.is_correction_enable"),
        ("0.11.1", "algo.advantage.is_correction_mode", "calls it algo.advantage.is_correction_type"),
    ],
)
def test_an_unknown_flag_is_refused_with_the_nearest_name(version: str, flag: str, told: str) -> None:
    found = refused(stage(trainer_args={flag: 1}), version=version)
    assert f"is no flag of OpenRLHF {version}'s train_ppo_ray" in found and told in found


@pytest.mark.parametrize(
    ("kind", "flag", "told"),
    [
        ("rl", "rollout.batch_sizee", "; 'rollout.batch_size' is decided by the stage: set rollout.prompts_per_step instead"),
        ("rl", "micro_train_batch_size", "train.micro_batch_size, which is decided by the stage: set micro_batch instead"),
        ("rl", "critic.adam.betaz", "; 'critic.adam.betas' cannot be set: there is no critic"),
        ("sft", "train.batch_sise", "; 'train.batch_size' is decided by the stage: set batch_size instead"),
        ("sft", "ckpt.pathh", "; 'ckpt.path' cannot be set: the run's folder decides it"),
    ],
)  # fmt: skip
def test_a_misspelt_flag_that_could_not_be_set_anyway_is_told_with_the_setting(kind: str, flag: str, told: str) -> None:
    found = refused(stage(kind, trainer_args={flag: 1}))
    assert told in found and "did you mean" not in found


@pytest.mark.parametrize("kind", ["sft", "reward_model"])
def test_ring_attention_without_packing_is_refused_where_the_program_would_end_at_its_start(kind: str) -> None:
    ring = {"ds.ring_attn_size": 2}
    assert "needs ds.packing_samples: true" in refused(stage(kind, trainer_args=ring))
    assert parsed(stage(kind, trainer_args={**ring, "ds.packing_samples": True}))["ds.ring_attn_size"] == 2
    assert parsed(stage(trainer_args=ring))["ds.ring_attn_size"] == 2


def test_flags_that_are_nested_as_a_mapping_are_told_their_whole_names() -> None:
    assert "trainer_args.vllm is no flag" in refused(stage(trainer_args={"vllm": {"enforce_eager": True}}))
    assert "did you mean 'vllm.enforce_eager'" in refused(stage(trainer_args={"vllm": {"enforce_eager": True}}))
    assert "trainer_args.vllm is no flag" in refused(stage(trainer_args={"vllm": {}}))


@pytest.mark.parametrize("kind", ["rl", "sft"])
@versions
def test_every_flag_that_is_suggested_may_be_given(kind: str, version: str) -> None:
    known = recorded(kind, version)
    for flag in known.flags:
        for misspelt in (flag + "z", flag[:-1], flag.replace(".", "_"), flag.rpartition(".")[2]):
            if misspelt in known.flags:
                continue
            suggested = re.search(r", did you mean '(.*)'", rules.nearest(misspelt, known, kind))
            if suggested:
                found = refused(stage(kind, trainer_args={suggested[1]: object()}), version=version)
                assert "decided by" not in found and "cannot be set" not in found, (misspelt, found)


@pytest.mark.parametrize("kind", ["rl", "sft"])
@versions
def test_whatever_the_bridge_sets_cannot_be_set_but_for_its_defaults(kind: str, version: str) -> None:
    known = recorded(kind, version)
    free = {"actor.num_nodes", "actor.num_gpus_per_node", "vllm.num_engines", "vllm.tensor_parallel_size"}
    free |= {"vllm.enable_sleep", "ds.enable_sleep", "vllm.gpu_memory_utilization", "rollout.micro_batch_size"}
    free |= {"actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable"}
    free |= {flag for flag in known.flags if flag.startswith("algo.advantage.is_correction_")}
    for flag in set(native(stage(kind), EIGHT, known)) - free:
        assert "trainer_args." + flag in refused(stage(kind, trainer_args={flag: None}), version=version)
        assert flag in rules.DECIDED[kind] or rules.refusal(flag), flag


@pytest.mark.parametrize(
    "flag",
    [
        "reward.clip_range",
        "reward.normalize_enable",
        "reward.overlong_buffer_len",
        "reward.stop_properly_penalty_coef",
        "reward.remote_url",
        "algo.dynamic_filtering_enable",
        "algo.advantage.estimator",
        "algo.advantage.gamma",
        "algo.kl.target",
        "algo.kl.use_loss",
        "train.agent_func_path",
        "train.dynamic_batch_enable",
        "actor.policy_loss_type",
        "ckpt.path",
        "logger.wandb.key",
        "eval.dataset",
        "ds.lora.rank",
    ],
)
def test_a_flag_that_would_change_what_a_stage_means_is_refused_with_the_reason(flag: str) -> None:
    found = refused(stage(trainer_args={flag: 1}))
    assert f"trainer_args.{flag} " in found
    assert "set " in found or "cannot be set: " in found


@versions
@pytest.mark.parametrize("kind", ["rl", "sft", "reward_model"])
def test_every_rule_is_about_a_flag_that_some_program_has(kind: str, version: str) -> None:
    every = {flag for one in ("rl", "sft") for flag in recorded(one, version).flags} | set(
        recorded("rl", "0.11.2").flags
    )
    assert set(rules.DECIDED[kind]) <= every
    assert set(rules._REFUSED_IN.get(kind, ())) <= set(recorded(kind, version).flags)
    assert set(rules._REFUSED) | set(rules._BOUNDS) <= every
    assert all(any(flag.startswith(head) for flag in every) for head in rules._FAMILIES)


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("ds.zero_stage", "3", "a whole number, found '3'"),
        ("ds.zero_stage", True, "a whole number, found True"),
        ("actor.adam.eps", float("inf"), "a number, found inf"),
        ("ds.adam_offload", "yes", "false or true, found 'yes'"),
        ("ds.experts_implementation", "fast", "one of eager, batched_mm, grouped_mm, deepgemm, found 'fast'"),
        ("ds.attn_implementation", "--reward.remote_url", "text that does not begin with '-'"),
        ("algo.advantage.is_correction_threshold", 0.5, "a list of values, each a number"),
        ("algo.advantage.is_correction_threshold", [], "a list of values, each a number"),
        ("algo.advantage.is_correction_level", "off", "nothing shows whether weights reach the engines"),
        ("ds.zero_stage", None, "a whole number, found None"),
        ("ds.zero_stage", 7, "must be from 0 to 3, found 7"),
        ("vllm.gpu_memory_utilization", 0, "must be from 0.01 to 1, found 0"),
        ("vllm.gpu_memory_utilization", 60, "must be from 0.01 to 1, found 60"),
        ("train.async_queue_size", 0, "must be at least 1, found 0"),
        ("train.partial_rollout_enable", True, "needs train.async_enable"),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(flag: str, value: Any, told: str) -> None:
    assert told in refused(stage(trainer_args={flag: value}))


def test_a_flag_that_is_passed_through_reaches_the_program() -> None:
    found = parsed(stage(trainer_args={"ds.zero_stage": 3, "ds.packing_samples": True, "vllm.enable_sleep": False}))
    assert (found["ds.zero_stage"], found["ds.packing_samples"], found["vllm.enable_sleep"]) == (3, True, False)


@settings(deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")).filter(lambda text: not text.startswith("-")),
)
def test_a_value_is_read_back_as_it_was_given(pair: list[float], text: str) -> None:
    known = Known(
        "p", "0", False, {"pair": Flag("float", nargs=2), "text": Flag("str"), "flag": Flag("bool", stores=True)}
    )
    found = parser(known).parse_args(rules.words({"pair": pair, "text": text, "flag": True}, known))
    assert found.text == text and found.flag is True
    assert found.pair == pair


def test_a_command_can_be_pasted_into_a_shell() -> None:
    words = command(stage("sft"), 7, EIGHT, PLACES, known=recorded("sft", VERSIONS[0]))
    assert shlex.split(shlex.join(words)) == words and "" in words


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_position_embeddings": None}, None),
        ({}, None),
        ([], None),
    ],
)
def test_the_context_is_what_the_model_says(config: Any, tokens: int | None, tmp_path: Path) -> None:
    assert context(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert context(tmp_path) == tokens


def test_the_room_for_prompt_and_response_follows_the_models_context(tmp_path: Path) -> None:
    made = stage(rollout={"max_response_tokens": 1000})
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 1500}))
    places = Places.of(tmp_path, tmp_path, tmp_path / "out")
    words = command(made, 0, EIGHT, places, known=recorded("rl", VERSIONS[0]))
    assert words[words.index("--data.max_len") + 1] == "1500"
    assert room(made, None) == 1000 + 2048
    assert room(stage(rollout={"max_response_tokens": 1000}, trainer_args={"data.max_len": 1200}), 1500) == 1200


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "exceed the model's context of 1000"), ({"data.max_len": 1000}, "leaves no room for a prompt")],
)
def test_a_response_that_leaves_no_room_for_a_prompt_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        room(stage(rollout={"max_response_tokens": 1000}, trainer_args=given), 1000)


def test_a_stage_goes_on_only_where_it_is_told_to() -> None:
    assert parsed(stage())["ckpt.load_enable"] is False
    assert parsed(stage(), resume=True)["ckpt.load_enable"] is True


def test_a_folder_whose_name_openrlhf_would_split_is_refused(tmp_path: Path) -> None:
    places = Places.of(tmp_path / "a@b", tmp_path, tmp_path)
    with pytest.raises(SpecError, match="splits paths"):
        command(stage(), 0, EIGHT, places, known=recorded("rl", VERSIONS[0]))


def test_no_demonstration_of_a_long_stage_is_cut_off() -> None:
    found = parsed(stage("sft", steps=200_000))
    assert found["data.max_samples"] == 200_000 * 64


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_rows_are_written_so_that_a_seeded_shuffle_brings_them_back(count: int, seed: int) -> None:
    used = program_seed(seed)
    written = unshuffled(range(count), used)
    taken = torch.randperm(count, generator=torch.Generator().manual_seed(used)).tolist()
    assert [written[place] for place in taken] == list(range(count))


def test_every_seed_of_a_spec_is_one_that_the_program_can_count_up_from() -> None:
    assert parsed(stage())["train.seed"] == 7
    assert program_seed(2**32 - 1) + 4096 < 2**32


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 7])
def test_the_rate_of_every_update_is_the_schedules_but_for_a_warm_up_that_begins_at_0(
    schedule: str, warmup: int
) -> None:
    from transformers import get_scheduler

    made = stage(steps=30, optim={"lr": 1.0, "schedule": schedule, "warmup_steps": warmup})
    flags = native(made, EIGHT, recorded("rl", VERSIONS[0]))
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=flags["actor.adam.lr"])
    first = math.ceil(30 * flags["actor.lr_warmup_ratio"])  # as OpenRLHF makes its scheduler
    scheduler = get_scheduler(flags["actor.lr_scheduler"], optimizer, first, 30, scheduler_specific_kwargs={})
    for step in range(30):
        wanted = step / warmup if step < warmup else factor(step, 30, made.optim)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(wanted, abs=1e-12)
        optimizer.step()
        scheduler.step()
