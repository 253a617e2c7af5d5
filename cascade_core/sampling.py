"""Samples responses on this machine: batches of prompts, left-padded, through transformers' `generate`.

Each prompt is read once and its cache repeated for its samples, which `generate` goes on from (1.02–1.09 times a bare
loop over the cache, half of `num_return_sequences`: docs/trainers/trl.md). Prompts are sorted by length, so that
little is padded. A call is deterministic in its seed; what a prompt is given depends on the prompts beside it.

A response ends with an end token or is `truncated`. This module judges nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.determinism import seeded, settle_threads
from cascade_core.errors import TrainerError
from cascade_core.pretrained import Decoder, context_length, end_tokens, load_model, load_tokenizer
from cascade_core.rows import Row
from cascade_core.settings import Sampling
from cascade_core.template import encode

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Sample:
    """One response: its text, its length in tokens (the end token counts), and whether the limit cut it."""

    text: str
    tokens: int
    truncated: bool
    prefill: str = ""


class LocalSampler:
    """Samples from the model in a folder, on the GPU if there is one.

    Args:
        model: a Hugging Face folder.
        batch_size: responses that are generated at the same time.
        modes: how a row's mode is said to the model.

    Raises:
        TrainerError: the folder cannot be read.
    """

    def __init__(self, model: Path, batch_size: int, modes: str = "switch") -> None:
        import torch

        self._tokenizer = load_tokenizer(model)
        loaded: Any = load_model(model)
        self._model: PreTrainedModel = loaded.to(device()).eval()
        self._batch_size, self._modes = batch_size, modes
        settle_threads(sum(weight.numel() for weight in self._model.parameters()))
        self._ends = end_tokens(self._model, self._tokenizer)
        self._decoder = Decoder(self._tokenizer)
        self._no_grad = torch.inference_mode

    def sample(self, prompts: Sequence[Row], samples: int, sampling: Sampling, seed: int) -> list[list[Sample]]:
        """`samples` responses to each prompt, in order; at temperature 0 they are one and the same.

        Raises:
            TrainerError: a prompt leaves no room for a response in the model's context, or memory ran out.
        """
        encoded = [encode(self._tokenizer, row, self._modes) for row in prompts]
        for row, (ids, _) in zip(prompts, encoded, strict=True):
            check_length(row, len(ids), sampling.max_response_tokens, context_length(self._model))
        drawn = 1 if sampling.temperature == 0 else samples
        order = sorted(range(len(prompts)), key=lambda i: (len(encoded[i][0]), i))
        step = max(1, self._batch_size // drawn)
        found: list[list[Sample]] = [[] for _ in prompts]
        with seeded(seed):
            for start in range(0, len(order), step):
                batch = order[start : start + step]
                tokens = self._draw([encoded[i][0] for i in batch], drawn, sampling)
                for place, i in enumerate(batch):
                    mine = [self._sample(ids, encoded[i][1]) for ids in tokens[place * drawn : (place + 1) * drawn]]
                    found[i] = mine if drawn == samples else mine * samples
        return found

    def _draw(self, prompts: list[list[int]], samples: int, sampling: Sampling) -> list[list[int]]:
        try:
            with self._no_grad():
                return draw(self._model, prompts, samples, sampling, self._ends, int(self._tokenizer.pad_token_id))
        except (RuntimeError, MemoryError) as cause:
            if not is_out_of_memory(cause):
                raise
            raise TrainerError(f"out of memory with {len(prompts) * samples} responses; lower batch_size") from cause

    def _sample(self, tokens: list[int], prefill: str) -> Sample:
        return Sample(self._decoder.text(tokens), len(tokens), tokens[-1] not in self._ends, prefill)


def device() -> str:
    """Where models run: the first GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def is_out_of_memory(cause: BaseException) -> bool:
    """Whether torch or Python could not get memory, on the GPU or off it."""
    import torch

    told = str(cause)
    return isinstance(cause, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in told


def check_length(row: Row, prompt: int, response: int, context: int | None) -> None:
    """Refuses a prompt that leaves no room for the longest response.

    Raises:
        TrainerError: names the task and the setting.
    """
    if context is not None and prompt + response > context:
        raise TrainerError(
            f"task {row.get('id')!r} has a prompt of {prompt} tokens, which with max_response_tokens {response}"
            f" exceeds the model's context of {context}; lower max_response_tokens or leave the task out"
        )


class EntropyMeter:
    """Adds up the entropy (nats) of the distribution that each token is drawn from, before any cut-off."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._steps: list[torch.Tensor] = []  # one [responses] per generated position

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """A logits processor that looks and changes nothing; scores: [responses, vocabulary]."""
        import torch

        logp = torch.log_softmax(scores.float() / self._temperature, dim=-1)
        self._steps.append(-(logp.exp() * logp).sum(-1))
        return scores

    def mean(self, lengths: Sequence[int]) -> float:
        """The mean over all tokens of responses of these lengths; 0.0 for none."""
        import torch

        if not self._steps or not sum(lengths):
            return 0.0
        entropy = torch.stack(self._steps, dim=1)  # [responses, positions]
        positions = torch.arange(entropy.shape[1], device=entropy.device)
        kept = positions[None, :] < torch.tensor(lengths, device=entropy.device)[:, None]
        return float((entropy * kept).sum() / kept.sum())


class EndWatch:
    """Tells of each response that its end token has come, while the others are still being generated.

    Args:
        width: tokens of the prompts, padding included.
        ends: the end tokens.
        tell: gets the place of a response in the batch and its tokens, once for each; one forward pass after its end. What
            the length limit cuts, and what ends with the last token of the batch, is not told of.
    """

    def __init__(self, width: int, ends: Sequence[int], tell: Callable[[int, list[int]], None]) -> None:
        self._width, self._ends, self._tell = width, ends, tell
        self._open: torch.Tensor  # [responses]: still being generated

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """A logits processor that looks and changes nothing; input_ids: [responses, tokens so far]."""
        import torch

        if input_ids.shape[1] == self._width:
            self._open = torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
            return scores
        last = input_ids[:, -1]
        ended = torch.isin(last, torch.tensor(self._ends, device=last.device)) & self._open
        for place in ended.nonzero().flatten().tolist():
            self._tell(place, input_ids[place, self._width :].tolist())
        self._open &= ~ended
        return scores


def draw(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    samples: int,
    sampling: Sampling,
    ends: Sequence[int],
    pad: int,
    meter: EntropyMeter | None = None,
    tell: Callable[[int, list[int]], None] | None = None,
) -> list[list[int]]:
    """`samples` responses (token ids, the end token included) to each prompt, prompt by prompt.

    The caller seeds torch, switches gradients off and puts the model into evaluation mode. `tell` hears of responses
    that end before the last ones do (`EndWatch`); the draws do not depend on it.
    """
    import torch
    from transformers import GenerationConfig

    width = max(map(len, prompts))
    ids = torch.tensor([[pad] * (width - len(prompt)) + list(prompt) for prompt in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=model.device)
    cache = _read_once(model, ids, mask, samples) if samples > 1 and width > 1 else {}
    chosen: dict[str, Any] = {"do_sample": sampling.temperature > 0}
    if sampling.temperature > 0:
        chosen |= {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    settings = GenerationConfig(  # type: ignore[no-untyped-call]
        **chosen,
        max_new_tokens=sampling.max_response_tokens,
        eos_token_id=list(ends),
        pad_token_id=pad,
        bos_token_id=None,
        disable_compile=True,
    )
    with _own_settings_only(model):
        output = model.generate(  # type: ignore[operator]
            input_ids=ids.repeat_interleave(samples, 0),
            attention_mask=mask.repeat_interleave(samples, 0),
            generation_config=settings,
            logits_processor=[*([meter] if meter else []), *([EndWatch(width, ends, tell)] if tell else [])],
            **cache,
        )
    return [_cut(row, ends) for row in output[:, width:].tolist()]


@contextmanager
def _own_settings_only(model: PreTrainedModel) -> Iterator[None]:
    """Keeps `generate` from filling what is unset (a repetition penalty, say) from the model's own preferences."""
    from transformers import GenerationConfig

    kept = model.generation_config
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        model.generation_config = kept


def _cut(tokens: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to and with the first end token."""
    last = next((i for i, token in enumerate(tokens) if token in ends), len(tokens) - 1)
    return tokens[: last + 1]


def _read_once(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, samples: int) -> dict[str, Any]:
    """The cache of all but the last prompt token, repeated for the samples; nothing for models without such a cache."""
    from transformers import DynamicCache

    backbone = model.base_model
    accepted = inspect.signature(type(backbone).forward).parameters
    name = next((name for name in ("cache", "past_key_values") if name in accepted), None)
    if name is None or getattr(model, "_is_stateful", False) or model.config.is_encoder_decoder:
        return {}
    cache = DynamicCache(config=model.config)
    positions = (mask.cumsum(1) - 1).clamp(min=0)[:, :-1]
    backbone(
        input_ids=ids[:, :-1], attention_mask=mask[:, :-1], position_ids=positions, use_cache=True, **{name: cache}
    )
    cache.batch_repeat_interleave(samples)
    return {name: cache}
