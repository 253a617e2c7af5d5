"""The trainer `trl`: flags, order, numbers, files, kill and resume."""

import io
import json
import multiprocessing
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_stage as tiny

from cascade_core.errors import CheckpointError, SpecError, TrainerError
from cascade_core.settings import Optim
from cascade_core.trainers.callbacks import Bar
from cascade_core.trainers.schedule import factor
from cascade_core.trainers.trl import TrlTrainer

HERE = Path(__file__).parent


def events(folder, kind="step"):
    told = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return [event for event in told if event["kind"] == kind]


def judge(folder=None):
    return tiny.StubJudge(tiny.digest, folder=folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One finished stage of each kind."""
    jobs = {}
    for kind in ("sft", "rl"):
        folder = tmp_path_factory.mktemp("trained") / kind
        jobs[kind] = tiny.job(folder, tiny.stage(kind, optim=Optim(lr=1e-2, warmup_steps=2)), judge(folder))
        TrlTrainer().train(jobs[kind])
    return jobs


# Verdicts while others are being generated


def test_what_ends_early_is_handed_over_as_the_very_row_that_is_judged(trained):
    stub = trained["rl"].judge
    for rows in stub.seen:
        group = {row["group"] for row in rows}
        handed = [row for row in stub.handed if row["group"] in group]
        longest = max(row["tokens"] for row in rows)
        early = [row for row in rows if not row["truncated"] and row["tokens"] < longest]
        assert sorted(map(str, handed)) == sorted(str({name: row[name] for name in handed[0]}) for row in early)
    assert stub.handed


# Flags


def test_showing_a_stages_flags_loads_nothing_heavy():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import tiny_stage as t; t.TrlTrainer().settings(t.stage('rl'));"
        "print([m for m in ('torch', 'transformers', 'trl', 'datasets') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code, str(HERE)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_the_flags_shown_are_json_and_those_that_trl_is_given(trained, kind, monkeypatch, tmp_path):
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.sft_config import SFTConfig

    given = []
    for config in (GRPOConfig, SFTConfig):
        monkeypatch.setattr(
            config,
            "__post_init__",
            lambda self, before=config.__post_init__: (given.append(dict(vars(self))), before(self))[1],
        )
    job = tiny.job(tmp_path, tiny.stage(kind, steps=1, trainer_args={"adam_epsilon": 1e-6}), judge())
    TrlTrainer().train(job)
    shown = dict(TrlTrainer().settings(job.stage))
    assert json.loads(json.dumps(shown)) == shown
    assert shown["adam_epsilon"] == 1e-6
    assert {name: given[0][name] for name in shown} == shown


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entropy": 0.1}, "no entropy bonus"),
        ({"micro_batch": 3}, "micro_batch 3 must divide the 8 responses"),
        ({"optim": Optim(decay_steps=3)}, "decay_steps needs schedule linear"),
        ({"optim": Optim(schedule="linear", warmup_steps=4, decay_steps=4)}, "exceed the stage's 6 steps"),
        ({"trainer_args": {"use_vlm": True}}, "use_vlm is no flag.*did you mean 'use_vllm'"),
        ({"trainer_args": {"use_vllm": "yes"}}, "use_vllm must be of type bool, found 'yes'"),
        ({"trainer_args": {"adam_epsilon": True}}, "adam_epsilon must be of type float"),
        ({"trainer_args": {"learning_rate": 1.0}}, "set optim.lr instead"),
        ({"trainer_args": {"beta": 0.1}}, "set kl instead"),
        ({"trainer_args": {"num_iterations": 2}}, "strictly on-policy"),
        ({"trainer_args": {"save_steps": 2}}, "checkpoints are set by save_every"),
        ({"trainer_args": {"repetition_penalty": 1.2}}, "sampling is what rollout says"),
        ({"trainer_args": {"fp16": True}}, "use bf16"),
        ({"trainer_args": {"push_to_hub": True}}, "uploads nothing"),
        ({"overlong": {"soft": {"buffer": 9}}}, "buffer exceeds"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused_with_what_to_set(changes, message):
    with pytest.raises(SpecError, match=f"^stage 'rl'.*{message}"):
        TrlTrainer().settings(tiny.stage("rl", **changes))


def test_every_flag_that_is_refused_by_name_exists_in_some_config():
    """So that a new TRL that renames one is noticed: a refusal that refers to nothing would let the new name through."""
    from cascade_core.trainers import trl_args

    known = {flag for kind in ("rl", "sft", "reward_model") for flag in trl_args.fields(kind)}
    assert (set(trl_args._DECIDED) | set(trl_args._REFUSED)) - known <= {"warmup_ratio"}


# Schedule


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_update_has_a_rate_of_zero_and_none_passes_the_peak(schedule):
    optim = Optim(schedule=schedule, warmup_steps=3)
    shares = [factor(step, 12, optim) for step in range(12)]
    assert all(0 < share <= 1 for share in shares)
    assert shares[:3] == [1 / 3, 2 / 3, 1.0]
    assert shares[3:] == sorted(shares[3:], reverse=True)


def test_a_linear_rate_falls_over_its_last_steps_only():
    shares = [factor(step, 10, Optim(schedule="linear", decay_steps=4)) for step in range(10)]
    assert shares == [1.0] * 7 + [0.75, 0.5, 0.25]


def test_a_warm_up_longer_than_the_stage_never_reaches_the_peak():
    assert [factor(step, 2, Optim(warmup_steps=4)) for step in range(2)] == [0.25, 0.5]


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_the_rate_of_every_update_is_the_schedules(trained, kind):
    assert [event["lr"] for event in events(trained[kind].folder)] == pytest.approx([0.005, *[0.01] * 5])


# What a stage does


def test_rows_are_taken_in_order_each_once_with_its_samples_side_by_side(trained):
    seen = [[(row["id"], row["sample"]) for row in step] for step in trained["rl"].judge.seen]
    assert seen == [[(f"t{2 * step + i}", sample) for i in (0, 1) for sample in range(4)] for step in range(6)]


def test_a_group_is_one_task_of_one_step(trained):
    groups = {(step, row["id"]): row["group"] for step, rows in enumerate(trained["rl"].judge.seen) for row in rows}
    assert len(set(groups.values())) == len(groups) == 12


def test_sampled_rows_carry_the_task_and_what_was_sampled(trained):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained["rl"].model)
    rows = [row for step in trained["rl"].judge.seen for row in step]
    assert any(row["truncated"] for row in rows) and not all(row["truncated"] for row in rows)
    for row in rows:
        assert row["domain"] == "tiny" and row["prompt"].startswith("say ") and row["prefill"] == ""
        assert row["tokens"] == 8 if row["truncated"] else 1 <= row["tokens"] <= 8
        assert len(tokenizer(row["response"])["input_ids"]) <= row["tokens"]


def test_every_step_tells_its_numbers(trained):
    wanted = {"loss", "grad_norm", "lr", "update_seconds"}
    for kind, more in (("sft", set()), ("rl", {"reward_mean", "entropy", "generate_seconds", "verify_seconds"})):
        found = events(trained[kind].folder)
        assert [event["step"] for event in found] == list(range(6))
        assert all(event["stage"] == kind and wanted | more <= set(event) for event in found)


def test_supervised_training_lowers_its_loss_and_teaches_the_responses(trained):
    from cascade_core.sampling import LocalSampler
    from cascade_core.settings import Sampling

    losses = [event["loss"] for event in events(trained["sft"].folder)]
    assert losses == sorted(losses, reverse=True)
    (before,), (after,) = (
        LocalSampler(path, 2000).sample(tiny.tasks(1), 2000, Sampling(max_response_tokens=1), 0)
        for path in (trained["sft"].model, trained["sft"].output)
    )
    assert sum(sample.text == "blue" for sample in after) > 2 * sum(sample.text == "blue" for sample in before) > 0


def test_a_demonstration_is_learned_from_its_response_and_end_alone():
    from cascade_core.initial import build_tokenizer
    from cascade_core.settings import InitTokenizer
    from cascade_core.trainers.trl_sft import example

    tokenizer = build_tokenizer(InitTokenizer(phrases=["ab"]), 16)
    found = example(tokenizer, {"id": "x", "prompt": "a", "response": "b"}, 16)
    a, b = (tokenizer.convert_tokens_to_ids(letter) for letter in "ab")
    assert found == {"input_ids": [a, b, tokenizer.eos_token_id], "labels": [-100, b, tokenizer.eos_token_id]}


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_the_output_is_a_plain_folder_that_says_nothing_of_where_it_was_made(trained, kind):
    files = {path.name: path.read_bytes() for path in trained[kind].output.iterdir()}
    assert set(files) == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert not any(str(trained[kind].folder).encode() in data for data in files.values())
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        assert files[name] == (trained[kind].model / name).read_bytes()


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_tensorboard_has_every_number_of_every_step(trained, kind):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(trained[kind].folder / "tensorboard"))
    board.Reload()
    assert [point.step for point in board.Scalars("train/loss")] == list(range(6))
    assert board.Scalars("train/grad_norm")[3].value == pytest.approx(events(trained[kind].folder)[3]["grad_norm"])


def test_a_stage_talks_to_its_log_and_to_nobody_else(tmp_path, capfd):
    TrlTrainer().train(tiny.job(tmp_path, tiny.stage("rl", steps=1), judge()))
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "train.log").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_progress_is_one_line_on_a_terminal_and_nothing_elsewhere(monkeypatch, stream, shown):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream())
    bar = Bar("01-if", 4, 1)
    bar.advance({"reward_mean": 0.25})
    bar.close()
    text = sys.stderr.getvalue()
    assert ("01-if" in text and "2/4" in text and "reward 0.250" in text) if shown else text == ""


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_two_runs_of_a_stage_end_with_the_same_bytes(trained, kind, tmp_path):
    again = tiny.job(tmp_path / kind, trained[kind].stage, judge())
    TrlTrainer().train(again)
    assert contents(again.output) == contents(trained[kind].output)


def test_another_seed_draws_other_responses(trained, tmp_path):
    job = tiny.job(tmp_path, trained["rl"].stage, judge(), seed=8)
    TrlTrainer().train(job)
    assert contents(job.output)["model.safetensors"] != contents(trained["rl"].output)["model.safetensors"]


def test_a_finished_stage_is_not_trained_again(trained):
    before = contents(trained["rl"].output)
    TrlTrainer().train(trained["rl"])
    assert contents(trained["rl"].output) == before
    assert len(trained["rl"].judge.seen) == 6


# Refusals


def test_a_prompt_without_room_for_a_response_is_refused_before_any_step(tmp_path):
    rows = tiny.tasks(12)
    rows[11]["prompt"] = "x" * 41
    job = tiny.job(tmp_path, tiny.stage("rl"), judge(), rows=rows)
    with pytest.raises(TrainerError, match="'t11' has a prompt of 41 tokens.*lower max_response_tokens"):
        TrlTrainer().train(job)
    assert not job.judge.seen and not job.output.exists()


def test_a_demonstration_that_does_not_fit_is_refused_before_any_step(tmp_path):
    rows = tiny.tasks(48)
    rows[40]["response"] = "x" * 60
    with pytest.raises(TrainerError, match="'t40' has 6. tokens, more than the model's context of 48"):
        TrlTrainer().train(tiny.job(tmp_path, tiny.stage("sft"), rows=rows))


def test_a_demonstration_without_a_response_is_refused(tmp_path):
    rows = tiny.tasks(48)
    del rows[3]["response"]
    with pytest.raises(TrainerError, match="'t3' has no response"):
        TrlTrainer().train(tiny.job(tmp_path, tiny.stage("sft"), rows=rows))


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(TrainerError, match=r"prompts.jsonl has 5 rows, and 6 steps of 8 take 48"):
        TrlTrainer().train(tiny.job(tmp_path, tiny.stage("sft"), rows=tiny.tasks(5)))


@pytest.mark.parametrize("damage", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_model_folder_that_cannot_be_read_is_refused_in_one_line(tmp_path, damage):
    job = tiny.job(tmp_path, tiny.stage("sft"))
    (job.model / damage).write_bytes((job.model / damage).read_bytes()[:40])
    with pytest.raises(TrainerError, match="can be read from .*check the model setting") as found:
        TrlTrainer().train(job)
    assert "\n" not in str(found.value)


def test_a_gradient_that_is_no_number_ends_the_stage(tmp_path):
    job = tiny.job(tmp_path, tiny.stage("sft", optim=Optim(lr=1e30)))
    with pytest.raises(TrainerError, match="gradient of step . is not finite; lower optim.lr"):
        TrlTrainer().train(job)
    assert not job.output.exists()


def test_running_out_of_memory_names_the_settings(tmp_path, monkeypatch):
    import torch

    from cascade_core.trainers import trl_rl

    def full(*args, **more):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\n20 GiB")

    monkeypatch.setattr(trl_rl, "draw", full)
    with pytest.raises(
        TrainerError, match=r"^stage 'rl' ran out of memory; lower micro_batch, or rollout.prompts_per_step$"
    ):
        TrlTrainer().train(tiny.job(tmp_path, tiny.stage("rl"), judge()))


def test_a_flag_that_only_trl_can_refuse_is_named_as_such(tmp_path):
    job = tiny.job(tmp_path, tiny.stage("sft", trainer_args={"optim": "adamw_of_nobody"}))
    with pytest.raises(TrainerError, match=r"^stage 'sft': TRL refuses its trainer_args: .*adamw_of_nobody"):
        TrlTrainer().train(job)


# Kill and resume


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture(scope="module")
def in_process():
    """Trains a stage in a process of its own, forked from one that has loaded TRL; gives back how that ended."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tiny_stage", "cascade_core.trainers.trl_rl", "cascade_core.trainers.trl_sft"])

    def run(folder, kind, place):
        process = context.Process(target=tiny.run, args=(folder, kind, place))
        process.start()
        process.join(240)
        return process.exitcode

    return run


@pytest.fixture(scope="module", params=["sft", "rl"])
def uninterrupted(request, tmp_path_factory, in_process):
    folder = tmp_path_factory.mktemp("uninterrupted") / request.param
    assert in_process(folder, request.param, "never") == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("place", "left"), [("step", 2), ("checkpoint", 2), ("publish", 2)])
def test_a_killed_stage_given_again_ends_with_the_same_bytes(uninterrupted, in_process, tmp_path, place, left):
    folder, kind = tmp_path / uninterrupted.name, uninterrupted.name
    assert in_process(folder, kind, place) == -signal.SIGKILL
    assert TrlTrainer().resume_step(folder) == left
    assert not (folder / "checkpoint").exists()
    assert in_process(folder, kind, "never") == 0
    assert contents(folder / "checkpoint") == contents(uninterrupted / "checkpoint")
    if kind == "rl":
        assert contents(folder / "rollouts") == contents(uninterrupted / "rollouts")
    assert numbers(folder) == numbers(uninterrupted)


def numbers(folder):
    """The last word on every step, clocks aside."""
    told = {event["step"]: event for event in events(folder)}
    return [{k: v for k, v in told[step].items() if k != "time" and "_seconds" not in k} for step in sorted(told)]


@pytest.mark.slow
def test_tensorboard_has_no_point_twice_after_a_resume(tmp_path, in_process):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    in_process(tmp_path / "sft", "sft", "checkpoint")
    in_process(tmp_path / "sft", "sft", "never")
    board = EventAccumulator(str(tmp_path / "sft" / "tensorboard"))
    board.Reload()
    assert [point.step for point in board.Scalars("train/loss")] == list(range(6))


@pytest.fixture
def half_done(tmp_path, monkeypatch):
    """A stage that failed in its sixth step, with checkpoints of 2 and 4 steps."""

    def failing(step, rows):
        if step == 5:
            raise TrainerError("enough")
        return tiny.StubJudge.judge(stub, step, rows)

    stub = judge()
    job = tiny.job(tmp_path, tiny.stage("rl"), stub)
    stub.judge = failing
    with pytest.raises(TrainerError, match="enough"):
        TrlTrainer().train(job)
    del stub.judge
    return job


def test_checkpoints_inside_a_stage_are_told_and_the_newest_two_kept(half_done):
    assert [event["step"] for event in events(half_done.folder, "checkpoint")] == [2, 4]
    assert sorted(path.name for path in (half_done.folder / "trainer").glob("checkpoint-*")) == [
        "checkpoint-2",
        "checkpoint-4",
    ]
    assert TrlTrainer().resume_step(half_done.folder) == 4


def test_a_stage_that_failed_goes_on_from_its_newest_checkpoint(half_done, trained):
    seen = len(half_done.judge.seen)
    TrlTrainer().train(half_done)
    assert len(half_done.judge.seen) == seen + 2


def test_a_damaged_checkpoint_is_refused_and_nothing_else_tried(half_done):
    path = half_done.folder / "trainer" / "checkpoint-4" / "optimizer.pt"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"optimizer.pt differs.*remove .*checkpoint-4"):
        TrlTrainer().train(half_done)
    assert not half_done.output.exists()


def test_a_checkpoint_without_its_seal_is_passed_over(half_done):
    (half_done.folder / "trainer" / "checkpoint-4" / "complete.json").unlink()
    assert TrlTrainer().resume_step(half_done.folder) == 2
    seen = len(half_done.judge.seen)
    TrlTrainer().train(half_done)
    assert len(half_done.judge.seen) == seen + 4


def test_no_checkpoint_is_written_inside_a_stage_with_save_every_0(tmp_path):
    job = tiny.job(tmp_path, tiny.stage("sft", save_every=0))
    TrlTrainer().train(job)
    assert not events(tmp_path, "checkpoint")
    assert not list((tmp_path / "trainer").glob("*"))
