"""The extension of `tests/taste_extension`: preferences, and a resource that is made of a stage's checkpoint."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cascade_core.plugins import registry

EXTENSION = Path(__file__).parent / "taste_extension"
SPEC = """
name: taste
seed: 3
model:
  init: {hidden_size: 32, layers: 1, heads: 2, context: 48, tokenizer: {phrases: ["red", "blue"]}}
domains:
  taste: {spoilt: 2}
  math: {generator: {name: arithmetic, max_a: 30, max_b: 9}}
resources: {taste-shelf: {shelf: {model: "stage:rm", log: LOG}}}
stages:
  - {name: rm, kind: reward_model, domains: taste, steps: 8, batch_size: 8, save_every: 3, optim: {lr: 1e-2}}
  - name: rl
    domains: taste
    steps: 2
    save_every: 0
    rollout: {prompts_per_step: 4, samples_per_prompt: 2, max_response_tokens: 6}
    optim: {lr: 1e-3}
scoring: {workers: 1}
evaluation: {limit: 20, samples: 1, sampling: {max_response_tokens: 6}}
"""


@contextmanager
def installed() -> Iterator[None]:
    """It is installed for this process and those that it starts meanwhile."""
    before = os.environ.get("PYTHONPATH")
    sys.path.insert(0, str(EXTENSION))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(EXTENSION), before]))
    registry.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(EXTENSION))
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
        registry.cache_clear()


@pytest.fixture(scope="module")
def taste() -> Iterator[None]:
    """It is installed for the tests of one file."""
    with installed():
        yield


def child(place: str, spec: Path, folder: Path) -> int:
    """Runs the spec in a process of its own, which kills itself at `place`."""
    command = [sys.executable, __file__, place, str(spec), str(folder)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, -9), done.stderr[-3000:]
    return done.returncode


def _arm(place: str) -> None:
    """Arranges for the kill: in the data, in a step, in the second checkpoint, in the measuring of the stage `rm`, before or after its
    resource runs; or in the data of `rl`."""
    import signal

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if place == "data":
        from cascade_core import run

        write = run.rows.write
        run.rows.write = lambda path, rows: (write(path, rows), die() if "-rm/prompts" in str(path) else None)
    elif place == "step":
        from cascade_core.trainers.trl_stage import StageTrainer

        clip = StageTrainer._clip_grad_norm
        StageTrainer._clip_grad_norm = lambda self, model: (
            die() if self.state.global_step == 4 and "-rm" in self.job.folder.name else None,
            clip(self, model),
        )[1]
    elif place == "checkpoint":
        import torch

        save = torch.save

        def half(value, target, *args, **more):
            save(value, target, *args, **more)
            if "checkpoint-6/optimizer" in str(target):
                Path(target).write_bytes(Path(target).read_bytes()[:100])
                die()

        torch.save = half
    elif place == "pairs":
        from cascade_core import pairs

        pairs.take = lambda *args, **more: die()
    elif place == "policy":
        from cascade_core import evaluate

        take = evaluate.take
        evaluate.take = lambda exam, *args, **more: die() if exam.name == "taste/test" else take(exam, *args, **more)
    elif place == "after":
        from cascade_core import run

        draw = run.draw
        run.draw = lambda stage, *args: die() if stage.name == "rl" else draw(stage, *args)
    elif place == "resource":
        from cascade_core.provision import Running

        start = Running.start
        Running.start = lambda self, *args: (start(self, *args), die())


if __name__ == "__main__":
    where, path, place = sys.argv[1:]
    _arm(where)
    from cascade_core.run import run
    from cascade_core.spec import load

    run(load(Path(path)), Path(place))
