"""`cascade run` as a person uses it: a run that is interrupted, given again, and given once more when it is finished."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from strangers import environment, publish

from cascade_core.spec import load

__all__ = ["publish"]

TOY = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, Task, hookimpl

    @dataclass
    class Toy(Domain):
        name = "toy"
        def tasks(self, split, seed):
            return [Task(f"{split}-{n}", f"{split} {n}", answer=str(n % 10)) for n in range(40)]
        def score(self, task, response): return Score(float(response.answer == task.answer))
        def reference(self, task): return task.answer

    @hookimpl
    def cascade_domains(): return [Toy]
"""

SPEC = """
name: small
model: {init: {hidden_size: 16, layers: 1, heads: 2, context: 32}}
domains: {toy: }
stages:
  - {name: sft, kind: sft, domains: toy, steps: 400, batch_size: 8, save_every: 20, optim: {lr: 1e-3}}
  - name: rl
    domains: toy
    steps: 2
    rollout: {prompts_per_step: 2, samples_per_prompt: 2, max_response_tokens: 4}
scoring: {workers: 1}
evaluation: {limit: 6, sampling: {max_response_tokens: 4}}
"""


def cascade(site: Path, *arguments: object) -> subprocess.Popen[str]:
    env = {**environment(site), "OMP_NUM_THREADS": "1"}
    code = "from cascade_core.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code, *map(str, arguments)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_training(run: subprocess.Popen[str]) -> None:
    for line in run.stdout:
        if line.startswith("01-sft: training"):
            return


def until_checkpoint(run: subprocess.Popen[str], events: Path) -> None:
    """Until one more has been made."""
    before = events.read_text().count('"kind": "checkpoint"')
    while events.read_text().count('"kind": "checkpoint"') == before and run.poll() is None:
        time.sleep(0.05)


@pytest.mark.slow
def test_a_run_goes_on_after_ctrl_c_and_sigterm_and_does_finished_work_once(publish, tmp_path: Path) -> None:
    site = publish("cascade-plugin-toy", TOY)
    spec, folder = tmp_path / "spec.yaml", tmp_path / "run"
    spec.write_text(SPEC)
    first = cascade(site, "run", spec, "--folder", folder, "--set", "seed=5")
    until_training(first)
    until_checkpoint(first, folder / "events.jsonl")
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 130, err
    assert err.splitlines()[-1] == f"cascade: interrupted; the same command goes on from what {folder} holds"
    assert "Traceback" not in err

    second = cascade(site, "run", spec, "--folder", folder, "--set", "seed=5")
    until_training(second)
    until_checkpoint(second, folder / "events.jsonl")
    second.send_signal(signal.SIGTERM)
    _, err = second.communicate(timeout=120)
    assert (second.returncode, err.splitlines()[-1].partition(";")[0]) == (143, "cascade: interrupted")

    changed = cascade(site, "run", spec, "--folder", folder)
    _, err = changed.communicate(timeout=120)
    assert changed.returncode == 1 and "spec.seed was 5 and is 0" in err

    again = cascade(site, "run", spec, "--folder", folder, "--set", "seed=5", "--json")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    told = json.loads(out)
    assert [stage["stage"] for stage in told["stages"]] == ["00-start", "01-sft", "02-rl"]
    assert Path(told["report"]).is_file()
    assert load(folder / "spec.yaml") == load(spec, ["seed=5"])
    assert "00-start: finished before" in err and "from step" in err

    once_more = cascade(site, "run", spec, "--folder", folder, "--set", "seed=5")
    out, err = once_more.communicate(timeout=120)
    assert once_more.returncode == 0, err
    assert out.count("finished before") == 3 and out.splitlines()[-1] == f"report: {folder / 'report.html'}"
