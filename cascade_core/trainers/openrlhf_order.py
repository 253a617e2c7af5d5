"""The order in which OpenRLHF's `train_sft` and `train_rm` take rows, and the file that makes it ours.

Both shuffle their data with a generator of its own, seeded by `train.seed` (`DistributedSampler`, first epoch), and deal the
shuffled rows out to their processes one by one. So the rows are written in an order that this shuffle undoes: every update then takes
the rows that follow in `prompts.jsonl`, whatever the number of processes. torch is imported when this is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")


def unshuffled(rows: Sequence[Row], seed: int) -> list[Row]:
    """The rows as they must be written, so that OpenRLHF's shuffle with that `train.seed` (`openrlhf_args.program_seed`)
    brings them back.

    All of them are taken once; their number must be a multiple of the processes (`openrlhf_sizes.share` sees to that).
    """
    import torch

    generator = torch.Generator()
    generator.manual_seed(seed)
    places = torch.randperm(len(rows), generator=generator).tolist()
    written = list(rows)
    for row, place in zip(rows, places, strict=True):
        written[place] = row
    return written
