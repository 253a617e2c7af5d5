"""One sft stage as a job of OpenRLHF's `train_sft` (`openrlhf_pass.py`).

The demonstrations and their order are the core's (`openrlhf_sft_data.py`); the loss of a step is the mean over all their response
tokens. The model goes on with the tokenizer and the settings that it began with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cascade_core.pretrained import context, load_tokenizer
from cascade_core.rows import Row, write_json
from cascade_core.trainers import openrlhf_sft_data as data
from cascade_core.trainers.openrlhf_args import program_seed, room
from cascade_core.trainers.openrlhf_pass import PassStage
from cascade_core.trainers.openrlhf_words import lend


class SftStage(PassStage):
    """One stage under way."""

    last = "loss_mean"

    def _tokenizer(self) -> Any:
        return load_tokenizer(self.job.model)

    def _write(self, rows: list[Row]) -> None:
        stage, longest = self.job.stage, context(self.job.model)
        lend(self.job.model, self.folder / "model", self.tokenizer)
        limits = (longest, room(stage, longest))
        seed = program_seed(self.job.seed)
        data.write(self.places.data, self.tokenizer, rows, stage.batch_size, seed, limits, self.job.modes)

    def _settle(self) -> Any:
        from transformers import AutoTokenizer

        _restore(self.part / "config.json", self.job.model / "config.json")
        return AutoTokenizer.from_pretrained(str(self.job.model), trust_remote_code=False)


def _restore(written: Path, original: Path) -> None:
    """What OpenRLHF sets in a model's settings in order to train (no cache, its padding) does not go on."""
    found, before = (json.loads(path.read_text("utf-8")) for path in (written, original))
    kept: dict[str, Any] = {key: before[key] for key in ("use_cache", "pad_token_id") if key in before}
    write_json(written, {**found, **kept})
