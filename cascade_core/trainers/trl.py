"""The trainer `trl`: sft, reward_model and rl stages on this machine's CPU or its first GPU, with Hugging Face TRL.

TRL's `SFTTrainer`, `RewardTrainer` and `GRPOTrainer` do the work; what makes them do exactly what a stage says is in `trl_sft.py`,
`trl_rm.py` and `trl_rl.py`, and stated in docs/trainers/trl.md. This module loads no torch until `train` is called.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.errors import CascadeError, TrainerError
from cascade_core.rows import Row
from cascade_core.trainers import Job, Trainer, checkpoints
from cascade_core.trainers.callbacks import logged
from cascade_core.trainers.demonstration import taken

if TYPE_CHECKING:
    from cascade_core.settings import Stage


class TrlTrainer(Trainer):
    """Trains a stage in this process."""

    name = "trl"
    kinds = ("sft", "rl", "reward_model")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """The `SFTConfig`, `RewardConfig` or `GRPOConfig` fields that `train` will use; see the base class."""
        from cascade_core.trainers.trl_args import native

        return native(stage)

    def train(self, job: Job) -> None:
        """Trains the stage; see the base class. Finished already, it does nothing."""
        if job.output.exists():
            return
        flags = dict(self.settings(job.stage))
        job.folder.mkdir(parents=True, exist_ok=True)
        rows = _rows(job)
        with logged(job.folder / "train.log"), _explained(job.stage):
            _train(job, rows, flags)

    def resume_step(self, folder: Path) -> int:
        """Steps that the newest complete checkpoint under `folder/trainer` holds; 0 if there is none."""
        return checkpoints.steps(folder / "trainer")


def _rows(job: Job) -> list[Row]:
    stage = job.stage
    return taken(job.rows, stage.steps, stage.rollout.prompts_per_step if stage.kind == "rl" else stage.batch_size)


def _train(job: Job, rows: list[Row], flags: dict[str, Any]) -> None:
    import torch

    from cascade_core.determinism import settle_threads

    build, model, tokenizer = _loaded(job, flags.pop("model_init_kwargs", None) or {})
    settle_threads(sum(weight.numel() for weight in model.parameters()))
    settings = deepcopy((model.config, getattr(model, "generation_config", None)))
    flags.setdefault("use_cpu", not torch.cuda.is_available())
    trainer = build(job, rows, model, tokenizer, flags)
    try:
        trainer.train_stage()
        # TRL and transformers change the model's settings while they train (use_cache, padding): these do not go on.
        model.config = settings[0]
        if settings[1] is not None:
            model.generation_config = settings[1]
        _hand_on(job, model, tokenizer if job.stage.kind == "reward_model" else None)
    finally:
        del trainer, model
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _loaded(job: Job, options: Mapping[str, Any]) -> tuple[Callable[..., Any], Any, Any]:
    """What builds the stage's trainer, its model and its tokenizer."""
    from cascade_core import pretrained

    if job.stage.kind == "reward_model":
        from cascade_core import reward_model
        from cascade_core.trainers import trl_rm

        tokenizer: Any = reward_model.load_tokenizer(job.model)
        model = reward_model.load_model(job.model, job.seed, **options)
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
        return trl_rm.build, model, tokenizer
    from cascade_core.trainers import trl_rl, trl_sft

    build = trl_rl.build if job.stage.kind == "rl" else trl_sft.build
    tokenizer = pretrained.load_tokenizer(job.model)
    return build, pretrained.load_model(job.model, **options), tokenizer


def _hand_on(job: Job, model: Any, tokenizer: Any = None) -> None:
    """Writes model and tokenizer (by default the one that the stage began with) to `job.output`, complete or absent."""
    from transformers import AutoTokenizer

    part = job.output.with_name(job.output.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer = tokenizer or AutoTokenizer.from_pretrained(str(job.model))
    for trace in ("is_local", "local_files_only"):  # of how it was loaded
        tokenizer.init_kwargs.pop(trace, None)
    tokenizer.save_pretrained(part)
    checkpoints.flush(part)
    part.rename(job.output)


@contextmanager
def _explained(stage: Stage) -> Iterator[None]:
    """Running out of memory, and flags that only TRL's own constructors can refuse, become one line."""
    from cascade_core.sampling import is_out_of_memory

    try:
        yield
    except CascadeError:
        raise
    except (RuntimeError, MemoryError, ValueError, ImportError) as cause:
        if is_out_of_memory(cause):
            setting = "micro_batch, or rollout.prompts_per_step" if stage.kind == "rl" else "micro_batch"
            raise TrainerError(f"stage {stage.name!r} ran out of memory; lower {setting}") from cause
        if isinstance(cause, ValueError | ImportError) and stage.trainer_args:
            told = " ".join(str(cause).split())[:300]
            raise TrainerError(f"stage {stage.name!r}: TRL refuses its trainer_args: {told}") from cause
        raise
