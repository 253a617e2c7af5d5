"""Sampling with a real vLLM in a process of its own: transformers' texts where nothing is drawn, seeds that hold, nothing left running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cascade_core.domain import Benchmark
from cascade_core.evaluate import Exam
from cascade_core.initial import make
from cascade_core.pretrained import load_model, load_tokenizer, quiet_bars
from cascade_core.sampling import LocalSampler
from cascade_core.settings import InitModel, Sampling
from cascade_core.template import encode
from cascade_core.trainers.openrlhf_guard import leftovers
from cascade_core.vllm_sampling import Vllm
from cascade_core.vllm_sampling.sampler import VllmSampler

SEED = 3
WORDS = ("add", "take away", "multiply", "halve")
CLEAR = 2e-3
"""By how much a logit is ahead of the next where no rounding of 32-bit numbers (some 1e-5) makes another token the likeliest."""


def exam(name, samples, words=WORDS, **sampling):
    rows = tuple(
        {"domain": "none", "id": f"{word}-{i}", "prompt": f"{word} {7 * i} and {i}", "answer": None}
        for word in words
        for i in range(4)
    )
    sampling = Sampling(max_response_tokens=100, **sampling)
    return Exam(name, Benchmark(name, samples=samples), rows, samples, sampling)


GREEDY = exam("none/greedy", 2, temperature=0.0)
LIKELIEST = exam("none/likeliest", 1, top_k=1)
DRAWN = exam("none/drawn", 24, temperature=0.8, top_p=0.95, top_k=40)
EXAMS = (DRAWN, GREEDY, LIKELIEST)
AGAIN = exam("none/again", 24, WORDS[:1], temperature=0.8, top_p=0.95, top_k=40)
"""A part of `DRAWN`, whose responses have the same seeds; every third of them is sampled, when all else has ended."""


def sampler(python, place, *exams):
    vllm = Vllm(str(python), stall_seconds=600.0)
    return VllmSampler(vllm, place.parent / "model", place / "sampling", place / "vllm.log", exams, SEED)


def main(python, place):
    """What is killed."""
    with sampler(python, place, *EXAMS) as found:
        for one in EXAMS:
            found.ask(one, one.keys)
        found.finish()
        for one in EXAMS:
            list(found.stream(one, one.keys))


def lively(folder):
    """A model with random weights, so large that the likeliest token changes all the time, and is the end now and then."""
    import torch

    make(InitModel(hidden_size=128, layers=3, heads=4, context=256), 1, folder)
    with quiet_bars():
        model = load_model(folder)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(8.0 if weight.dim() > 1 else 1.0)
        model.save_pretrained(folder)


class Killed:
    """A sampling that was killed after its first answers, and given again."""

    def __init__(self, python, place):
        self.place = place
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_evaluation as t; from pathlib import Path"
        code += f"; t.main({str(python)!r}, Path({str(place)!r}))"
        answers = place / "sampling" / "answers.jsonl"
        run = subprocess.Popen([sys.executable, "-c", code])
        end = time.monotonic() + 600
        while time.monotonic() < end and run.poll() is None and not (answers.exists() and answers.stat().st_size):
            time.sleep(0.01)
        token = json.loads((place / "sampling" / "process.json").read_text())["token"]
        self.were = leftovers(token)
        run.send_signal(signal.SIGKILL)
        run.wait()
        killed = time.monotonic()
        while time.monotonic() < killed + 120 and leftovers(token):
            time.sleep(0.1)
        self.are = leftovers(token)
        lines = [json.loads(line) for line in answers.read_bytes().split(b"\n")[:-1]]
        self.before = {tuple(line["key"]): len(line["tokens"]) for line in lines}
        with sampler(python, place, *EXAMS, AGAIN) as found:
            self.kept = dict(found._found)
            self.found = {one.name: dict(found.stream(one, one.keys)) for one in EXAMS}
            self.again = dict(found.stream(AGAIN, AGAIN.keys[::3]))


@pytest.fixture(scope="module")
def killed(engine, tmp_path_factory):
    place = tmp_path_factory.mktemp("killed")
    lively(place / "model")
    (place / "run").mkdir()
    return Killed(engine, place / "run")


@pytest.fixture(scope="module")
def local(killed):
    return LocalSampler(killed.place.parent / "model", 128)


def in_folder(folder):
    """Processes that name the folder, in their arguments or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(
                str(folder) in part for part in (*process.cmdline(), *process.environ().values())
            ):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def clear(killed):
    """The ids of the tasks in whose response to `GREEDY` every token is well ahead of the others."""
    import torch

    folder, found = killed.place.parent / "model", set()
    tokenizer, model = load_tokenizer(folder), load_model(folder).eval()
    for row in GREEDY.tasks:
        ids = torch.tensor([encode(tokenizer, row, "switch")[0]])
        with torch.no_grad():
            whole = model.generate(ids, do_sample=False, max_new_tokens=GREEDY.sampling.max_response_tokens)
            best = model(whole).logits[0, ids.shape[1] - 1 : -1].topk(2).values
        if float((best[:, 0] - best[:, 1]).min()) > CLEAR:
            found.add(row["id"])
    return found


@pytest.mark.parametrize("one", [GREEDY, LIKELIEST], ids=lambda one: one.name)
def test_where_nothing_is_drawn_vllm_says_what_transformers_say(killed, local, clear, one):
    tasks = [row for row in one.tasks if row["id"] in clear]
    said = local.sample(tasks, one.samples, one.sampling, SEED)
    mine = [[killed.found[one.name][row["id"], sample] for sample in range(one.samples)] for row in tasks]
    assert mine == said and len(said) >= len(one.tasks) / 2
    assert {sample.truncated for samples in said for sample in samples} == {True, False}


def test_drawn_responses_differ_and_are_as_long_as_those_of_transformers(killed, local):
    found = list(killed.found[DRAWN.name].values())
    assert len({sample.text for sample in found}) > 0.9 * len(found)
    said = [sample for samples in local.sample(DRAWN.tasks, 8, DRAWN.sampling, SEED) for sample in samples]
    mean, other = (sum(sample.truncated for sample in some) / len(some) for some in (found, said))
    assert abs(mean - other) < 4 * (0.25 / len(said)) ** 0.5


def test_a_killed_sampling_leaves_no_process_of_vllms(killed):
    assert len(killed.were) >= 3  # the guard's program, vLLM's engine and its worker
    assert killed.are == []


def test_what_came_before_the_kill_is_kept_and_the_rest_is_sampled(killed):
    total = sum(len(one.keys) for one in EXAMS)
    assert 0 < len(killed.before) < total
    assert {place: sample.tokens for place, sample in killed.kept.items()} == killed.before
    assert {name: len(found) for name, found in killed.found.items()} == {one.name: len(one.keys) for one in EXAMS}


def test_a_response_is_the_same_beside_others(killed):
    same = sum(killed.found[DRAWN.name][key] == sample for key, sample in killed.again.items())
    # Sums in batches of other sizes round differently. Drawn anew, hardly any would be the same.
    assert len(killed.again) == len(AGAIN.keys[::3]) and same > 0.5 * len(killed.again)


def test_vllm_has_ended_with_the_evaluation(killed):
    assert not (killed.place / "sampling").exists()
    assert in_folder(killed.place.parent) == []
