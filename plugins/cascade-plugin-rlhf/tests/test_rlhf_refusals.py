"""What a person reads who names reward models and judges wrongly, as the command line says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cascade_plugin_rlhf.client import RewardClient, VllmClient, connect
from typer.testing import CliRunner, Result

from cascade_core.cli.app import app
from cascade_core.errors import UsageError

SPEC = """\
name: small
model: owner/model
domains:
  if: {}
  rlhf: {}
resources: {reward_model: "http://127.0.0.1:5001"}
stages:
  - {name: rl, domains: rlhf, steps: 1}
"""
JUDGED = SPEC.replace("rlhf: {}", "rlhf: {arena: questions.jsonl}").replace("resources: {", "resources: {judge: J, ")


def told(folder: Path, text: str, *more: str) -> str:
    """What `cascade plan` says of a spec that it refuses."""
    path = folder / "spec.yaml"
    path.write_text(text)
    done = cascade("plan", str(path), *more)
    assert done.exit_code == 2, done.output
    return done.stderr.replace(f"{folder}/", "").strip()


def cascade(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_domain_without_its_reward_model_is_told_what_to_write(tmp_path: Path) -> None:
    lines = SPEC.splitlines(keepends=True)
    said = told(tmp_path, "".join(line for line in lines if not line.startswith("resources")))
    assert said == (
        "cascade: spec.yaml:5:3: domains.rlhf: domain 'rlhf' needs 'reward_model': say what provides 'reward_model':"
        " `reward_model: {server: {model: …}}` under resources, or the address of what runs already"
    )


def test_a_command_without_its_reward_model_is_told_the_same(tmp_path: Path) -> None:
    done = cascade("check", "rlhf")
    assert done.exit_code == 2 and "`reward_model: {server: {model: …}}`" in done.stderr


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host",
        "unix:/run/rm.sock",
        "host:5001",
        "http://",
        "http://host:none",
        "vllm:host:8000",
        "vllm:ftp://host",
    ],
)
def test_an_address_of_a_wrong_scheme_is_refused_with_those_there_are(tmp_path: Path, address: str) -> None:
    said = told(tmp_path, SPEC.replace("http://127.0.0.1:5001", address))
    assert said == (
        "cascade: spec.yaml:6:27: resources.reward_model: a reward model is at http(s)://host[:port] or"
        f" vllm:http://…, vllm-pooling:http://…, vllm-score:http://…, found '{address}'"
    )
    with pytest.raises(UsageError, match="a reward model is at"):
        connect(address)


@pytest.mark.parametrize("address", ["http://host/v1", "ftp://host/v1#big", "host:80/v1#big", "https://#big"])
def test_an_address_of_no_judge_is_refused(tmp_path: Path, address: str) -> None:
    said = told(tmp_path, JUDGED.replace("J, ", f"'{address}', "))
    assert "resources.judge: a judge is at http(s)://host[:port]/v1#MODEL, found" in said


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("http://host:5001", RewardClient),
        ("https://host/rm", RewardClient),
        ("http://[::1]:5001", RewardClient),
        ("vllm:http://host:8000", VllmClient),
        ("vllm-score:https://host", VllmClient),
    ],
)
def test_an_address_of_a_reward_model_is_taken(tmp_path: Path, address: str, client: type) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("http://127.0.0.1:5001", address))
    assert cascade("plan", str(path)).exit_code == 0
    with connect(address) as made:
        assert isinstance(made, client)


@pytest.mark.parametrize(
    ("rule", "else_"), [("gate: if, sum: [if, rlhf]", "leave the gate out"), ("min: [if, rlhf]", "sum")]
)
def test_a_raw_score_below_a_gate_or_in_a_minimum_is_refused_with_its_cure(
    tmp_path: Path, rule: str, else_: str
) -> None:
    said = told(tmp_path, SPEC.replace("domains: rlhf,", f"domains: if, reward: {{{rule}}},"))
    assert "the rewards of 'rlhf' have no bounds" in said
    assert said.endswith(f"; bound them with its option reward: sigmoid_z, or {else_}")
    path = tmp_path / "spec.yaml"
    path.write_text(path.read_text().replace("rlhf: {}", "rlhf: {reward: sigmoid_z}"))
    assert cascade("plan", str(path)).exit_code == 0


@pytest.mark.parametrize("options", ["{}", "{reward: sigmoid_z}", "{threshold: 2.0}"])
def test_a_reward_model_is_no_gate(tmp_path: Path, options: str) -> None:
    text = SPEC.replace("rlhf: {}", f"rlhf: {options}")
    said = told(tmp_path, text.replace("domains: rlhf,", "domains: if, reward: {gate: rlhf, sum: [if]},"))
    assert "stages.rl.reward.gate.1: 'rlhf' is no gate" in said


def test_a_verifier_of_one_domain_is_no_scorer_of_another(tmp_path: Path) -> None:
    said = told(tmp_path, SPEC.replace("domains: rlhf,", "domains: rlhf, reward: {sum: [rlhf, if]},"))
    assert said.endswith(
        "stages.rl.reward.sum.2: 'if' judges tasks of its own domain alone, and this stage trains 'rlhf' (scorers of any task: rlhf)"
    )


@pytest.mark.parametrize("folder", ["/nope", "./nope", "~/nope/nope"])
def test_a_folder_that_is_not_there_is_no_reward_model(tmp_path: Path, folder: str) -> None:
    done = cascade("rm", "serve", "--model", folder, "--port", "0")
    assert done.exit_code == 1
    assert done.stderr.startswith("cascade: no folder is at '") and "hub name (OWNER/MODEL)" in done.stderr
    said = told(tmp_path, SPEC.replace('"http://127.0.0.1:5001"', f"{{server: {{model: {folder}}}}}"))
    assert "option 'model' must be a reward model: no folder is at '" in said
