"""Seeds and threads: what makes a stage that was killed and given again end with the same bytes.

Every draw has a seed of its own, made from the stage's seed and what the draw is for, so that nothing depends on how
many draws came before. On a CPU the same seed and the same number of threads give the same bits; on a GPU they
usually do, and nothing here promises it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

SMALL = 20_000_000
"""Parameters below which a second CPU thread costs more than it gives (measured: docs/trainers/trl.md)."""


def derive(*parts: object) -> int:
    """A seed in [0, 2⁶³) made from `parts`: equal parts give equal seeds, in every process and on every machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Runs the block under `seed` for torch on all devices; afterwards torch's generators are as they were."""
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def settle_threads(parameters: int) -> int:
    """Sets torch's CPU threads for a model of that size, and says how many there are.

    `OMP_NUM_THREADS`, where set, is obeyed; else a small model gets one thread, whatever the machine: faster, and
    the same bits everywhere. A large model keeps torch's default.
    """
    import torch

    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        torch.set_num_threads(int(asked))
    elif parameters < SMALL:
        torch.set_num_threads(1)
    return torch.get_num_threads()
