"""Qwen's own vocabulary, fetched from the package index when a test runs, as the tokenizers of Qwen3 and of R1's distillates have it.

The package `dashscope` (Apache-2.0) ships the 151,643 byte sequences with their ranks. A tokenizer wants merges: that of a token are the two parts
which are left when its bytes are merged, lowest rank first, as far as ranks below its own go. The added tokens and their numbers are those that the models' authors
publish in `tokenizer_config.json` of Qwen3 and of DeepSeek-R1-Distill-Qwen; the split of words is as in `modes_tokenizers.py`.
"""

from __future__ import annotations

import base64
import itertools
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from modes_tokenizers import words

PACKAGE = "dashscope==2.0.2"
SIZE = 151_643
QWEN3 = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
]
R1 = [
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜begin▁of▁sentence｜>",
    "<|EOT|>",
    "<think>",
    "</think>",
]
SPECIAL = {*QWEN3[:14], *R1[:5]}


def ranks(folder: Path) -> dict[bytes, int]:
    """The vocabulary, fetched into a folder."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "-d", str(folder)]
    subprocess.run([*pip, PACKAGE], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        lines = wheel.read("dashscope/resources/qwen.tiktoken").splitlines()
    found = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    assert len(found) == SIZE
    return found


def merges(vocabulary: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The pair that each token of two bytes and more is made of, in the order of the tokens."""
    found = []
    for token, rank in sorted(vocabulary.items(), key=lambda entry: entry[1]):
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            joined = [vocabulary.get(one + other, rank) for one, other in itertools.pairwise(parts)]
            lowest = min(joined)
            if lowest >= rank:
                break
            place = joined.index(lowest)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        if len(parts) == 2:
            found.append((parts[0], parts[1]))
    return found


def core(vocabulary: dict[bytes, int]) -> str:
    """The tokenizer without added tokens, as JSON."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()

    def shown(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    made = Tokenizer(
        models.BPE(
            vocab={shown(token): rank for token, rank in vocabulary.items()},
            merges=[(shown(one), shown(other)) for one, other in merges(vocabulary)],
        )
    )
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = words()
    made.decoder = decoders.ByteLevel()
    return str(made.to_str())


def tokenizer(core: str, chat_template: str | None, *, r1: bool = False) -> Any:
    """A tokenizer of Qwen3, or of R1's distillates of Qwen, with that template."""
    from tokenizers import AddedToken, Tokenizer
    from transformers import PreTrainedTokenizerFast

    whole = Tokenizer.from_str(core)
    added = R1 if r1 else QWEN3
    whole.add_tokens([AddedToken(text, special=text in SPECIAL, normalized=False) for text in added])
    end = R1[0] if r1 else "<|im_end|>"
    made = PreTrainedTokenizerFast(
        tokenizer_object=whole,
        eos_token=end,
        pad_token=added[0],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        **({"bos_token": R1[3]} if r1 else {}),
    )
    made.chat_template = chat_template
    return made
