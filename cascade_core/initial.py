"""A model and a tokenizer that a run makes itself: what `init:` in a spec stands for.

The tokenizer splits text into the listed phrases and single characters (printable ASCII, tab and newline), at each
place the longest that fits; decoding what it encoded gives the same text, spaces and all. Any other character is
`<unk>`. A special token written out in a text is read as its characters, never as the token. The model is a small
Llama with tied embeddings and random weights drawn from the seed. Both are plain Hugging Face files.

There is no chat template: prompts of such a model are plain text.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.determinism import derive, seeded
from cascade_core.errors import SpecError
from cascade_core.pretrained import quiet_bars
from cascade_core.settings import InitModel, InitTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PAD, EOS, UNK = SPECIAL = ("<pad>", "<eos>", "<unk>")
CHARACTERS = "\t\n" + "".join(map(chr, range(32, 127)))


def make(init: InitModel, seed: int, folder: Path) -> None:
    """Writes model and tokenizer to `folder`, whole or not at all; the same arguments give the same bytes.

    Raises:
        SpecError: a phrase that cannot be a token.
    """
    tokenizer = build_tokenizer(init.tokenizer, init.context)
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    with quiet_bars():
        _model(init, len(tokenizer), seed).save_pretrained(part)
    tokenizer.save_pretrained(part)
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)


def build_tokenizer(settings: InitTokenizer, context: int) -> PreTrainedTokenizerBase:
    """The tokenizer of these settings, for a model that reads `context` tokens.

    Raises:
        SpecError: a phrase is empty, a special token, or listed twice.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [*CHARACTERS, *_phrases(settings.phrases)]
    core = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate((*SPECIAL, *pieces))}, unk_token=UNK))
    longest_first = sorted(pieces, key=lambda piece: (-len(piece), piece))
    pattern = Regex("|".join(map(_escape, longest_first)) + r"|[\s\S]")
    core.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        model_max_length=context,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,
    )


def _phrases(phrases: list[str]) -> list[str]:
    """The phrases that are more than one known character."""
    for phrase in phrases:
        if not phrase or phrase in SPECIAL:
            raise SpecError(f"tokenizer phrase {phrase!r} cannot be a token; give text other than {', '.join(SPECIAL)}")
    repeated = next((phrase for phrase in phrases if phrases.count(phrase) > 1), None)
    if repeated is not None:
        raise SpecError(f"tokenizer phrase {repeated!r} is listed twice")
    return [phrase for phrase in phrases if phrase not in CHARACTERS]


def _escape(piece: str) -> str:
    """`piece` as a literal for the tokenizer's own expression engine."""
    return re.sub(r"([^\w\s])", r"\\\1", piece, flags=re.ASCII)


def _model(init: InitModel, vocabulary: int, seed: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=init.hidden_size,
        intermediate_size=max(8, init.hidden_size * 8 // 3 // 8 * 8),
        num_hidden_layers=init.layers,
        num_attention_heads=init.heads,
        num_key_value_heads=init.heads,
        max_position_embeddings=init.context,
        tie_word_embeddings=True,
        pad_token_id=SPECIAL.index(PAD),
        eos_token_id=SPECIAL.index(EOS),
        bos_token_id=None,
    )
    with seeded(derive("initial weights", seed)):
        return LlamaForCausalLM(config)
