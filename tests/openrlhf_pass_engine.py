"""What a stage sees of OpenRLHF's `train_sft` and `train_rm` and their launcher, without them: the same command line, data, numbers, files.

Its `loss_mean` of an update is the mean number of tokens of the responses (of pairs: of the chosen texts) that it takes, in the order in
which both shuffle them, so that a test can tell which they were. `FAKE_OPENRLHF` says how it misbehaves: `say TEXT` (prints it and
fails), `hang`, `short` (leaves out the last update), `die N` (killed after update N), `nan N` (no gradient from update N on), `odd`
(writes a weight more).
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


def order(path: Path, seed: int, is_rm: bool) -> list[int]:
    """Tokens of the rows, as the program comes to them; they are what it is able to read of them."""
    import torch

    told = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    first, second = ("chosen", "rejected") if is_rm else ("response", "prompt")
    end = told[0][second].split()[-1] if is_rm else "<1>"  # a lent tokenizer's own end
    assert all(row[first].endswith(f" {end}") and row[second].endswith(end * is_rm) and row[second] for row in told)
    generator = torch.Generator()
    generator.manual_seed(seed)
    places = torch.randperm(len(told), generator=generator).tolist()
    return [len(told[place][first].split()) for place in places]


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


def train(given: dict[str, Any], is_rm: bool) -> None:
    """All updates of the job."""
    lengths = order(Path(given["data.dataset"][0]), int(given["train.seed"][0]), is_rm)
    size, every = int(given["train.batch_size"][0]), int(given["ckpt.save_steps"][0])
    assert len(lengths) <= int(given["data.max_samples"][0]) and (len(lengths) % size, given["optim"]) == (0, ["adam"])
    folder, rate = Path(given["ckpt.path"][0]), float(given["adam.lr"][0])
    start = int((folder / "latest").read_text().removeprefix("global_step")) if "ckpt.load_enable" in given else 0
    board = Numbers(Path(given["logger.tensorboard_dir"][0]) / given["logger.wandb.run_name"][0])
    for number in range(start + 1, len(lengths) // size + 1 - (MODE == "short")):
        mine = lengths[(number - 1) * size : number * size]
        norm = float("nan") if MODE == "nan" and number > int(DETAIL) else 0.25
        last = {"loss_mean": sum(mine) / size, **({"acc_mean": 0.75} if is_rm else {})}
        board.tell(number, gpt_loss=0.5, lr=rate / (number + 1), grad_norm=norm, **last)
        if every > 0 and number % every == 0:
            (folder / f"global_step{number}").mkdir(parents=True, exist_ok=True)
            (folder / "latest").write_text(f"global_step{number}")
        if MODE == "die" and number == int(DETAIL):
            os.kill(os.getpid(), signal.SIGKILL)
    model, output = (Path(given[flag][0]) for flag in ("model.model_name_or_path", "ckpt.output_dir"))
    shutil.copytree(model, output)
    if is_rm:
        assert len(Path(given["eval.dataset"][0]).read_text("utf-8").splitlines()) == 1  # of none it makes an error
        put_head(output, given["ds.value_head_prefix"][0])


def put_head(folder: Path, name: str) -> None:
    """Makes a reward model of a policy, as OpenRLHF saves it: the head counts the first of the numbers behind a token."""
    import torch
    from safetensors.torch import load_file, save_file

    path, config = folder / "model.safetensors", json.loads((folder / "config.json").read_text("utf-8"))
    weights = {key: value for key, value in load_file(path).items() if key != "lm_head.weight"}
    head = torch.zeros(1, config["hidden_size"])
    head[0, 0] = 1
    odd = {"odd.weight": head.clone()} if MODE == "odd" else {}
    (folder / "model.safetensors").unlink()  # a link to the policy's
    save_file({**weights, f"{name}.weight": head, **odd}, path, metadata={"format": "pt"})
    set_here = {"value_head_prefix": name, "normalize_reward": False, "mean": 0.5, "std": 2.0, "use_cache": False}
    (folder / "config.json").write_text(json.dumps({**config, **set_here, "pad_token_id": 1}))


def main(words: list[str]) -> int:
    """The status of the program."""
    if words[0] == "-c":
        print("openrlhf", "0.11.2")
        return 0
    assert words[:5] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "--module"], words
    assert words[5] in ("openrlhf.cli.train_sft", "openrlhf.cli.train_rm"), words[5]
    if MODE == "hang":
        time.sleep(300)
    if MODE == "say":
        print(DETAIL, flush=True)
        return 1
    train(flags(words[6:]), words[5].endswith("rm"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
