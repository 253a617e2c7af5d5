"""Tokenizers of real models' shape: byte-level BPE with Qwen's split of words and normal form and Qwen3's added tokens, and the chat
templates that TRL ships for Qwen3, R1 and Nemotron 3.

The merges are learned here from a few sentences; what is special, and how text around it is split, is as there. Qwen's own vocabulary has to be fetched, which
`qwen_vocabulary.py` does where there is time for it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|box_start|>", "<|vision_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
R1_SPECIAL = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"]
_TEXT = [
    "system user assistant think no_think the answer is what one and one",
    "\n\n user\n assistant\n /think /no_think <|im_start|> <|im_end|> <think> </think>",
]
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def template(name: str) -> str:
    """A chat template of TRL's."""
    return (files("trl") / "chat_templates" / f"{name}.jinja").read_text("utf-8")


def words() -> Any:
    """How Qwen's tokenizers split a text into words, and words into bytes."""
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(_WORDS), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


@cache
def _core(special: tuple[str, ...], end: str) -> str:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = words()
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    core.train_from_iterator(_TEXT, trainer)
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    core.add_tokens([AddedToken(text, special=False, normalized=False) for text in PLAIN])
    return str(core.to_str())


def tokenizer(chat_template: str | None, *, r1: bool = False) -> Any:
    """A tokenizer with that template, a new one each time."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    special = R1_SPECIAL if r1 else SPECIAL
    end = "<｜end▁of▁sentence｜>" if r1 else "<|im_end|>"
    more = {"bos_token": R1_SPECIAL[0]} if r1 else {}
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_core(tuple(special), end)),
        eos_token=end,
        pad_token="<|endoftext|>" if not r1 else end,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        **more,
    )
    made.chat_template = chat_template
    return made
