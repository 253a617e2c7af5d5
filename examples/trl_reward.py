"""TRL's own `GRPOTrainer` with the verdicts of a domain as its reward: `python examples/trl_reward.py`, some seconds on a CPU.

A tiny Llama with random weights, made here, learns nothing in so few steps; what is shown is how the parts are put together.
With your own model and data only `model`, `tokenizer` and the arguments change.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path

from cascade_core.adapters import trl_reward, trl_rows
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

OPTIONS = {"generator": {"name": "arithmetic", "max_a": 9, "max_b": 9}}


def main(steps: int, folder: Path, chat: str = "") -> list[dict[str, float]]:
    """Trains for `steps` steps in `folder`, with conversations where there is a chat template; what was logged of each step."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from cascade_core.initial import make
    from cascade_core.settings import InitModel

    make(InitModel(hidden_size=32, layers=1, heads=2, context=128), 1, folder / "start")
    model = AutoModelForCausalLM.from_pretrained(folder / "start")
    tokenizer = AutoTokenizer.from_pretrained(folder / "start")
    tokenizer.chat_template = chat or None
    domain = registry().build(registry().reference("math", OPTIONS))
    data = Dataset.from_list(trl_rows("math", islice(domain.tasks("train", seed=1), 8 * steps), plain=not chat))
    args = GRPOConfig(
        output_dir=str(folder / "run"),
        max_steps=steps,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=8,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    with Scorer({"math": registry().reference("math", OPTIONS)}, Scoring(workers=1)) as scorer:
        reward = trl_reward(scorer, ends=[tokenizer.eos_token_id])
        trainer = GRPOTrainer(model, reward_funcs=reward, args=args, train_dataset=data, processing_class=tokenizer)
        trainer.train()
    return [line for line in trainer.state.log_history if "reward" in line]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3)
    steps = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as name:
        for number, line in enumerate(main(steps, Path(name)), 1):
            print(f"step {number}: reward {line['reward']:.3f}, not judged {line['cascade/failed']:.0%}")
