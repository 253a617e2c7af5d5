"""The verdicts of domains as verl's reward: verl loads this file, in its own processes.

    python examples/verl_reward.py math train.parquet      # the data set, with the task of every row in `extra_info`
    python -m verl.trainer.main_ppo \\
        data.train_files=train.parquet \\
        reward.custom_reward_function.path=examples/verl_reward.py \\
        reward.custom_reward_function.name=compute_score_async ...

`compute_score_async` is for verl's reward loop, `compute_score` for its reward managers that call one by one, `compute_scores` for
the manager `batch` of older versions than 0.7.1, which also name the two settings without `reward.`. Copy the file and say which domains, options and limits are yours.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from cascade_core.adapters import VerlReward, verl_rows
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

DOMAINS = {"math": {}, "if": {}}


def make() -> Scorer:
    """The scorer of one of verl's processes."""
    found = registry()
    return Scorer({name: found.reference(name, options) for name, options in DOMAINS.items()}, Scoring(workers=2))


reward = VerlReward(make, sources={"openai/gsm8k": "math"})
compute_score = reward.compute_score
compute_score_async = reward.compute_score_async
compute_scores = reward.compute_scores


def write(domain: str, path: Path, count: int = 1000) -> None:
    """Writes the first tasks of a domain as verl's data set."""
    import pyarrow
    import pyarrow.parquet

    found = registry()
    tasks = found.build(found.reference(domain, DOMAINS[domain])).tasks("train", seed=1)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(verl_rows(domain, islice(tasks, count))), path)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
