"""`cascade rm serve` as a real process on real (small, random) models, and as a resource that dies and comes back."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import tiny_reward_models as tiny
from cascade_plugin_rlhf.client import RewardClient
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.serving.encoding import Encoder
from cascade_plugin_rlhf.serving.model import RewardModel, Source
from cascade_plugin_rlhf.serving.process import named
from cascade_plugin_rlhf.verdict import RewardModelError, Scored

from cascade_core.domain import Response, Task
from cascade_core.errors import ResourceError, UsageError
from cascade_core.provision import build, choose, running

CASCADE = (sys.executable, "-c", "from cascade_core.cli import main; main()", "rm", "serve")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ITEMS: list[Any] = [("2 and 2?" * (1 + number % 5), "It is 4. " * (number % 6) + "4") for number in range(40)]
MOST_WAITING = 200


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models: a classifier and a value head."""
    return {
        "new": tiny.qwen(tmp_path_factory.mktemp("new"), 1),
        "old": tiny.value_head(tmp_path_factory.mktemp("old"), 3),
    }


@pytest.fixture(scope="module")
def server(folders: dict[str, Path]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Address and process; it must end with status 0 on SIGTERM."""
    models = [argument for name, folder in folders.items() for argument in ("--model", f"{name}={folder}")]
    options = ("--port", "0", "--json", "--threads", "1", "--max-tokens-per-batch", "300", "--max-body-mib", "1")
    command = (*CASCADE, *models, *options, "--max-waiting", str(MOST_WAITING))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "the server ended before it served"
        told += line
    assert json.loads(told)["models"] == ["new", "old"]
    yield json.loads(told)["address"], process
    process.terminate()
    process.stdout.close()
    assert process.wait(30) == 0


def ask(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content[:1] == b"{" else content.decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()) | {"retry-after": error.headers.get("retry-after")}


def directly(folder: Path, items: Any) -> list[float]:
    model = RewardModel(Source(str(folder)))
    encoder = Encoder(model.tokenizer, model.context, ends=model.is_value_head)
    return [model.scores([encoder.item(*item)])[0] for item in items]


@pytest.mark.slow
def test_scores_over_http_are_those_of_the_model_whatever_comes_together(
    server: tuple[str, Any], folders: dict[str, Path]
) -> None:
    for name, folder in folders.items():
        found: dict[int, Any] = {}

        def part(first: int, name: str = name, found: dict[int, Any] = found) -> None:
            with RewardClient(server[0], model=name) as client:
                found[first] = client.scores(ITEMS[first : first + 5])

        threads = [threading.Thread(target=part, args=(first,)) for first in range(0, 40, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        scores = [one.score for first in range(0, 40, 5) for one in found[first]]
        assert scores == pytest.approx(directly(folder, ITEMS), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new", "old"])
def test_a_verdict_of_the_domain_says_what_the_served_model_cut(server: tuple[str, Any], name: str) -> None:
    domain = RLHF(threshold=0.0)
    domain.open({"reward_model": f"{server[0]}/v1/{name}"})
    try:
        long, short = (domain.score(Task("t", "2 and 2?"), Response(text)) for text in ("a" * 4 * tiny.CONTEXT, "4"))
    finally:
        domain.close()
    assert (long.metrics["cut"], short.metrics["cut"]) == (1.0, 0.0)
    found = re.search(r"; cut, the reward model read only the end of its (\d+) tokens$", long.note)
    assert found and int(found[1]) > tiny.CONTEXT and "cut" not in short.note


@pytest.mark.slow
def test_openrlhfs_wire_scores_the_whole_text(server: tuple[str, Any], folders: dict[str, Path]) -> None:
    model = RewardModel(Source(str(folders["new"])))
    encoder = Encoder(model.tokenizer, model.context)
    prompt = "<|im_start|>user\n2 and 2?<|im_end|>\n<|im_start|>assistant\n"
    queries = [prompt + said for said in ("4<|im_end|>\n", "5", "long " * 30)]
    asked = {"query": queries, "prompts": [prompt] * 3, "labels": ["4"] * 3}
    status, told = ask(f"{server[0]}/v1/new/get_reward", asked)
    expected = [model.scores([encoder.text(query)])[0] for query in queries]
    assert status == 200 and told["rewards"] == told["scores"] == pytest.approx(expected, abs=1e-5)
    assert told["extra_logs"]["truncated"] == [0.0, 0.0, 1.0]
    assert told["rewards"][0] == pytest.approx(directly(folders["new"], [("2 and 2?", "4")])[0], abs=1e-5)


@pytest.mark.slow
def test_what_was_cut_is_told_by_item(server: tuple[str, Any]) -> None:
    items = [{"prompt": "2?", "response": "4"}, {"prompt": "2?" * 100, "response": "4"}]
    _, told = ask(f"{server[0]}/score", {"items": items, "model": "old"})
    assert told["truncated"] == [False, True] and told["tokens"][1] - told["tokens"][0] == 198
    assert "errors" not in told and told["model"] == "old"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "status", "why"),
    [
        ("/score", {"items": [{"prompt": "", "response": ""}]}, 422, "body.model must be one of new, old, found None"),
        ("/score", {"items": [], "model": "new"}, 422, "body.items must be a list of 1"),
        ("/score", {"items": [{"prompt": 1, "response": ""}], "model": "new"}, 422, r"body.items\[0\].prompt must be"),
        ("/score", {"items": [{"prompt": ""}], "model": "new"}, 422, r"body.items\[0\].response must be a text"),
        ("/score", {"itms": []}, 422, "body.itms must be absent"),
        ("/v1/new/score", [1], 422, "body must be an object"),
        ("/v1/none/score", {}, 404, "there is no '/v1/none/score'"),
        ("/v1/new/get_reward", {"query": ["a"], "prompts": []}, 422, "body.prompts must be a list as long as query, 1"),
        ("/v1/new/get_reward", {"query": [7]}, 422, r"body.query\[0\] must be a text"),
        ("/models", {}, 405, "not with POST"),
    ],
    ids=lambda value: f"{value!s:.40}",
)
def test_a_request_that_cannot_be_is_refused_by_name(
    server: tuple[str, Any], path: str, body: Any, status: int, why: str
) -> None:
    code, told = ask(server[0] + path, body)
    assert code == status
    assert re.search(why, told["error"])


@pytest.mark.slow
def test_a_body_that_is_too_long_is_refused_before_it_is_sent(server: tuple[str, Any]) -> None:
    connection = http.client.HTTPConnection(server[0].removeprefix("http://"), timeout=30)
    connection.putrequest("POST", "/score")
    connection.putheader("Content-Length", str(2**20 + 1))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413 and b"the body is longer than 1 MiB" in answer.read()
    connection.close()


@pytest.mark.slow
def test_more_than_may_wait_is_refused_whole_and_may_come_again(server: tuple[str, Any]) -> None:
    items = [{"prompt": "q", "response": "a"}] * (MOST_WAITING + 1)
    status, told = ask(f"{server[0]}/v1/new/score", {"items": items})
    assert (status, told["retry-after"]) == (503, "1") and f"allowed: {MOST_WAITING}" in told["error"]
    assert ask(f"{server[0]}/v1/new/score", {"items": items[1:]})[0] == 200


@pytest.mark.slow
def test_health_models_and_numbers_are_told(server: tuple[str, Any], folders: dict[str, Path]) -> None:
    assert ask(f"{server[0]}/health")[1]["status"] == "ok"
    models = ask(f"{server[0]}/models")[1]["models"]
    assert (models["new"]["kind"], models["old"]["kind"]) == ("classifier", "value head")
    assert models["new"]["max_tokens"] == tiny.CONTEXT and models["new"]["weights"] != models["old"]["weights"]
    ask(f"{server[0]}/v1/new/score", {"items": [{"prompt": "q", "response": "a" * length} for length in range(20)]})
    numbers = ask(f"{server[0]}/metrics")[1]
    samples = dict(line.rsplit(" ", 1) for line in numbers.splitlines() if not line.startswith("#"))
    assert float(samples['cascade_rm_items_total{model="new",outcome="scored"}']) >= 20
    assert float(samples['cascade_rm_padded_tokens_total{model="new"}']) >= float(
        samples['cascade_rm_tokens_total{model="new"}']
    )
    assert samples["cascade_rm_waiting"] == "0.0"


@pytest.mark.slow
def test_sigterm_answers_what_is_in_flight_and_ends_with_status_0(server: tuple[str, subprocess.Popen[str]]) -> None:
    address, process = server  # the last test of this process
    answers: list[Any] = []
    body = {"items": [{"prompt": "q" * 50, "response": "a" * 50}] * (MOST_WAITING // 4)}

    def one() -> None:
        try:
            answers.append(ask(f"{address}/v1/new/score", body))
        except OSError as cause:  # it came when nothing new was taken any more
            answers.append((0, cause))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    while ask(f"{address}/health")[1]["waiting"] == 0 and not answers:
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(30)
    assert process.wait(30) == 0
    assert {status for status, _ in answers} <= {0, 200} and 200 in {status for status, _ in answers}
    assert all(len(told["scores"]) == MOST_WAITING // 4 for status, told in answers if status)
    with pytest.raises(RewardModelError), RewardClient(address, tries=1) as client:
        client.scores(ITEMS[:1])


@pytest.mark.drill  # starts a server of torch twice
def test_a_resource_that_is_killed_in_mid_batch_comes_back_and_each_item_has_one_verdict(
    folders: dict[str, Path],
) -> None:
    provision = choose("reward_model", {"reward_model": {"server": {"model": str(folders["new"]), "threads": 1}}})
    items = [("q" * (number % 40), "a" * (number % 50)) for number in range(600)]
    with running([provision]) as started:
        address = started.addresses["reward_model"]
        facts = started.facts["reward_model"]
        assert facts["kind"] == "classifier" and facts["transformers"] and len(facts["weights"]) == 64
        assert started.decisive["reward_model"] == {
            name: facts[name] for name in ("weights", "kind", "template", "max_tokens")
        }
        found: list[Any] = []
        with RewardClient(address, tries=300, pause_seconds=0.5) as client:
            before = client.scores(items[:20])
            thread = threading.Thread(target=lambda: found.extend(client.scores(items)))
            thread.start()
            victim = server_of(address)
            victim.kill()
            started.check()  # it is being started again
            thread.join(200)
        assert len(found) == 600 and all(isinstance(one, Scored) for one in found)
        assert [one.score for one in found[:20]] == pytest.approx([one.score for one in before], abs=1e-4)
        again = server_of(address)
        assert again.pid != victim.pid
    assert not again.is_running() or again.status() == psutil.STATUS_ZOMBIE


def server_of(address: str) -> psutil.Process:
    """The process that listens at an address of this machine."""
    port = address.rpartition(":")[2]
    return next(
        one
        for one in psutil.Process().children(recursive=True)
        if one.is_running() and "serve" in (line := one.cmdline()) and port in line and "-S" not in line
    )


def test_a_model_that_cannot_be_read_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    resource = build(choose("reward_model", {"reward_model": {"server": {"model": str(tmp_path)}}}))
    with pytest.raises(ResourceError, match=f"no reward model can be read from {tmp_path}"):
        resource.start()
    assert not resource.alive()
    resource.stop()


@pytest.mark.parametrize("models", [["a=x", "a=y"], ["x/a", "y/a"], ["=x"], ["a="], ["a b=x"], [".."]], ids=str)
def test_names_that_cannot_be_are_refused(models: list[str]) -> None:
    with pytest.raises(UsageError):
        named(models)


def test_a_path_with_an_equals_sign_is_a_path() -> None:
    assert named(["runs/lr=1/rm"]) == {"rm": "runs/lr=1/rm"}
