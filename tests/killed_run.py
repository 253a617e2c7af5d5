"""Runs a spec and kills itself (SIGKILL) in the middle of a named piece of work: `python killed_run.py PLACE SPEC FOLDER`.

The places are those of the promise that a killed run, given again, ends with the same files. `none` runs to the end.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_data() -> None:
    """After some rows of the second stage's prompts were drawn."""
    from cascade_core import run

    drawn = run.draw

    def draw(stage: Any, *args: Any) -> Iterator[Any]:
        for number, row in enumerate(drawn(stage, *args)):
            if stage.kind == "rl" and number == 3:
                die()
            yield row

    run.draw = draw


def in_training_step() -> None:
    """While the fourth rollout batch is being judged: after one checkpoint, before the next."""
    from cascade_core.judge import Judge

    judge = Judge.judge

    def judged(self: Judge, step: int, rows: Any) -> Any:
        if step == 3:
            die()
        return judge(self, step, rows)

    Judge.judge = judged  # type: ignore[method-assign]


def in_checkpoint() -> None:
    """When half of the RL stage's second checkpoint inside the stage has been written."""
    import torch

    save, seen = torch.save, []

    def half(value: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        save(value, target, *args, **kwargs)
        if "optimizer" in str(target) and "-rl" in str(target):
            seen.append(target)
            if len(seen) == 2:
                path = Path(target)
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
                die()

    torch.save = half


def in_evaluation() -> None:
    """After the RL stage's responses were sampled, before they are all scored."""
    from cascade_core import evaluate

    take = evaluate.take

    def dying(exam: Any, sampler: Any, scorer: Any, path: Path, **kwargs: Any) -> None:
        if "-rl" in str(path):
            scorer.score = lambda rows: die()
        take(exam, sampler, scorer, path, **kwargs)

    evaluate.take = dying


PLACES = {
    "none": lambda: None,
    "data": in_data,
    "training-step": in_training_step,
    "checkpoint": in_checkpoint,
    "evaluation": in_evaluation,
}

if __name__ == "__main__":
    place, spec, folder = sys.argv[1:]
    PLACES[place]()
    from cascade_core.run import run
    from cascade_core.spec import load

    run(load(Path(spec)), Path(folder))
