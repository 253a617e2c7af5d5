"""One reward_model stage as a job of OpenRLHF's `train_rm` (`openrlhf_pass.py`).

`train_rm` reads texts, makes their last token the end token, and reads the score there. It is given words for tokens
(`openrlhf_words.py`), with that token as the end on which all texts end: nothing is then changed, and the score is read where
`reward_model.py` and transformers read it. The head always begins anew, with OpenRLHF's own seed and scale.

After its last update it measures, and does so on no data it fails; so it gets one pair to measure, and what comes of it is dropped.
What it writes has the weights of transformers' own sequence classification under the same names, but the settings of the policy that
it began with. These are put right, so that the folder is one that transformers loads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade_core import reward_model
from cascade_core.errors import TrainerError
from cascade_core.pretrained import context, explained
from cascade_core.rows import Row, write_json
from cascade_core.trainers import openrlhf_words
from cascade_core.trainers.openrlhf_args import measured, program_seed, room
from cascade_core.trainers.openrlhf_pass import PassStage
from cascade_core.trainers.openrlhf_words import HEAD, lend, words
from cascade_core.trainers.preference import Example, example, longest, ordered


class RewardModelStage(PassStage):
    """One stage under way."""

    last = "acc_mean"

    def _tokenizer(self) -> Any:
        return reward_model.load_tokenizer(self.job.model)

    def _write(self, rows: list[Row]) -> None:
        stage, limit = self.job.stage, context(self.job.model)
        self._names, self._class = classifier(self.job.model)
        examples = [example(self.tokenizer, row, limit) for row in rows]
        most = room(stage, limit)
        for row, made in zip(rows, examples, strict=True):
            if longest(made) > most:
                raise TrainerError(
                    f"pair {row['id']!r} has {longest(made)} tokens, and data.max_len is {most}; raise"
                    " trainer_args.data.max_len, or leave it out"
                )
        lend(self.job.model, self.folder / "model", self.tokenizer, end(examples))
        told = [{side: words(text.ids) for side, text in one.items()} for one in ordered(examples, stage.batch_size)]
        openrlhf_words.write(self.places.data, told, program_seed(self.job.seed))
        openrlhf_words.write(measured(self.places), told[:1], 0)

    def _settle(self) -> Any:
        written = {name for path in self.part.glob("*.safetensors") for name in _weights(path)}
        if written != self._names:
            odd = sorted(written ^ self._names)
            raise TrainerError(f"OpenRLHF wrote other weights than transformers' {self._class} has, such as {odd[0]!r}")
        config = json.loads((self.part / "config.json").read_text("utf-8"))
        before = json.loads((self.job.model / "config.json").read_text("utf-8"))
        kept = {key: value for key, value in config.items() if key not in HEAD}
        head = {"architectures": [self._class], "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        cache = {key: before[key] for key in ("use_cache",) if key in before}
        pad = {"pad_token_id": int(self.tokenizer.pad_token_id)}
        write_json(self.part / "config.json", {**kept, **head, **cache, **pad})
        return self.tokenizer


def end(examples: Sequence[Example]) -> int:
    """The token on which all texts end.

    Raises:
        TrainerError: there is none, or the model reads types of tokens, which OpenRLHF does not know.
    """
    texts = [text for one in examples for text in one.values()]
    if any(text.types is not None for text in texts):
        raise TrainerError(
            "OpenRLHF trains reward models that read one text, and this tokenizer makes pairs; use trainer trl"
        )
    ends = {text.ids[-1] for text in texts}
    if len(ends) > 1:
        raise TrainerError(
            "OpenRLHF needs texts that all end on one token, and with this model's chat template a text ends as its response does;"
            " use trainer trl, or a template that ends the assistant's turn"
        )
    return ends.pop()


def classifier(model: Path) -> tuple[set[str], str]:
    """The names of the weights that transformers' sequence classification has for this model, and its class.

    Raises:
        TrainerError: it has none, or one whose head is another than OpenRLHF's, a matrix called `score`.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    with explained(model, "reward model"), torch.device("meta"):
        config = AutoConfig.from_pretrained(str(model), trust_remote_code=False, num_labels=1)
        auto: Any = AutoModelForSequenceClassification
        made = auto.from_config(config, trust_remote_code=False)
    names = set(made.state_dict())
    if "score.weight" not in names or "score.bias" in names:
        raise TrainerError(f"{type(made).__name__} has another head than OpenRLHF trains; use trainer trl")
    return names, type(made).__name__


def _weights(path: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(str(path), "pt") as file:
        return list(file.keys())
