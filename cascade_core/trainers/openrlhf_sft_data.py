"""Demonstrations as OpenRLHF's `train_sft` reads them: tokens of ours, by way of a tokenizer that cannot change them.

`train_sft` takes text. It joins prompt and response before it tokenizes them, adds a space before the end token, strips line ends,
and knows no chat template but in its own way: a token could straddle prompt and response, and a stage would not mean what it means for
other trainers. So it is given *words for tokens*: token 17 is the word `<17>`, and the tokenizer beside the model that it is given
knows these words alone. What it tokenizes are then exactly the tokens of `demonstration.py`, prompt and response apart.

The model is lent by links in a folder of the stage; its own tokenizer, which goes on with the trained model, is not in it. Nothing of
the folder is executed: OpenRLHF would trust code that a model brings along, so that neither the code nor its mention is lent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade_core.errors import TrainerError
from cascade_core.rows import Row, dump, write_json, write_text
from cascade_core.trainers.demonstration import IGNORED, example
from cascade_core.trainers.openrlhf_args import SPARE
from cascade_core.trainers.openrlhf_order import unshuffled

_WEIGHTS = ("generation_config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")


def lend(model: Path, folder: Path, tokenizer: Any) -> None:
    """Makes `folder` the model with the tokenizer of words for tokens.

    Raises:
        TrainerError: there is no model in `model`.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    for pattern in _WEIGHTS:
        for path in model.glob(pattern):
            link = folder / path.name
            link.unlink(missing_ok=True)
            link.symlink_to(path.resolve())
    try:
        config = json.loads((model / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as cause:
        raise TrainerError(f"no model can be read from {model} ({cause}); check the model setting") from cause
    write_json(folder / "config.json", {key: value for key, value in config.items() if key != "auto_map"})
    count = max(len(tokenizer), tokenizer.eos_token_id + 1, tokenizer.pad_token_id + 1)
    made = Tokenizer(models.WordLevel({word(number): number for number in range(count)}, unk_token=word(0)))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    write_text(folder / "tokenizer.json", made.to_str())
    names = {"eos_token": word(tokenizer.eos_token_id), "pad_token": word(tokenizer.pad_token_id)}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names})


def write(
    path: Path,
    tokenizer: Any,
    rows: Sequence[Row],
    per_step: int,
    seed: int,
    limits: tuple[int | None, int],
    modes: str = "switch",
) -> None:
    """Writes the demonstrations, in the order that OpenRLHF's shuffle with `train.seed` undoes; the same again is left as it is.

    Inside a step they are sorted by length, so that micro-batches are of like length and little is padded.

    Args:
        limits: the model's context in tokens, and `data.max_len`.
        modes: how a row's mode is said to the model.

    Raises:
        TrainerError: a demonstration that cannot be used, or that OpenRLHF would cut or leave out.
    """
    context, most = limits
    examples = [_fitting(example(tokenizer, row, context, modes), row, most) for row in rows]
    steps = (examples[start : start + per_step] for start in range(0, len(rows), per_step))
    ordered = [one for step in steps for one in sorted(step, key=lambda one: len(one["input_ids"]))]
    text = "".join(dump(_told(one)) + "\n" for one in unshuffled(ordered, seed))
    if not path.exists() or path.read_text("utf-8") != text:  # what was made of an older file is kept by its age
        write_text(path, text)


def word(token: int) -> str:
    """A token as a word that contains no other token's, as end and padding are looked for anywhere in a text."""
    return f"<{token}>"


def _fitting(made: dict[str, list[int]], row: Row, most: int) -> dict[str, list[int]]:
    prompt, length = made["labels"].count(IGNORED), len(made["input_ids"])
    if length > most or prompt + SPARE > most:
        raise TrainerError(
            f"demonstration {row['id']!r} has {length} tokens, {prompt} of them its prompt, and data.max_len is {most}; raise"
            " trainer_args.data.max_len, or leave it out"
        )
    return made


def _told(made: dict[str, list[int]]) -> dict[str, str]:
    prompt = made["labels"].count(IGNORED)
    tokens = list(map(word, made["input_ids"]))
    return {"prompt": " ".join(tokens[:prompt]), "response": " " + " ".join(tokens[prompt:])}
