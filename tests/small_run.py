"""A small cascade, run in a process of its own, and what its folder holds apart from clocks and logs."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SPEC = """
name: small
seed: 3
model:
  init: {hidden_size: 32, layers: 1, heads: 2, context: 48, tokenizer: {phrases: ["\\\\boxed{"]}}
domains:
  math: {generator: {name: arithmetic, max_a: 30, max_b: 9}}
stages:
  - {name: sft, kind: sft, domains: math, steps: 6, batch_size: 8, save_every: 3, optim: {lr: 3e-3}}
  - name: rl
    domains: math
    steps: 5
    save_every: 2
    rollout: {prompts_per_step: 4, samples_per_prompt: 2, max_response_tokens: 6}
    optim: {lr: 1e-3}
scoring: {workers: 1}
evaluation: {limit: 10, samples: 2, sampling: {max_response_tokens: 6}}
"""
# Logs for people: what a killed run wrote before it was killed stays in them.
LOGS = ("train.log", "tensorboard", "report.html", ".lock", "trackers")
CLOCK = re.compile(r'"(time|\w*_seconds(?:/\w+)?)": [-0-9.e]+')


def child(place: str, spec: Path, folder: Path) -> int:
    command = [sys.executable, str(HERE / "killed_run.py"), place, str(spec), str(folder)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, -9), done.stderr[-3000:]
    return done.returncode


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the logs, clocks and durations replaced."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(log in path.parts or path.name == log for log in LOGS):
            data = path.read_bytes()
            files[name] = CLOCK.sub(r'"\1": 0', data.decode()).encode() if path.suffix in (".json", ".jsonl") else data
    return files
