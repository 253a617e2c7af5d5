"""What a stage sees of OpenRLHF's program, without OpenRLHF: it takes the same command line, asks the service for each slot's task, hands in
made-up responses, prints the same lines, and writes checkpoints and a model to the same places.

`FAKE_OPENRLHF` says how it misbehaves: `say TEXT` (prints it and fails), `hang TEXT` (prints it for ever), `actor TEXT` (one of its actors fails with it at its start), `short` (leaves out the last
step), `quiet` (the last step's line never comes), `die N` (killed after step N), `fail` (responses that cannot be judged), `slow`.
`FAKE_PIDS` is a file for the number of a daemon that it starts and leaves behind, as Ray does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

MODE, _, DETAIL = os.environ.get("FAKE_OPENRLHF", "").partition(" ")


def flags(words: list[str]) -> dict[str, Any]:
    """The command line as a mapping."""
    found: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            found[name] = []
        else:
            found[name].append(word)
    return found


def token() -> str:
    """What the service wants to be shown: of a file on a cluster, else of a variable."""
    file = os.environ.get("CASCADE_SERVE_TOKEN_FILE")
    return Path(file).read_text() if file else os.environ["CASCADE_SERVE_TOKEN"]


def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request to the service."""
    request = urllib.request.Request(
        os.environ["CASCADE_SERVE_ADDRESS"] + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token()}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def say(text: str) -> None:
    """A line as Ray hands it on from an actor."""
    print(f"\x1b[36m(PPOTrainer pid={os.getpid()})\x1b[0m {text}", flush=True)


def sample(group: str, task: dict[str, Any], index: int) -> float:
    """Hands one response in; its advantage."""
    number = task["step"] * 31 + task["slot"] * 7 + index
    text = "raise" if MODE == "fail" else ("right" if number % 3 else "wrong")
    body = {"group": group, "index": index, "response": text, "truncated": False, "tokens": 1 + index}
    return float(ask("/sample", body)["reward"])


def step(number: int, slots: list[int], samples: int) -> None:
    """Samples and "trains" one step."""
    groups = [(uuid4().hex, slot) for slot in slots]
    tasks = [ask("/slot", {"group": group, "slot": slot}) for group, slot in groups]
    assert [task["step"] for task in tasks] == [number] * len(slots)
    calls = [(group[0], task, index) for group, task in zip(groups, tasks, strict=True) for index in range(samples)]
    with ThreadPoolExecutor(len(calls)) as pool:
        advantages = list(pool.map(lambda call: sample(*call), calls))
    assert sum(advantages) == 0.0


def daemon() -> None:
    """A process in a session of its own whose parent is gone."""
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '300'], start_new_session=True, stdout=-3, stderr=-3); print(p.pid)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if "FAKE_PIDS" in os.environ:
        with Path(os.environ["FAKE_PIDS"]).open("a") as file:
            file.write(done.stdout)


def board(folder: Path, numbers: dict[int, dict[str, float]]) -> None:
    """TensorBoard files of all steps."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for number, found in numbers.items():
        values = [Summary.Value(tag=f"train/{name}", simple_value=value) for name, value in found.items()]
        writer.add_event(Event(step=number + 1, wall_time=time.time(), summary=Summary(value=values)))
    writer.close()


def train(given: dict[str, Any]) -> None:
    """All steps of the job."""
    slots = [int(json.loads(line)["label"]) for line in Path(given["data.prompt_dataset"][0]).read_text().splitlines()]
    steps, every = int(given["train.num_episodes"][0]), int(given["ckpt.save_steps"][0])
    actor = Path(given["ckpt.path"][0]) / "_actor"
    start = int((actor / "latest").read_text().removeprefix("global_step")) if "ckpt.load_enable" in given else 0
    numbers = {}
    for number in range(start, steps - (MODE == "short")):
        step(number, slots, int(given["rollout.n_samples_per_prompt"][0]))
        numbers[number] = {"policy_loss": 0.5, "actor_grad_norm": 0.25, "timing/generation": 1.5, "vllm_kl": 1e-4}
        # A sample is printed before the step, and may hold anything.
        say(
            f"INFO 11-30 14:00:00 ppo_trainer.py:300] Sample: ['] ✨ Global step {number + 2}: {{}} CUDA out of memory', 1]"
        )
        if not (MODE == "quiet" and number == steps - 1):
            say(f"INFO 11-30 14:00:00 ppo_trainer.py:550] ✨ Global step {number + 1}: {numbers[number]}")
        if every > 0 and (number + 1) % every == 0:
            (actor / f"global_step{number + 1}").mkdir(parents=True, exist_ok=True)
            (actor / "latest").write_text(f"global_step{number + 1}")
        if MODE == "die" and number == int(DETAIL):
            time.sleep(1.2)  # what is printed is handed on by somebody else, who needs a while
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2 if MODE == "slow" else 0)
    board(Path(given["logger.tensorboard_dir"][0]) / given["logger.wandb.run_name"][0], numbers)
    shutil.copytree(given["actor.model_name_or_path"][0], given["ckpt.output_dir"][0])


def main(words: list[str]) -> int:
    """The status of the program."""
    if words[0] == "-c":
        print("openrlhf", "0.11.2")
        return 0
    assert words[:2] == ["-m", "openrlhf.cli.train_ppo_ray"]
    daemon()
    while MODE == "hang":
        say(DETAIL)
        time.sleep(0.1)
    if MODE == "actor":
        say("Exception raised in creation task: The actor died because of an error raised in its creation task")
        say(DETAIL)
        time.sleep(300)
    if MODE == "say":
        print(DETAIL, flush=True)
        return 1
    train(flags(words[2:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
