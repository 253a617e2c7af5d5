"""Reads a Hugging Face folder (or hub name): model and tokenizer, ready to sample or train, with errors of ours.

Weights are kept in 32-bit floats unless told otherwise; nothing from the folder is executed (`trust_remote_code` is
off). Whoever samples and whoever trains load through here, so both see the same tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.errors import TrainerError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_KEPT = ("<think>", "</think>")
_SAFE: Any = {"trust_remote_code": False}  # left open, transformers asks whoever sits at the terminal


def load_model(path: str | Path, **options: Any) -> PreTrainedModel:
    """The causal language model at `path`; `options` are those of `from_pretrained`, on top of `dtype=float32`.

    Raises:
        TrainerError: there is none that can be read.
    """
    from transformers import AutoModelForCausalLM

    with explained(path, "model"), quiet_bars():
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            str(path), **_SAFE, **{"dtype": "float32", **options}
        )
    return model


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer at `path`, padding on the left; `<eos>` pads where it has no padding token.

    Raises:
        TrainerError: there is none that can be read, or it has no end-of-text token.
    """
    from transformers import AutoTokenizer

    with explained(path, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(path), **_SAFE, padding_side="left")
    if tokenizer.eos_token_id is None:
        raise TrainerError(f"the tokenizer in {path} has no end-of-text token; set eos_token in tokenizer_config.json")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@contextmanager
def quiet_bars() -> Iterator[None]:
    """Switches transformers' own progress bars off during the block."""
    from transformers.utils import logging as bars

    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def explained(path: str | Path, what: str) -> Iterator[None]:
    """Turns what transformers raises on an unreadable folder (many types) into one line."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, ImportError, SafetensorError) as e:
        reason = " ".join(str(e).split())[:200] or type(e).__name__
        raise TrainerError(f"no {what} can be read from {path} ({reason}); check the model setting") from e


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids that end a response: the tokenizer's, and all that the model's generation settings name."""
    config: Any = getattr(model, "generation_config", None)
    named = getattr(config, "eos_token_id", None)
    listed = [named] if isinstance(named, int) else list(named or [])
    return sorted({int(tokenizer.eos_token_id), *listed})


def context_length(model: PreTrainedModel) -> int | None:
    """The longest sequence that the model reads, in tokens; `None` where its configuration does not say."""
    length = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return length if isinstance(length, int) and length > 0 else None


def context(model: Path) -> int | None:
    """The longest text in tokens that a model folder's `config.json` allows, `None` where nothing says it."""
    try:
        config = json.loads((model / "config.json").read_text("utf-8"))
    except (OSError, ValueError):  # no folder yet, or no model in it: whoever starts the stage says so
        return None
    return context_of(config) if isinstance(config, Mapping) else None


def context_of(config: Mapping[str, Any]) -> int | None:
    """The longest text in tokens that a model's `config.json` allows, `None` where it does not say."""
    for part in (config, config.get("text_config")):
        for key in ("max_position_embeddings", "n_positions", "n_ctx"):
            if isinstance(part, Mapping) and isinstance(part.get(key), int) and part[key] > 0:
                return int(part[key])
    return None


class Decoder:
    """Response tokens to text: special tokens removed, `<think>` and `</think>` kept even where they are special."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        added = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        vocabulary = tokenizer.get_vocab()  # asked by name, an absent tag would be the unknown token
        kept = {vocabulary[tag] for tag in _KEPT if tag in vocabulary}
        self._dropped = (added | set(tokenizer.all_special_ids)) - kept

    def text(self, tokens: Sequence[int]) -> str:
        """The text of one response."""
        ids = [token for token in tokens if token not in self._dropped]
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def texts(self, responses: Iterable[Sequence[int]]) -> list[str]:
        """The texts of several responses, in order."""
        return [self.text(tokens) for tokens in responses]
