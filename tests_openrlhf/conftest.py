"""What a real OpenRLHF is tested with: its environment, made once, and one cascade that was killed and went on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # of what the tests here share

from openrlhf_runs import Cascade, command, finished
from openrlhf_stopped import Stopped, stopped_and_finished

from cascade_core.rehearsal import install

ROOT = Path(__file__).parents[1]
SPEC = """
name: two
seed: 1
trainer: openrlhf
engine: {{python: {python}, cpu: true, stall_seconds: 600}}
model:
  init:
    hidden_size: 128
    layers: 3
    heads: 4
    context: 64
    tokenizer:
      phrases: ["\\\\boxed{{", "write ", " times", " in capitals", " in small letters", " in quotes", " and end with "]
domains:
  if: {{generator: {{level: tiny}}, noise: 0.5, eval_limit: 100, eval_samples: 1}}
  math: {{generator: {{name: arithmetic, max_a: 99, max_b: 11, unboxed: 0.5}}, eval_limit: 100, eval_samples: 1}}
stages:
  - name: sft
    kind: sft
    trainer: trl
    domains: {{if: 1, math: 3}}
    steps: 400
    batch_size: 80
    micro_batch: 20
    optim: {{lr: 3e-3, betas: [0.9, 0.98], weight_decay: 0.01, warmup_steps: 30, schedule: linear, decay_steps: 80}}
  - name: if
    domains: if
    steps: 4
    save_every: 2
    micro_batch: 8
    rollout: {{prompts_per_step: 8, samples_per_prompt: 4, max_response_tokens: 16}}
    optim: {{lr: 3e-4}}
    overlong: mask
  - name: math
    domains: math
    steps: 8
    save_every: 2
    micro_batch: 8
    rollout: {{prompts_per_step: 8, samples_per_prompt: 4, max_response_tokens: 8}}
    optim: {{lr: 3e-4}}
    overlong: mask
evaluation: {{sampler: transformers, sampling: {{max_response_tokens: 16}}}}
scoring: {{workers: 1}}
"""


def killed_in(stage: str, step: int, spec: Path, folder: Path) -> bool:
    """Runs it until that step of the stage is stored and OpenRLHF has told of those before the last, and kills the run as the kernel would."""
    wanted = f"stages/??-{stage}/rollouts/step-{step:05d}.jsonl"

    def is_there() -> bool:
        return bool(list(folder.glob(wanted))) and {*range(step - 1)} <= {*Cascade(folder).told(stage)}

    with (folder.parent / "first.log").open("wb") as log:
        run = subprocess.Popen(command(spec, folder), stdout=log, stderr=log)
        end = time.monotonic() + 1200
        while run.poll() is None and time.monotonic() < end and not is_there():
            time.sleep(0.05)
        was_running = run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.wait()
    return was_running


@pytest.fixture(scope="session")
def engine() -> Path:
    """The Python that has OpenRLHF: that of `CASCADE_OPENRLHF_PYTHON`, or of an environment that is made unless it is there."""
    there = os.environ.get("CASCADE_OPENRLHF_PYTHON")
    return Path(there) if there else install(ROOT / ".openrlhf")


@pytest.fixture(scope="session")
def cascade(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Cascade:
    """SFT, then two stages with OpenRLHF; the run is killed in the last one and given again."""
    place = tmp_path_factory.mktemp("cascade")
    spec, folder = place / "spec.yaml", place / "run"
    spec.write_text(SPEC.format(python=engine))
    assert killed_in("math", 3, spec, folder), (place / "first.log").read_text("utf-8", "replace")[-3000:]
    return finished(spec, folder)


@pytest.fixture(scope="session")
def stopped(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """One stage, stopped in its third step by what it is judged with, and given again."""
    return stopped_and_finished(engine, tmp_path_factory.mktemp("stopped"))
