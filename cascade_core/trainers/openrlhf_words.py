"""Tokens of ours for OpenRLHF's `train_sft` and `train_rm`, which read text: words for tokens, and a model that is lent with them.

Token 17 is the word `<17>`, and the tokenizer beside the model that OpenRLHF is given knows these words alone: what it tokenizes are
exactly the tokens that were written, whatever else it does to texts.

The model is lent by links in a folder of the stage; its own tokenizer, which goes on with the trained model, is not in it. Nothing of
the folder is executed: OpenRLHF would trust code that a model brings along, so that neither the code nor its mention is lent. Nor is
what an earlier OpenRLHF wrote of a head into the settings, by which it would go rather than by its flags.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cascade_core.errors import TrainerError
from cascade_core.rows import dump, write_json, write_text
from cascade_core.trainers.openrlhf_order import unshuffled

HEAD = ("value_head_prefix", "normalize_reward", "mean", "std")
"""What OpenRLHF writes into the settings of a model with a head."""
UNLENT = ("auto_map", *HEAD)
_WEIGHTS = ("generation_config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")


def lend(model: Path, folder: Path, tokenizer: Any, end: int | None = None) -> None:
    """Makes `folder` the model with the tokenizer of words for tokens.

    Args:
        end: the token that ends a text, by default the tokenizer's own.

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
    write_json(folder / "config.json", {key: value for key, value in config.items() if key not in UNLENT})
    end = tokenizer.eos_token_id if end is None else end
    count = max(len(tokenizer), end + 1, tokenizer.pad_token_id + 1)
    made = Tokenizer(models.WordLevel({word(number): number for number in range(count)}, unk_token=word(0)))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    write_text(folder / "tokenizer.json", made.to_str())
    names = {"eos_token": word(end), "pad_token": word(tokenizer.pad_token_id)}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names})


def word(token: int) -> str:
    """A token as a word that contains no other token's, as end and padding are looked for anywhere in a text."""
    return f"<{token}>"


def words(tokens: Iterable[int]) -> str:
    """Tokens as a text."""
    return " ".join(map(word, tokens))


def write(path: Path, rows: Sequence[Mapping[str, str]], seed: int) -> None:
    """Writes rows in the order that OpenRLHF's shuffle with `train.seed` undoes; the same again is left as it is."""
    text = "".join(dump(row) + "\n" for row in unshuffled(rows, seed))
    if not path.exists() or path.read_text("utf-8") != text:  # what was made of an older file is kept by its age
        write_text(path, text)
