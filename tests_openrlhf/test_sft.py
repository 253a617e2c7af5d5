"""Real sft stages with OpenRLHF's `train_sft` and DeepSpeed, one of them killed: what must be true of them afterwards."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from pass_runs import kill
from safetensors.torch import load_file
from sft_stage import BATCH, STEPS, demonstrations, events
from transformers import AutoModelForCausalLM, AutoTokenizer

from cascade_core.trainers.schedule import factor

HERE = Path(__file__).parent
STILL = "1e-30"  # no weight moves


def start(folder: Path, engine: Path, lr: str) -> "subprocess.Popen[bytes]":
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "out").open("ab") as out:
        return subprocess.Popen(
            [sys.executable, str(HERE / "sft_stage.py"), str(folder), str(engine), lr], stdout=out, stderr=out
        )


def finished(folder: Path, engine: Path, lr: str) -> Path:
    status = start(folder, engine, lr).wait(timeout=900)
    assert status == 0, (folder / "out").read_text("utf-8", "replace")[-2000:]
    return folder


@pytest.fixture(scope="module")
def still(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stage whose weights stay as they are: the loss of a step tells which demonstrations it was computed on."""
    return finished(tmp_path_factory.mktemp("sft") / "still", engine, STILL)


@pytest.fixture(scope="module")
def learned(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("sft") / "learned", engine, "3e-3")


@pytest.fixture(scope="module")
def killed(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as `learned`, killed as the kernel would after its second checkpoint, and given again."""
    folder = tmp_path_factory.mktemp("sft") / "killed"
    kill(start(folder, engine, "3e-3"), folder, 8, STEPS, folder / "out")
    return finished(folder, engine, "3e-3")


def expected(folder: Path) -> list[float]:
    """The mean loss over the response tokens of every step, by transformers and the model that the stage began with."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "start")
    model: Any = AutoModelForCausalLM.from_pretrained(folder / "start", dtype=torch.bfloat16).eval()
    lost = []
    for row in demonstrations():
        turns = [{"role": "user", "content": row["prompt"]}]
        asked = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        prompt, answer = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (asked, row["response"]))
        ids = torch.tensor([[*prompt, *answer, tokenizer.eos_token_id]])
        with torch.no_grad():
            found = model(ids).logits[0, :-1].float().log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        lost.append(-found[len(prompt) - 1 :])
    return [float(torch.cat(lost[step * BATCH : (step + 1) * BATCH]).mean()) for step in range(STEPS)]


def test_every_update_is_on_exactly_its_own_demonstrations_and_their_response_tokens_alone(still: Path) -> None:
    found = [event["loss"] for event in events(still, "step")]
    wanted = expected(still)
    assert [event["step"] for event in events(still, "step")] == list(range(STEPS))
    assert found == pytest.approx(wanted, rel=4e-3)
    apart = sorted(wanted)
    assert sum(b - a > 0.01 * a for a, b in itertools.pairwise(apart)) > STEPS / 2  # they could be told from each other


def test_without_a_rate_no_weight_moves(still: Path) -> None:
    before, after = (load_file(still / name / "model.safetensors") for name in ("start", "checkpoint"))
    moved = [float((before[name].bfloat16() - after[name].bfloat16()).abs().max()) for name in before]
    assert max(moved) < 1e-25  # a rate of 1e-30, where a weight was 0


def test_what_is_learned_changes_the_weights_and_lowers_the_loss(learned: Path) -> None:
    losses = [event["loss"] for event in events(learned, "step")]
    untrained = expected(learned)
    assert losses[:2] == pytest.approx(untrained[:2], rel=4e-3)  # the first update has a rate of 0
    assert sum(losses[-4:]) < 0.7 * sum(untrained[-4:])
    assert all(0 < event["grad_norm"] < 1e3 for event in events(learned, "step"))
    before, after = (load_file(learned / name / "model.safetensors") for name in ("start", "checkpoint"))
    assert any(not torch.equal(before[name].bfloat16(), after[name].bfloat16()) for name in before)


def test_every_update_tells_the_rate_that_it_used(learned: Path) -> None:
    from sft_stage import job

    optim = job(learned, 3e-3).stage.optim
    found = [event["lr"] for event in events(learned, "step")]
    late = [0.0, *(3e-3 * factor(step - 1, STEPS, optim) for step in (1, 2))]  # OpenRLHF's warm-up is one update late
    assert found[:3] == pytest.approx(late)
    assert found[3:] == pytest.approx([3e-3 * factor(step, STEPS, optim) for step in range(3, STEPS)], rel=1e-4)


def test_a_stage_that_was_killed_ends_with_the_weights_of_one_that_was_not(learned: Path, killed: Path) -> None:
    whole, broken = (load_file(folder / "checkpoint" / "model.safetensors") for folder in (learned, killed))
    assert all(torch.equal(whole[name], broken[name]) for name in whole) and whole.keys() == broken.keys()


def test_a_stage_that_was_killed_tells_the_same_numbers(learned: Path, killed: Path) -> None:
    whole, broken = ({event["step"]: event for event in events(folder, "step")} for folder in (learned, killed))
    assert sorted(broken) == sorted(whole) == list(range(STEPS))
    for step, event in whole.items():
        assert broken[step]["loss"] == event["loss"] and broken[step]["lr"] == pytest.approx(event["lr"])
    assert [event["step"] for event in events(killed, "checkpoint")][-1] == STEPS


@pytest.mark.parametrize("name", ["still", "learned", "killed"])
def test_tokenizer_and_settings_of_the_model_go_on(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    before, after = (AutoTokenizer.from_pretrained(folder / part) for part in ("start", "checkpoint"))
    assert before.get_vocab() == after.get_vocab() and before.chat_template == after.chat_template
    made, kept = (AutoModelForCausalLM.from_pretrained(folder / part).config for part in ("checkpoint", "start"))
    assert (made.use_cache, made.pad_token_id) == (kept.use_cache, kept.pad_token_id)


def test_nothing_of_the_jobs_is_left_running(killed: Path) -> None:
    left = []
    for process in psutil.process_iter():
        try:
            if any(str(killed.parent) in part for part in (*process.cmdline(), *process.environ().values())):
                left.append(process.cmdline())
        except psutil.Error:
            continue
    assert left == []
