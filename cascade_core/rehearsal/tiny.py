"""A tiny random model in the place of the user's: the same tokenizer, chat template and special tokens, two small layers.

Its architecture is that of the user's model where transformers can make it small (the result is run once to see), else Qwen2's.
Of a model on the hub everything but its weights is fetched. Nothing from a model's folder is executed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from cascade_core.determinism import derive, seeded
from cascade_core.errors import SpecError
from cascade_core.pretrained import load_tokenizer, quiet_bars
from cascade_core.settings import Model, is_path

_FILES = (".json", ".jinja", ".model", ".tiktoken", ".txt")
_OWN = ("config.json", "adapter_config.json")
_WIDTH, _LAYERS, _HEADS, _LARGEST = 64, 2, 2, 200_000_000
_HEAD, _WIDEST = 32, 128  # sizes of a head, and of a whole layer, of a model that the run makes itself
# What the configurations of transformers call the sizes of a model; each is set where it is there.
_SIZES = {
    "hidden_size": _WIDTH,
    "intermediate_size": 2 * _WIDTH,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "head_dim": _WIDTH // _HEADS,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": _WIDTH,
    "shared_expert_intermediate_size": _WIDTH,
    "max_window_layers": _LAYERS,
}


def source(model: Model) -> Path | None:
    """The folder with the tokenizer and the configuration of the spec's model; `None` for one that the run makes itself.

    Raises:
        SpecError: there is none.
    """
    if model.init is not None:
        return None
    name = str(model.path)
    if Path(name).is_dir():
        return Path(name)
    if is_path(name):
        raise SpecError(f"model.path: no folder is at {name!r}; give a Hugging Face folder or a hub name")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=[f"*{end}" for end in _FILES]))
    except (OSError, ValueError) as cause:
        raise SpecError(
            f"model.path {name!r} is no folder, and could not be had from the hub: {str(cause).splitlines()[0]}"
        ) from cause


def make(model: Model, seed: int, folder: Path) -> list[str]:
    """Writes the tiny model and the user's tokenizer to `folder`; returns what there is to say of it.

    Raises:
        SpecError: there is no such model.
        TrainerError: its tokenizer cannot be read, or cannot be trained with; says why.
    """
    found = source(model)
    if found is None:
        from cascade_core.initial import make as initial

        assert model.init is not None
        width = -(-min(model.init.hidden_size, _WIDEST) // _HEAD) * _HEAD
        fits = [count for count in range(1, model.init.heads + 1) if width % (count * _HEAD) == 0]
        heads = fits[-1]  # vLLM's build for CPUs has no attention for smaller heads
        small = {"hidden_size": width, "heads": heads, "layers": min(model.init.layers, _LAYERS)}
        initial(model.init.model_copy(update=small), seed, folder)
        return []
    tokenizer = load_tokenizer(found)
    words = max([len(tokenizer), *(number + 1 for number in tokenizer.get_vocab().values())])
    with quiet_bars(), seeded(derive("tiny model", seed)):
        made, notes = _network(found, words, tokenizer.eos_token_id)
        made.save_pretrained(folder)
    for file in sorted(found.iterdir()):
        if file.suffix in _FILES and file.name not in _OWN and not file.name.endswith(".index.json"):
            shutil.copyfile(file, folder / file.name)
    return notes


def config_of(folder: Path) -> dict[str, Any]:
    """What `config.json` says; nothing where there is none that can be read."""
    try:
        found = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _network(folder: Path, words: int, end: int) -> tuple[Any, list[str]]:
    from transformers import AutoConfig

    try:
        config: Any = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
        return _tried(_small(config, words)), []
    except Exception as cause:  # noqa: BLE001 - thousands of configurations, which fail in their own ways
        kind = config_of(folder).get("model_type", "no known kind")
        why = (" ".join(str(cause).split()) or type(cause).__name__)[:150]
    note = f"a model of type {kind!r} could not be made small, so that a Qwen2 stands in for it: {why}"
    return _tried(_qwen(folder, words, end)), [note]


def _small(config: Any, words: int) -> Any:
    """The configuration with small sizes and that many words, all else as it is."""
    given = config.to_dict()
    is_shared = (given.get("num_key_value_heads") or 0) < (given.get("num_attention_heads") or 0)
    sizes = {**_SIZES, "num_key_value_heads": 1 if is_shared else _HEADS, "vocab_size": words}
    for name, value in sizes.items():
        if getattr(config, name, None) is not None:
            setattr(config, name, value)
    if isinstance(given.get("layer_types"), list):
        config.layer_types = given["layer_types"][:_LAYERS]
    if "quantization_config" in given:
        del config.quantization_config
    for name in ("bos_token_id", "pad_token_id"):
        number = getattr(config, name, None)
        if isinstance(number, int) and number >= words:
            setattr(config, name, None)
    config.dtype = "float32"
    return config


def _qwen(folder: Path, words: int, end: int) -> Any:
    from transformers import Qwen2Config

    from cascade_core.pretrained import context_of as context

    return Qwen2Config(
        vocab_size=words,
        hidden_size=_WIDTH,
        intermediate_size=2 * _WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=_HEADS,
        max_position_embeddings=context(config_of(folder)) or 32_768,
        tie_word_embeddings=True,
        eos_token_id=end,
        bos_token_id=None,
    )


def _tried(config: Any) -> Any:
    """A model of that configuration that reads a few tokens.

    Raises:
        Exception: it cannot be made, cannot read, or is not small.
    """
    import torch
    from transformers import AutoModelForCausalLM

    auto: Any = AutoModelForCausalLM
    model = auto.from_config(config, trust_remote_code=False).float().eval()
    count = sum(weight.numel() for weight in model.parameters())
    if count > _LARGEST:
        raise ValueError(f"it still has {count / 1e6:.0f} million weights")
    with torch.inference_mode():
        model(input_ids=torch.zeros(1, 3, dtype=torch.long))
    return model
