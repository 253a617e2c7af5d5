"""What an sft stage sees of OpenRLHF's `train_sft` and its launcher, without either: the same command line, data, numbers and files.

Its `loss_mean` of an update is the mean number of response tokens of the demonstrations that it takes, in the order in which
`train_sft` shuffles them, so that a test can tell which they were. `FAKE_OPENRLHF` says how it misbehaves: `say TEXT` (prints it and
fails), `hang`, `short` (leaves out the last update), `die N` (killed after update N), `nan N` (no gradient from update N on).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from openrlhf_engine import flags

MODE, _, DETAIL = os.environ.get("FAKE_OPENRLHF", "").partition(" ")


def order(path: Path, seed: int) -> list[int]:
    """Response tokens of the demonstrations, as `train_sft` comes to them; they are what it is able to read of them."""
    import torch

    told = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert all(row["response"].endswith(" <1>") and row["prompt"] for row in told)
    generator = torch.Generator()
    generator.manual_seed(seed)
    places = torch.randperm(len(told), generator=generator).tolist()
    return [len(told[place]["response"].split()) for place in places]


class Numbers:
    """TensorBoard's files, written at once."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder))

    def tell(self, step: int, **numbers: float) -> None:
        """One scalar after the other."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        for name, value in numbers.items():
            values = [Summary.Value(tag=f"train/{name}", simple_value=value)]
            self._writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=values)))
            self._writer.flush()


def train(given: dict[str, Any]) -> None:
    """All updates of the job."""
    lengths = order(Path(given["data.dataset"][0]), int(given["train.seed"][0]))
    size, every = int(given["train.batch_size"][0]), int(given["ckpt.save_steps"][0])
    assert len(lengths) <= int(given["data.max_samples"][0]) and (len(lengths) % size, given["optim"]) == (0, ["adam"])
    folder, rate = Path(given["ckpt.path"][0]), float(given["adam.lr"][0])
    start = int((folder / "latest").read_text().removeprefix("global_step")) if "ckpt.load_enable" in given else 0
    board = Numbers(Path(given["logger.tensorboard_dir"][0]) / given["logger.wandb.run_name"][0])
    for number in range(start + 1, len(lengths) // size + 1 - (MODE == "short")):
        mine = lengths[(number - 1) * size : number * size]
        norm = float("nan") if MODE == "nan" and number > int(DETAIL) else 0.25
        board.tell(number, gpt_loss=0.5, lr=rate / (number + 1), grad_norm=norm, loss_mean=sum(mine) / size)
        if every > 0 and number % every == 0:
            (folder / f"global_step{number}").mkdir(parents=True, exist_ok=True)
            (folder / "latest").write_text(f"global_step{number}")
        if MODE == "die" and number == int(DETAIL):
            os.kill(os.getpid(), signal.SIGKILL)
    shutil.copytree(given["model.model_name_or_path"][0], given["ckpt.output_dir"][0])


def main(words: list[str]) -> int:
    """The status of the program."""
    if words[0] == "-c":
        print("openrlhf", "0.11.2")
        return 0
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "--module"]
    assert words[:6] == [*launcher, "openrlhf.cli.train_sft"], words[:6]
    if MODE == "hang":
        time.sleep(300)
    if MODE == "say":
        print(DETAIL, flush=True)
        return 1
    train(flags(words[6:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
