"""Scores by OpenRLHF's own class, in its own environment: `python rm_scores.py FOLDER`, texts of tokens on stdin, scores on stdout."""

from __future__ import annotations

import json
import sys

import torch
from openrlhf.models import get_llm_for_sequence_regression


def main(folder: str) -> None:
    """One text at a time, in 32 bits, with the head that the folder has."""
    model = get_llm_for_sequence_regression(folder, "reward", attn_implementation="sdpa").float().eval()
    texts = [torch.tensor([ids]) for ids in json.load(sys.stdin)]
    with torch.no_grad():
        scores = [float(model(ids, attention_mask=torch.ones_like(ids))) for ids in texts]
    print("\n" + json.dumps(scores))


if __name__ == "__main__":
    main(sys.argv[1])
