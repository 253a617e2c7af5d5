"""A reward model elsewhere, named in a spec: its token reaches its server, and no file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_rlhf.client import RewardClient, connect
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.elsewhere import RewardModelEndpoint
from scripted_server import serving
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.domain import Response, Task
from cascade_core.errors import ResourceError, SpecError, UsageError
from cascade_core.provision import build, choose
from cascade_core.secret import Secret

KEY = Secret(env="RM_KEY")


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RM_KEY", "t0p-secret")


def scored(path: str, body: dict[str, Any], number: int) -> Any:
    if path == "/score":
        return 200, {"scores": [3.0] * len(body["items"])}
    return 200, {"data": [{"probs": [3.0]}]}


@pytest.mark.parametrize("scheme", ["", "vllm:"])
def test_the_token_and_the_name_reach_the_server_and_the_token_no_file(scheme: str) -> None:
    with serving(scored) as server:
        options = {"url": scheme + server.address, "model": "new", "key": {"env": "RM_KEY"}}
        provision = choose("reward_model", {"reward_model": {"endpoint": options}})
        assert provision.pinned == {"endpoint": {"url": scheme + server.address, "model": "new"}}
        resource = build(provision)
        address = resource.start()
        assert "t0p" not in address and "t0p" not in str(resource.describe())
        domain = RLHF()
        domain.open({"reward_model": address})
        assert domain.score(Task("a", "2 and 2?"), Response("4")).reward == 3.0
        domain.close()
        assert server.keys == ["Bearer t0p-secret"] and server.asked[0][1]["model"] == "new"
        assert resource.alive()
    assert not resource.alive()
    resource.stop()


def test_without_a_token_none_is_sent_and_nothing_is_named() -> None:
    with serving(scored) as server, connect(RewardModelEndpoint(server.address + "/rm").start()) as client:
        assert isinstance(client, RewardClient) and client.address == server.address + "/rm"
        with pytest.raises(ResourceError):
            client.scores([("q", "a")])
        assert server.keys == [None] and "model" not in server.asked[0][1]


def test_a_token_that_is_not_there_and_a_server_that_does_not_answer_stop_a_run_before_it_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as channel:
        address = f"http://127.0.0.1:{channel.getsockname()[1]}"
        with pytest.raises(SpecError, match="'NO_SUCH_KEY_OF_RM', which is to hold a secret, is not set"):
            RewardModelEndpoint(address, key=Secret(env="NO_SUCH_KEY_OF_RM")).start()
    with pytest.raises(ResourceError, match=f"nothing answers at {address}: connection refused"):
        RewardModelEndpoint(address, key=KEY).start()


@pytest.mark.parametrize("url", ["ftp://host", "vllm:host", "http://user:word@host", "http://host?key=word"])
def test_an_endpoint_at_no_address_is_refused_and_no_password_is_told(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        RewardModelEndpoint(url)
    assert "word@" not in str(caught.value) and "=word" not in str(caught.value)


def test_a_token_that_stands_in_a_spec_is_refused_and_not_repeated(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: small\nmodel: owner/model\ndomains: {rlhf: {}}\n"
        "resources: {reward_model: {endpoint: {url: 'http://127.0.0.1:5001', key: t0p-secret}}}\n"
        "stages: [{name: rl, domains: rlhf, steps: 1}]\n"
    )
    done = CliRunner().invoke(app, ["plan", str(spec)])
    assert done.exit_code == 2 and "t0p" not in done.output
    assert "key" in done.stderr and "must be {env: NAME} or {file: PATH}" in done.stderr
    spec.write_text(spec.read_text().replace("t0p-secret", "{env: RM_KEY}"))
    done = CliRunner().invoke(app, ["plan", str(spec)])
    assert done.exit_code == 0 and "t0p" not in done.output
