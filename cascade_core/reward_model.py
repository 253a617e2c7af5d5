"""A reward model: what it reads, how it is loaded, and its raw scores, one number per response.

A reward model is a Hugging Face folder with a sequence-classification head of one label; whoever trained it, its score is read at
the last token that is no padding. What it reads is said by `tokens`: trainers, benchmarks and whoever serves it read the same. Scores are raw, of any
size: what they mean for a reward is a domain's business. Nothing is sampled here, and nothing judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cascade_core.determinism import derive, seeded, settle_threads
from cascade_core.domain import Message
from cascade_core.errors import TrainerError
from cascade_core.pretrained import context_length, explained, quiet_bars

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SAFE: Any = {"trust_remote_code": False}
_SPARE = ("unk_token", "bos_token", "cls_token", "mask_token")


def load_model(path: str | Path, seed: int | None = None, **options: Any) -> Any:
    """The model at `path` with a head of one label.

    Args:
        seed: of the new head that a model gets which has none (a policy); without one, it must have a head.
        options: those of `from_pretrained`, on top of `dtype=float32`.

    Raises:
        TrainerError: no such model can be read, or it has no head and none is to be made.
    """
    from transformers import AutoModelForSequenceClassification

    given = {"dtype": "float32", **options, "num_labels": 1}
    fixed = nullcontext() if seed is None else seeded(derive("reward head", seed))
    with explained(path, "reward model"), quiet_bars(), fixed:
        model, told = AutoModelForSequenceClassification.from_pretrained(
            str(path), output_loading_info=True, **_SAFE, **given
        )
    if seed is None and (missing := sorted(told["missing_keys"])):
        raise TrainerError(f"{path} is no reward model: it has no weights {missing[0]!r}; train one from it first")
    return model


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer at `path` for a reward model, padding on the right, with a padding token that is not the end token.

    Where both are one, the last token that is no padding would not be the end; another special token pads then.

    Raises:
        TrainerError: there is none that can be read, or it has no token but its end to pad with.
    """
    from transformers import AutoTokenizer

    with explained(path, "tokenizer"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(path), **_SAFE, padding_side="right")
    end = tokenizer.eos_token_id
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == end:
        named = [getattr(tokenizer, name, None) for name in _SPARE]
        added = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
        spare = next((one for one in (*named, *added) if one and tokenizer.convert_tokens_to_ids(one) != end), None)
        if spare is None:
            raise TrainerError(
                f"the tokenizer in {path} has no token to pad with but its end token; set pad_token in tokenizer_config.json"
            )
        tokenizer.pad_token = spare
    return tokenizer


class Text(NamedTuple):
    """What a reward model reads of one response: its tokens, and for encoders of pairs which of both texts each is of."""

    ids: list[int]
    types: list[int] | None


def tokens(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], response: str) -> Text:
    """What a reward model reads of a task's `prompt` and a response.

    With a chat template the conversation as it is rendered, the response as the assistant's turn; without one, where the tokenizer has
    a separator, prompt and response as a pair; else prompt, response and end of text, one after another. Words in them that
    look like special tokens are broken by a space: they are text, and end nobody's turn.

    Raises:
        TrainerError: the template refuses the row, or nothing is left to read.
    """
    text = plain(tokenizer)
    if tokenizer.chat_template is not None:
        whole = _rendered(tokenizer, row, turns(row["prompt"], response, text))
        found: Any = tokenizer(sound(whole), add_special_tokens=False, verbose=False)
    elif tokenizer.sep_token_id is not None:
        found = tokenizer(lines(row["prompt"], text), text(response), verbose=False)
    else:
        whole = lines(row["prompt"], text) + text(response) + str(tokenizer.eos_token or "")
        found = tokenizer(whole, add_special_tokens=False, verbose=False)
    if not found["input_ids"]:
        raise TrainerError(f"task {row.get('id')!r} has an empty prompt and an empty response")
    types = list(found["token_type_ids"]) if "token_type_ids" in tokenizer.model_input_names else None
    ids = list(found["input_ids"])
    return Text(ids, types if types is None or tokenizer.chat_template is None else [0] * len(ids))


def _rendered(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Any) -> str:
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False))
    except (TemplateError, ValueError, TypeError, KeyError) as cause:
        raise TrainerError(f"the model's chat template refuses task {row.get('id')!r}: {cause}") from cause


def turns(prompt: str | Sequence[Message], response: str, text: Callable[[str], str]) -> list[Any]:
    """The conversation that a chat template renders, the response as the assistant's turn; `text` is `plain`'s."""
    asked: Sequence[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    said = [{**turn, "content": text(turn["content"])} for turn in asked]
    return [*said, {"role": "assistant", "content": text(response)}]


def lines(prompt: str | Sequence[Message], text: Callable[[str], str]) -> str:
    """A prompt without a chat template: what its turns say, a line each; `text` is `plain`'s."""
    return text(prompt if isinstance(prompt, str) else "\n".join(turn["content"] for turn in prompt))


def plain(tokenizer: PreTrainedTokenizerBase) -> Callable[[str], str]:
    """What makes a text of prompts and responses one that holds no special token (`<|im_end|>` to `< |im_end|>`), and is sound."""
    special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    named = sorted((one for one in special | set(tokenizer.all_special_tokens) if len(one) > 1), key=len, reverse=True)
    if not named:
        return sound
    pattern = re.compile("|".join(map(re.escape, named)))
    return lambda text: pattern.sub(lambda found: f"{found[0][0]} {found[0][1:]}", sound(text))


def sound(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def padded(texts: Sequence[Text], pad: int) -> dict[str, Any]:
    """The inputs of a model, padded on the right to the longest text: tensors of [texts, tokens]."""
    import torch

    width = max(len(text.ids) for text in texts)
    rows = {
        "input_ids": [[*text.ids, *[pad] * (width - len(text.ids))] for text in texts],
        "attention_mask": [[1] * len(text.ids) + [0] * (width - len(text.ids)) for text in texts],
    }
    if texts[0].types is not None:
        rows["token_type_ids"] = [[*(text.types or ()), *[0] * (width - len(text.ids))] for text in texts]
    return {name: torch.tensor(values) for name, values in rows.items()}


class RewardReader:
    """Reads raw scores with the reward model in a folder, on the GPU if there is one.

    Args:
        model: a Hugging Face folder.
        batch_size: responses that are read at once.

    Raises:
        TrainerError: the folder holds no reward model.
    """

    def __init__(self, model: Path, batch_size: int) -> None:
        import torch

        self.tokenizer = load_tokenizer(model)
        self._model = load_model(model).to("cuda" if torch.cuda.is_available() else "cpu").eval()
        self._model.config.get_text_config().pad_token_id = self.tokenizer.pad_token_id
        self._batch_size = batch_size
        self.context = context_length(self._model)
        settle_threads(sum(weight.numel() for weight in self._model.parameters()))

    def scores(self, texts: Sequence[Text]) -> list[float]:
        """The raw score of each text (see `tokens`), in their order.

        Raises:
            TrainerError: memory ran out.
        """
        order = sorted(range(len(texts)), key=lambda place: (len(texts[place].ids), place))
        found = [0.0] * len(texts)
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for place, score in zip(batch, self._read([texts[place] for place in batch]), strict=True):
                found[place] = score
        return found

    def _read(self, texts: Sequence[Text]) -> list[float]:
        import torch

        from cascade_core.sampling import is_out_of_memory

        given = padded(texts, int(self.tokenizer.pad_token_id))
        try:
            with torch.inference_mode():
                moved = {name: values.to(self._model.device) for name, values in given.items()}
                logits = self._model(**moved).logits  # [texts, 1]
        except (RuntimeError, MemoryError) as cause:
            if not is_out_of_memory(cause):
                raise
            raise TrainerError(f"out of memory with {len(texts)} responses; lower evaluation.batch_size") from cause
        return [float(score) for score in logits[:, 0].float().tolist()]
