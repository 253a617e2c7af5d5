"""A reward model: a folder or hub name as a function from tokens to one score a sequence.

Two kinds are read. A transformers sequence classifier with one label scores where its own class says (`last token that is no padding`, or
the pooled first token). A value head as OpenRLHF trains and saves it (`config.json` has `value_head_prefix`, or one is named) is a linear layer under that
name upon the last token's hidden state; where its `config.json` says `normalize_reward`, the mean is taken off and divided by `std`.
Weights that lack the head are refused: transformers would make up a random one. Nothing from the folder is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.errors import ResourceError
from cascade_core.settings import is_path

if TYPE_CHECKING:
    import torch

_SAFE: Any = {"trust_remote_code": False}
_GPU_TOKENS, _CPU_TOKENS = 16_384, 2_048
_WARM_TOKENS = 64


@dataclass(frozen=True)
class Encoded:
    """Tokens of one sequence, at least one; `types` tells the two texts of a pair apart, where the model wants that."""

    ids: Sequence[int]
    types: Sequence[int] | None = None
    tokens: int = 0
    """How many there were before anything was cut."""
    truncated: bool = False


@dataclass(frozen=True)
class Source:
    """Which model, and how it is run.

    Attributes:
        device: `auto` (the first GPU, or the processor), or what torch calls it.
        dtype: `auto` (as saved on a GPU, float32 on a processor), or float32, bfloat16, float16.
        value_head_prefix: the name of a value head; `""` for a classifier, or for what `config.json` names.
        max_tokens: the longest sequence; 0 for what the model allows.
        max_tokens_per_batch: padding included; 0 for 16,384 on a GPU and 2,048 on a processor.
        template: how prompt and response become a text, see `encoding.py`.
    """

    path: str
    device: str = "auto"
    dtype: str = "auto"
    value_head_prefix: str = ""
    max_tokens: int = 0
    max_tokens_per_batch: int = 0
    template: str = "auto"


class RewardModel:
    """Scores batches; one thread at a time.

    Args:
        source: which.

    Raises:
        ResourceError: no reward model can be read from there; says why.
    """

    def __init__(self, source: Source) -> None:
        import torch
        from transformers import AutoConfig, AutoTokenizer

        from cascade_core.pretrained import context_length

        self.source = source
        if is_path(source.path) and not Path(source.path).is_dir():
            raise ResourceError(
                f"no folder is at {source.path!r}; give the folder of a reward model, or a hub name (OWNER/MODEL)"
            )
        self.device = _device(source.device)
        with _explained(source.path):
            self.config = AutoConfig.from_pretrained(source.path, **_SAFE)
            self.tokenizer = AutoTokenizer.from_pretrained(source.path, **_SAFE)
        prefix = source.value_head_prefix or str(getattr(self.config, "value_head_prefix", "") or "")
        dtype = "float32" if source.dtype == "auto" and self.device.type == "cpu" else source.dtype
        self.is_value_head = bool(prefix)
        with _explained(source.path):
            self._head = _ValueHead(source.path, self.config, prefix, dtype) if prefix else None
            self._network = self._head.network if self._head else _classifier(source.path, self.config, dtype)
        self._network.to(self.device).eval()
        if self._head:
            self._head.layer.to(self.device)
        self.context = context_length(self._network)
        usual = _CPU_TOKENS if self.device.type == "cpu" else _GPU_TOKENS
        self.most_tokens = source.max_tokens_per_batch or usual
        self._text_config = self._network.config.get_text_config()
        self._pads_freely = getattr(self._text_config, "pad_token_id", None) is None
        self._inference = torch.inference_mode

    def scores(self, batch: Sequence[Encoded]) -> list[float]:
        """The score of each sequence; padded on the right to the longest."""
        import torch

        pad, width = self._pad(batch), max(len(one.ids) for one in batch)
        if pad is None:
            return [score for one in batch for score in self.scores([one])]
        ids = torch.tensor([[*one.ids, *[pad] * (width - len(one.ids))] for one in batch])
        mask = torch.tensor([[1] * len(one.ids) + [0] * (width - len(one.ids)) for one in batch])
        inputs = {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}
        if batch[0].types is not None:
            types = [[*(one.types or ()), *[0] * (width - len(one.ids))] for one in batch]
            inputs["token_type_ids"] = torch.tensor(types).to(self.device)
        with self._inference():
            found = self._head(inputs) if self._head else self._network(**inputs).logits[:, 0]
        return [float(score) for score in found.float().tolist()]

    def warm(self) -> None:
        """Runs once what later runs often; on a GPU a whole batch too, so that too large a one is found now."""
        token = int(self._text_config.bos_token_id or 0) if hasattr(self._text_config, "bos_token_id") else 0
        types = [0] * _WARM_TOKENS if "token_type_ids" in self.tokenizer.model_input_names else None
        length = min(_WARM_TOKENS, self.context or _WARM_TOKENS)
        one = Encoded([token] * length, types[:length] if types else None, length)
        count = 2 if self.device.type == "cpu" else max(1, self.most_tokens // length)
        self.scores([one])
        self.scores([one] * count)

    def facts(self) -> Mapping[str, Any]:
        """What it is: kind, digest of its files, versions; no clock and no secret."""
        import torch
        import transformers

        from cascade_core.folder import model_fingerprint

        folder = Path(self.source.path)
        return {
            "model": self.source.path,
            "weights": model_fingerprint(folder) if folder.is_dir() else str(getattr(self.config, "_commit_hash", "")),
            "kind": "value head" if self.is_value_head else "classifier",
            "architecture": type(self._network).__name__,
            "dtype": str(self._network.dtype).removeprefix("torch."),
            "device": self.device.type,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        }

    def _pad(self, batch: Sequence[Encoded]) -> int | None:
        """The token that pads; `None` where a batch leaves none.

        Where the model names none, it is one that is nowhere in the batch: its class looks for the last token that is another.
        """
        if not self._pads_freely:
            return int(self._text_config.pad_token_id)
        used = set().union(*(one.ids for one in batch))
        pad = next((token for token in range(len(used) + 1) if token not in used), 0)
        if pad >= self._text_config.vocab_size and len(batch) > 1:
            return None
        self._text_config.pad_token_id = None if len(batch) == 1 else pad
        return 0 if len(batch) == 1 else pad


class _ValueHead:
    """A transformer without head, and the linear layer that OpenRLHF puts upon it (`models/model.py`, `RewardModel.forward`)."""

    def __init__(self, path: str, config: Any, prefix: str, dtype: str) -> None:
        import torch
        from transformers import AutoModel

        self.network, told = AutoModel.from_pretrained(path, dtype=dtype, output_loading_info=True, **_SAFE)
        _insist(path, [key for key in told["missing_keys"] if "pooler" not in key])
        weights = _tensors(Path(path), prefix)
        if f"{prefix}.weight" not in weights:
            raise ResourceError(f"{path} has no value head {prefix!r}: none of its weights is {prefix}.weight")
        weight, bias = weights[f"{prefix}.weight"], weights.get(f"{prefix}.bias")
        self.layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        self.layer.load_state_dict({"weight": weight} | ({"bias": bias} if bias is not None else {}))
        self.layer.to(self.network.dtype).eval()
        if weight.shape[0] != 1:
            raise ResourceError(f"the value head {prefix!r} of {path} gives {weight.shape[0]} numbers, allowed is one")
        normal = bool(getattr(config, "normalize_reward", False)) and hasattr(config, "mean")
        self._mean, self._std = (float(config.mean), float(config.std)) if normal else (0.0, 1.0)

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        states = self.network(**inputs).last_hidden_state
        last = inputs["attention_mask"].sum(dim=1) - 1
        values = self.layer(states[range(len(last)), last])[:, 0]
        normal: torch.Tensor = (values.float() - self._mean) / self._std
        return normal


def _classifier(path: str, config: Any, dtype: str) -> Any:
    from transformers import AutoModelForSequenceClassification

    if config.num_labels != 1:
        raise ResourceError(
            f"{path} is no reward model: it has {config.num_labels} labels, allowed is one; a value head is named with --value-head-prefix"
        )
    network, told = AutoModelForSequenceClassification.from_pretrained(
        path, dtype=dtype, output_loading_info=True, **_SAFE
    )
    _insist(path, told["missing_keys"])
    return network


def _insist(path: str, missing: Any) -> None:
    """Refuses weights that transformers had to make up."""
    if missing:
        named = ", ".join(sorted(map(str, missing))[:3])
        raise ResourceError(
            f"{path} lacks weights of a reward model: {named}; a head of another name is said with --value-head-prefix"
        )


def _tensors(folder: Path, prefix: str) -> dict[str, Any]:
    """The weights of a folder that belong to the head."""
    import torch
    from safetensors import safe_open

    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            found |= {key: tensors.get_tensor(key) for key in tensors.keys() if key.startswith(f"{prefix}.")}  # noqa: SIM118
    for file in sorted(folder.glob("pytorch_model*.bin")) if not found else ():
        whole = torch.load(file, map_location="cpu", weights_only=True)
        found |= {key: tensor for key, tensor in whole.items() if key.startswith(f"{prefix}.")}
    return found


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns what transformers raises on a folder that it cannot read (many types) into one line."""
    from safetensors import SafetensorError

    try:
        yield
    except ResourceError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, ImportError, SafetensorError) as e:
        reason = " ".join(str(e).split())[:200] or type(e).__name__
        raise ResourceError(f"no reward model can be read from {path} ({reason})") from e


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as cause:
        raise ResourceError(f"device {name!r} cannot be used: {' '.join(str(cause).split())[:200]}") from cause
    return device
