"""OpenRLHF without the bridge, by the launch script of docs/serve.md: its rewards are those of `cascade serve`, asked over its own wire."""

import json
import os
import re
import shlex
import statistics
import time
from pathlib import Path

import pyarrow
import pytest
from openrlhf_checks import assert_weights_are_synced
from openrlhf_runs import Cascade
from openrlhf_wire import wire
from pyarrow import parquet
from serving import CASCADE, Program

from cascade_core import rehearsal
from cascade_core.initial import make
from cascade_core.rows import write
from cascade_core.settings import InitModel
from cascade_core.trainers.openrlhf_job import Running

STEPS, PROMPTS, SAMPLES = 2, 8, 4
DOCUMENT = (Path(__file__).parents[1] / "docs" / "serve.md").read_text("utf-8")
# What a small model on a CPU needs otherwise than the document's: of a flag that is given twice the last counts.
SMALL = f"""
--ds.attn_implementation sdpa --vllm.sync_backend gloo --vllm.enforce_eager --vllm.gpu_memory_utilization 0.3
--actor.num_gpus_per_node 1 --vllm.num_engines 1 --rollout.batch_size {PROMPTS} --rollout.n_samples_per_prompt {SAMPLES}
--rollout.max_new_tokens 12 --data.max_len 64 --train.batch_size {PROMPTS * SAMPLES} --actor.adam.lr 1e-4
--algo.advantage.is_correction_level token
"""
PHRASES = [
    letter + other for letter in "eo" for other in "bcdfgh"
]  # so that about every third response has none of a letter


def other():
    """Another instruction than the document's."""
    rule = {"letter": "o", "let_relation": "less than", "let_frequency": 1}
    return {
        "instruction_id_list": ["punctuation:no_comma", "keywords:letter_frequency"],
        "kwargs": [{}, rule],
    }


def shown(program):
    """The command of the document that runs this program, as words."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if program in block]
    return shlex.split(found.replace("\\\n", " "))


def tasks():
    """As many as the steps have, half of them with their answers, as the document has one, the others named only."""
    (line,) = re.findall(r"^```jsonl\n(.*)\n```$", DOCUMENT, re.MULTILINE)
    answers = json.loads(line)["label"]["answer"], other()
    for number in range(STEPS * PROMPTS):
        task = {"domain": "if", "id": f"t{number}", "prompt": f"say {number}: ", "answer": answers[number // 2 % 2]}
        label = {"domain": "if", "id": f"t{number}"} if number % 2 else {"answer": task["answer"]}
        yield {"prompt": task["prompt"], "label": label}, task


class Trained:
    """What is left of the run: its files, OpenRLHF's own numbers of its steps, what was asked in each, and how many rows were judged."""

    def __init__(self, place, exchanged, judged):
        self.place, self.told, self.judged = place, Cascade(place).told("plain"), judged
        size = PROMPTS * SAMPLES
        self.steps = [exchanged[start : start + size] for start in range(0, len(exchanged), size)]


def run(engine, place, address):
    """The launch script of the document, with the places and the address of this test."""
    words = [word.replace("http://127.0.0.1:5000", address) for word in shown("train_ppo_ray")[1:]]
    words = [word.replace("prompts.jsonl", str(place / "prompts.parquet")) for word in words]
    words = [re.sub("^models/", f"{place}/models/", word) for word in words]
    variables = rehearsal.environment({**os.environ, "HF_HUB_OFFLINE": "1"})
    log, last = place / "stages" / "01-plain" / "train.log", time.monotonic() + 600
    with Running([str(engine), *words, *SMALL.split()], variables, log, place / "job.json") as job:
        while (status := job.poll()) is None and time.monotonic() < last:
            time.sleep(0.2)
    assert status == 0, log.read_text("utf-8", "replace")[-3000:]


@pytest.fixture(scope="module")
def trained(engine, tmp_path_factory):
    place = tmp_path_factory.mktemp("plain")
    make(
        InitModel(hidden_size=64, layers=2, heads=2, context=64, tokenizer={"phrases": PHRASES}),
        1,
        place / "models" / "start",
    )
    rows = list(tasks())
    parquet.write_table(pyarrow.Table.from_pylist([row for row, _ in rows]), place / "prompts.parquet")
    write(place / "tasks.jsonl", [task for _, task in rows])
    words = [*shown("cascade serve --domain if")[1:], "--prompts", str(place / "tasks.jsonl"), "--port", "0", "--json"]
    service = Program(*CASCADE, *words)
    try:
        with wire(service.served.url) as server:
            run(engine, place, server.url)
        joined = service.served.number("cascade_joined_total", domain="if")
        judged = joined + service.served.number("cascade_verdicts_total", domain="if", outcome="scored")
    finally:
        service.process.terminate()
        assert service.end() == 0
    return Trained(place, server.exchanged, judged)


def test_openrlhf_asks_for_every_sample_once_and_each_has_a_verdict(trained):
    assert [len(step) for step in trained.steps] == [PROMPTS * SAMPLES] * STEPS
    assert trained.judged == STEPS * PROMPTS * SAMPLES
    for one in (one for step in trained.steps for one in step):
        assert {name: len(found) for name, found in one.asked.items()} == {"query": 1, "prompts": 1, "labels": 1}
        assert one.status == 200 and "errors" not in one.told and one.told["extra_logs"]["cascade_judged"] == [1.0]


def test_labels_of_a_parquet_file_come_with_the_keys_of_all_the_others_as_null(trained):
    labels = [one.asked["labels"][0] for step in trained.steps for one in step]
    assert {frozenset(label) for label in labels} == {frozenset(("answer", "domain", "id"))}
    assert {label["answer"] is None for label in labels} == {True, False}


def test_rewards_in_openrlhfs_metrics_are_those_of_the_service(trained):
    assert sorted(trained.told) == list(range(STEPS))
    for step, found in enumerate(trained.steps):
        groups = {}
        for one in found:
            groups.setdefault(one.asked["prompts"][0], []).append(one.told["rewards"][0])
        assert [len(group) for group in groups.values()] == [SAMPLES] * PROMPTS
        mean = statistics.mean(reward for group in groups.values() for reward in group)
        assert trained.told[step]["reward"] == pytest.approx(mean, abs=1e-6)
        spread = statistics.mean(map(statistics.stdev, groups.values()))
        assert trained.told[step]["group_reward_std"] == pytest.approx(spread, abs=1e-5)
        assert trained.told[step]["cascade_judged"] == 1.0


def test_rewards_vary(trained):
    rewards = [one.told["rewards"][0] for step in trained.steps for one in step]
    assert set(rewards) <= {0.0, 1.0} and 0 < sum(rewards) < len(rewards)


def test_it_trains_and_the_engine_gets_the_weights(trained):
    for step in trained.told.values():
        assert (step["actor_grad_norm"] > 0) == (step["group_reward_std"] > 0) and step["actor_grad_norm"] < 1e3
    assert_weights_are_synced([{"step": step, **told} for step, told in trained.told.items()])
    assert (trained.place / "models" / "trained" / "config.json").is_file()
