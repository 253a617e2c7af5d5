"""Small random reward models in folders, as transformers and OpenRLHF save them, with a tokenizer of their own."""

from __future__ import annotations

import json
from pathlib import Path

CHAT = (
    "{% for turn in messages %}<|im_start|>{{ turn['role'] }}\n{{ turn['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTEXT = 96


def tokenizer(folder: Path, *, pairs: bool = False, chat: bool = True, pad: bool = True) -> int:
    """Writes a tokenizer of single bytes; gives the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[CLS]", "[SEP]", "[PAD]"] if pairs else ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({token: place for place, token in enumerate([*special, *letters])}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    given = {"pad_token": special[2]} if pad else {}
    if pairs:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
        )
        given |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
        names = ["input_ids", "token_type_ids", "attention_mask"]
    else:
        given |= {"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]}
        names = ["input_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(tokenizer_object=made, model_input_names=names, model_max_length=CONTEXT, **given)
    if chat and not pairs:
        fast.chat_template = CHAT
    fast.save_pretrained(folder)
    return len(special) + len(letters)


def qwen(folder: Path, seed: int, *, pad: bool = True, labels: int = 1) -> Path:
    """A Qwen2 classifier whose tokenizer has a chat template."""
    import torch
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    size = tokenizer(folder, pad=pad)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, num_labels=labels,
        bos_token_id=None, eos_token_id=1, pad_token_id=2 if pad else None, initializer_range=0.2,
    )  # fmt: skip
    Qwen2ForSequenceClassification(config).save_pretrained(folder)
    return folder


def bert(folder: Path, seed: int) -> Path:
    """A BERT classifier, which reads pairs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    size = tokenizer(folder, pairs=True)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=CONTEXT, num_labels=1, pad_token_id=2, initializer_range=0.2,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def value_head(folder: Path, seed: int, *, prefix: str = "value_head", named: bool = True) -> Path:
    """What `train_rm` of OpenRLHF leaves: a transformer under `model.`, a linear layer under `prefix`, its name in `config.json`."""
    import torch
    from safetensors.torch import save_file
    from transformers import Qwen2Config, Qwen2Model

    size = tokenizer(folder)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=1, pad_token_id=2,
        initializer_range=0.2,
    )  # fmt: skip
    model = Qwen2Model(config)
    weights = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    weights[f"{prefix}.weight"] = torch.randn(1, 32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    written = config.to_dict() | {"architectures": ["RewardModel"], "normalize_reward": False}
    written |= {"value_head_prefix": prefix} if named else {}
    (folder / "config.json").write_text(json.dumps(written))
    return folder
