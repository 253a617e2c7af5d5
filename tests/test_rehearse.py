"""`cascade rehearse`: mistakes planted into specs, each found with what mends it; what is right is tried and left as it was."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rehearsed import DOMAIN, SPEC, TEMPLATE, model
from strangers import environment, publish
from typer.testing import CliRunner

from cascade_core import plugins
from cascade_core.cli.app import app
from cascade_core.rehearsal.checks import unwritable

__all__ = ["publish"]

CONSOLE = re.compile(r"^```text\n\$ cascade (rehearse [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENT = (Path(__file__).parents[1] / "docs" / "rehearsal.md").read_text("utf-8")


@pytest.fixture
def place(publish, tmp_path, monkeypatch):
    """An empty folder to work in, with the domain `sums` installed, a model, and temporary files of its own."""
    publish("cascade-plugin-sums", DOMAIN)
    plugins.registry.cache_clear()
    folder = tmp_path / "here"
    (tmp_path / "tmp").mkdir()
    model(folder / "model")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield folder
    plugins.registry.cache_clear()


def rehearse(place, *arguments, spec=SPEC):
    (place / "spec.yaml").write_text(spec)
    return CliRunner().invoke(app, ["rehearse", "spec.yaml", *arguments])


def mistakes(place, *arguments, spec=SPEC):
    """What `--json` tells, and only mistakes may be the reason of the status."""
    done = rehearse(place, "--json", *arguments, spec=spec)
    told = json.loads(done.stdout)
    assert done.exit_code == told["status"] == bool(told["mistakes"]), done.output
    return [one["what"] for one in told["mistakes"]]


PLANTED = {
    "a flag that OpenRLHF does not have": (
        ["stages.rl.trainer=openrlhf", "stages.rl.trainer_args={vllm.num_engine: 2}"],
        r"--set stages\.rl\.trainer_args=.*: stages\.rl\.trainer_args\.vllm\.num_engine: trainer_args\.vllm\.num_engine is no flag of"
        r" OpenRLHF .*, did you mean 'vllm\.num_engines'",
    ),
    "a flag that a setting decides": (
        ["stages.rl.trainer=openrlhf", "stages.rl.trainer_args={train.batch_size: 4}"],
        r"trainer_args\.train\.batch_size is decided by the stage; set rollout\.prompts_per_step instead",
    ),
    "a batch that the machines cannot share": (
        [
            "stages.rl.trainer=openrlhf",
            "stages.rl.rollout={prompts_per_step: 3, samples_per_prompt: 3, max_response_tokens: 9}",
            "engine.gpus=8",
        ],
        r"--set .*: stages\.rl\.rollout\.prompts_per_step: rollout\.prompts_per_step 3 makes steps of 9 responses, which 8 replicas .* cannot share evenly.* 8 fit",
    ),
    "a plugin that is not installed": (["domains.sumz={}"], r"domains\.sumz: .*'sumz'.*did you mean 'sums'"),
    "a column that the data do not have": (
        ["domains.math={data: ./data.jsonl, prompt_field: questoin}", "stages.rl.domains=[sums, math]"],
        r"no field 'questoin' \(prompt_field\), found .*question",
    ),
    "a row without a label, not the first": (
        [
            "domains.math={data: ./later.jsonl, eval_data: ./data.jsonl, prompt_field: question}",
            "stages.rl.domains=math",
        ],
        r"stage 'rl': its tasks cannot be drawn: .*later\.jsonl:21: none of the fields .*; set 'answer_field', found 'question'",
    ),
    "a prompt that is no text": (
        ["domains.math={data: ./odd.jsonl, prompt_field: question}", "stages.rl.domains=math"],
        r"stage 'rl': the tokenizer cannot read task '.*' of domain 'math': .*; lone surrogates .* take them out of the data",
    ),
    "prompts that are too long": (
        ["domains.sums.words=300"],
        r"stage 'rl': \d+ of the first \d+ prompts have more than the 232 tokens .* lower rollout\.max_response_tokens",
    ),
    "prompts that are longer than what the trainer takes of its own accord": (
        [
            "stages.rl.trainer=openrlhf",
            "model={init: {hidden_size: 32, layers: 1, heads: 1, context: 8192}}",
            "domains.sums.words=2100",
        ],
        r"more than the 2048 tokens .*; set trainer_args\.data\.max_len, which is 2072 where nothing is said, or leave them out$",
    ),
    "prompts that are longer than the model reads, whatever the trainer takes": (
        ["stages.rl.trainer=openrlhf", "stages.rl.trainer_args={data.max_len: 60}", "domains.sums.words=300"],
        r"more than the 36 tokens .*; leave them out, or lower .*, or take a model with a longer context",
    ),
    "prompts that are longer than what the trainer is to take": (
        ["stages.rl.trainer=openrlhf", "stages.rl.trainer_args={data.max_len: 30}"],
        r"more than the 6 tokens .*; raise trainer_args\.data\.max_len, or leave them out, or lower rollout",
    ),
    "a model that is not there": (
        ["model=./nowhere"],
        r"model\.path: no folder is at '.*nowhere'; give a Hugging Face",
    ),
    "data that are trained on and measured": (
        [
            "domains.math={data: ./data.jsonl, eval_data: ./data.jsonl, prompt_field: question}",
            "stages.rl.domains=[sums, math]",
        ],
        r"domain 'math' has no task of the split 'train' to train on; its data are empty, or all of them are held out to be measured",
    ),
    "responses longer than the model's positions": (
        ["stages.rl.rollout.max_response_tokens=4096"],
        r"stage 'rl': rollout\.max_response_tokens 4096 leaves no room for a prompt, the model reads 256 tokens in all; set it well",
    ),
    "conversations for a model without a chat template": (
        ["domains.sums.is_chat=true"],
        r"the tokenizer of .*model has no chat template, and prompts of domain 'sums' are conversations.*chat_template\.jinja",
    ),
    "a grader that raises": (
        ["domains.sums.fault=grader"],
        r"domain 'sums': 8 of 8 answers could not be judged, .*KeyError: 'sum' .*; mend the domain .*`cascade check sums`",
    ),
    "references that their own verifier refuses": (
        ["domains.sums.fault=reference"],
        r"domain 'sums': 4 of 4 references do not score 1\.0, such as '-1' .*; mend the label, the reference or the verifier",
    ),
    "a secret that is not there": (
        ["domains.sums.token={env: SUMS_TOKEN}"],
        r"domain 'sums': environment variable 'SUMS_TOKEN'.* is not set; export SUMS_TOKEN",
    ),
    "a resource that cannot be started": (
        ["domains.sums.fault=resource", "resources.counter={broken: }"],
        r"what provides 'counter' .* cannot be started: no counter here; `cascade doctor`",
    ),
    "a benchmark that no domain has": (
        ["evaluation.benchmarks=[sums/tset]"],
        r"evaluation\.benchmarks\.1: no benchmark is called 'sums/tset'.*'sums/test'",
    ),
    "no OpenRLHF to try it with": (
        ["stages.rl.trainer=openrlhf"],
        r"OpenRLHF for a CPU is not installed in .*cascade-rl/openrlhf; `cascade rehearse --install` puts it there",
    ),
}


@pytest.mark.parametrize(("settings", "told"), PLANTED.values(), ids=PLANTED)
def test_it_is_found_and_what_mends_it_is_said(place, settings, told):
    (place / "data.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    rows = [f'{{"question": "{n}+1", "answer": "{n + 1}"}}\n' for n in range(20)]
    (place / "later.jsonl").write_text("".join([*rows, '{"question": "1+1"}\n']))
    (place / "odd.jsonl").write_text("".join([*rows, '{"question": "\\ud800 1+1", "answer": "2"}\n']))
    quick = [] if "OpenRLHF for a CPU" in told else ["--quick"]  # which does without
    arguments = [part for setting in settings for part in ("--set", setting)]
    found = mistakes(place, *quick, "--tasks", "4", *arguments)
    assert len(found) == 1 and re.search(told, found[0]), found


def test_a_verdict_that_is_the_same_whatever_is_answered_is_said(place):
    done = rehearse(place, "--quick", "--tasks", "4", "--set", "domains.sums.fault=generous")
    assert done.exit_code == 0 and "; every answer got 1, worthless ones too\n" in done.output
    done = rehearse(place, "--quick", "--tasks", "4")
    assert done.exit_code == 0 and "every answer got" not in done.output


def test_mistakes_are_told_together_with_their_lines_before_anything_is_begun(place, monkeypatch):
    monkeypatch.setattr("cascade_core.rehearsal.rehearse.provision.running", None)  # raises if it were called
    spec = SPEC.replace("{sums: {}}", "{sums: {words: 300, token: {env: SUMS_TOKEN}}, chess: {}}")
    spec = spec.replace(
        "steps: 40\n", "steps: 40\n    trainer: openrlhf\n    trainer_args: {vllm.num_engine: 2, bf16: true}\n"
    )
    found = mistakes(place, spec=spec)
    wanted = [
        r"^spec\.yaml:5:\d+: domains\.chess: ",
        "vllm.num_engines",
        "trainer_args.bf16",
        "SUMS_TOKEN",
        "prompts have more",
    ]
    assert len(found) == len(wanted) + 1  # and there is no OpenRLHF
    assert [sum(bool(re.search(one, line)) for line in found) for one in wanted] == [1] * len(wanted)
    assert re.search(
        r"^spec\.yaml:11:\d+: stages\.rl\.trainer_args", next(line for line in found if "num_engines" in line)
    )


WHOLE = SPEC.replace(
    "stages:\n",
    "stages:\n  - {name: sft, kind: sft, domains: sums, steps: 100, batch_size: 64, micro_batch: 16, trainer_args: {bf16: true}}\n",
).replace("steps: 40\n", "steps: 40\n    overlong: {soft: {buffer: 20}}\n    optim: {warmup_steps: 5}\n")


@pytest.mark.slow
def test_a_right_spec_is_tried_whole_and_nothing_is_left_of_it(place, tmp_path):
    run = place / "runs" / "small"
    run.mkdir(parents=True)
    (run / "mine").write_text("here")
    done = rehearse(place, "--json", spec=WHOLE)
    told = json.loads(done.stdout)
    assert done.exit_code == 0 and told["mistakes"] == [] and told["is_whole"], done.output
    assert [(one["stage"], one["trainer"], one["done"]) for one in told["stages"]] == [
        ("sft", "trl", 2),
        ("rl", "trl", 2),
    ]
    samples = told["stages"][1]["samples"]
    assert samples["total"] == samples["scored"] == 32 and samples["failed"] == 0
    lengths = told["stages"][1]["lengths"]
    assert (lengths["limit"], lengths["count"]) == (256 - 24, 640) and 0 < lengths["p50"] <= lengths["longest"] < 40
    assert told["domains"][0]["references"] == told["domains"][0]["right"] == 64
    assert 0 < told["domains"][0]["p50_seconds"] <= told["domains"][0]["longest_seconds"]
    assert told["benchmarks"] == [
        {"benchmark": "sums/test", "tasks": 4, "scored": 4, "failed": 0, "measures": ["avg@1", "pass@1"]}
    ]
    assert [path.name for path in run.iterdir()] == ["mine"]
    assert not list((tmp_path / "tmp").glob("cascade-rehearsal-*")) and told["folder"] == ""
    assert "stage sft: bf16 true -> false: needs a GPU" in done.stderr
    assert "stage sft: micro_batch 16 -> 8: must divide the smaller step" in done.stderr
    assert "note: the tokenizer of" not in done.stdout and "has no chat template" in told["notes"][0]


@pytest.mark.slow
def test_a_stage_that_fails_keeps_no_later_one_from_being_tried(place):
    stage = SPEC.partition("stages:\n")[2].partition("scoring:")[0]
    second = stage.replace("name: rl", "name: more")
    spec = SPEC.replace(stage, stage + second).replace("{sums: {}}", "{sums: {fault: rewards}}")
    done = rehearse(place, "--folder", "trial", "--tasks", "2", "--steps", "1", spec=spec)
    assert done.exit_code == 1
    found = [line for line in done.stdout.splitlines() if line.startswith("mistake: ")]
    assert len(found) == 2 and "what comes after this was not tried" not in done.stdout
    for line, name in zip(found, ("rl", "more"), strict=True):
        assert line.startswith(
            f"mistake: stage '{name}': 16 of 16 samples could not be judged, 16 of them because of: "
        )
        assert "ZeroDivisionError: no spread" in line
    assert f"files: {place / 'trial'}" in done.stdout
    assert len(list((place / "trial" / "stages").iterdir())) == 2


WAITING = SPEC.replace("{sums: {}}", "{sums: {fault: waits}}").replace(
    "stages:\n",
    "resources: {counter: {kept: {model: 'stage:rm', device: 'cuda:0'}}}\n"
    "stages:\n  - {name: rm, kind: reward_model, domains: sums, steps: 9, batch_size: 16}\n",
)


@pytest.mark.slow
def test_what_is_made_of_a_stage_is_started_after_it_and_what_needs_it_is_judged_from_then_on(place):
    done = rehearse(place, "--json", "--steps", "1", "--tasks", "3", spec=WAITING.replace("workers: 1", "workers: ray"))
    told = json.loads(done.stdout)
    assert (done.exit_code, told["mistakes"]) == (0, []), done.output
    assert [(one["stage"], one["kind"], one["done"]) for one in told["stages"]] == [
        ("rm", "reward_model", 1),
        ("rl", "rl", 1),
    ]
    assert (told["domains"][0]["right"], told["domains"][0]["failed"]) == (3, 0)
    assert [(one["benchmark"], one["scored"]) for one in told["benchmarks"]] == [("sums/pairs", 4), ("sums/test", 4)]
    said = done.stderr.splitlines()
    assert "domain sums: judged later, what provides 'counter' is made of stage 'rm'" in said
    judged = next(place for place, line in enumerate(said) if line.startswith("domain sums: 3 of 3 references"))
    assert said[judged - 1].startswith("stage rm (reward_model, trl): 1 of 1 steps")
    whole = {one["setting"]: (one["before"], one["after"]) for one in told["replaced"] if not one["stage"]}
    assert whole["resources.counter.kept.device"] == ("cuda:0", "cpu")
    assert whole["scoring.workers"] == ({"ray": {}}, os.cpu_count())
    assert f'  scoring.workers {{"ray": {{}}}} -> {os.cpu_count()}: this machine judges, no cluster' in said


@pytest.mark.slow
def test_what_needs_a_resource_that_was_never_made_is_left_out_and_said(place):
    spec = WAITING.replace("device: 'cuda:0'", "is_broken: true")
    done = rehearse(place, "--json", "--steps", "1", "--tasks", "3", spec=spec)
    told = json.loads(done.stdout)
    (mistake,) = [one["what"] for one in told["mistakes"]]
    assert done.exit_code == 1 and re.search(
        r"what provides 'counter' .* cannot be started: .*/checkpoint cannot count", mistake
    )
    assert [one["stage"] for one in told["stages"]] == ["rm"] and told["domains"] == []
    assert "stage 'rl' was not tried: what provides 'counter' is made of stage 'rm', and there is none" in told["notes"]
    assert [one["benchmark"] for one in told["benchmarks"]] == ["sums/pairs"]


def test_a_quick_rehearsal_says_what_it_leaves_to_a_whole_one(place):
    done = rehearse(place, "--quick", spec=WAITING)
    assert (
        done.exit_code == 0
        and "domain sums: judged later, what provides 'counter' is made of stage 'rm'" in done.output
    )


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    """An interpreter with the stand-in for vLLM, and the names of its arguments where vLLM's own source has them."""
    site = tmp_path / "vllm_site"
    shutil.copytree(Path(__file__).parent / "vllm_stand_in", site)
    (site / "vllm" / "engine").mkdir()
    source = (site / "vllm" / "__init__.py").read_text()
    (site / "vllm" / "engine" / "arg_utils.py").write_text(
        source.replace("dtype: str", "quantization: str | None = None\n    dtype: str")
    )
    monkeypatch.setenv("FAKE_ARGUMENTS", str(tmp_path / "arguments"))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


SFT = "stages=[{name: sft, kind: sft, domains: sums, steps: 9}]"


@pytest.mark.slow
def test_benchmarks_are_answered_by_vllm_where_the_spec_says_so_with_what_a_cpu_can_have(place, vllm, tmp_path):
    given = "evaluation={sampler: vllm, sampling: {max_response_tokens: 24}, vllm_args: {quantization: fp8, dtype: half, max_model_len: 200}}"
    done = rehearse(
        place, "--json", "--steps", "1", "--tasks", "1", "--python", str(vllm), "--set", given, "--set", SFT
    )
    told = json.loads(done.stdout)
    assert (done.exit_code, told["mistakes"]) == (0, []), done.output
    assert [(one["benchmark"], one["scored"]) for one in told["benchmarks"]] == [("sums/test", 4)]
    replaced = {one["setting"]: (one["before"], one["after"]) for one in told["replaced"] if not one["stage"]}
    assert replaced == {
        "evaluation.vllm_args.quantization": ("fp8", None),
        "evaluation.vllm_args.dtype": ("half", "float32"),
    }
    (arguments,) = [json.loads(line) for line in (tmp_path / "arguments").read_text().splitlines()]
    assert (arguments["dtype"], arguments["max_model_len"], arguments["tensor_parallel_size"]) == ("float32", 200, 1)


@pytest.mark.slow
def test_a_vllm_that_cannot_start_is_one_mistake_with_its_cure(place, vllm, monkeypatch):
    monkeypatch.setenv("FAKE_VLLM", "memory")
    given = ["--set", "evaluation.sampler=vllm", "--set", SFT]
    (found,) = mistakes(place, "--steps", "1", "--tasks", "1", "--python", str(vllm), *given)
    assert re.search(r"sampling with vLLM ended .*: vLLM ran out of memory; .*; see .*/eval/vllm\.log$", found)


def test_arguments_that_vllm_does_not_have_are_found(place, vllm):
    wrong = "{enforce_eagr: true, max_model_len: 20, gpu_memory_utilization: 2}"
    given = f"evaluation={{sampler: vllm, sampling: {{max_response_tokens: 24}}, vllm_args: {wrong}}}"
    found = mistakes(place, "--quick", "--python", str(vllm), "--set", given)
    assert len(found) == 3
    assert found[0].endswith("has no argument 'enforce_eagr', did you mean 'enforce_eager'")
    assert found[1] == "evaluation.vllm_args.gpu_memory_utilization: must be above 0 and at most 1, found 2"
    assert found[2].startswith("benchmark 'sums/test': a prompt of ") and found[2].endswith(
        "max_response_tokens 24 exceed the 20 tokens that evaluation.vllm_args.max_model_len allows; raise it, or lower the other"
    )


def test_arguments_that_nobody_can_look_at_are_said_to_be_so(place):
    done = rehearse(
        place, "--quick", "--set", "evaluation.sampler=vllm", "--set", "evaluation.vllm_args={enforce_eagr: true}"
    )
    assert done.exit_code == 0 and "note: evaluation.vllm_args were not looked at, there is no vLLM here" in done.output


@pytest.mark.drill
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_one_line_and_leaves_nothing(place, tmp_path, sent):
    (place / "spec.yaml").write_text(SPEC)
    program = "from cascade_core.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-u", "-c", program, "rehearse", "spec.yaml", "--steps", "1000"],
        env={**environment(tmp_path / "site"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert any(line.startswith("stage rl: trying") for line in running.stdout)
        assert list((tmp_path / "tmp").glob("cascade-rehearsal-*"))
        running.send_signal(sent)
        _, told = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 130 and "Traceback" not in told
    assert told.splitlines()[-1] == "cascade: interrupted; nothing of the rehearsal is left running"
    assert not list((tmp_path / "tmp").glob("cascade-rehearsal-*"))


def test_it_writes_into_no_folder_that_holds_anything(place):
    (place / "mine").mkdir()
    (place / "mine" / "file").write_text("")
    done = rehearse(place, "--folder", "mine")
    assert done.exit_code == 2
    assert (
        done.stderr
        == "cascade: --folder mine is not empty; a rehearsal never writes into what is there, name another\n"
    )


def test_a_folder_that_the_run_cannot_make_is_found(place):
    (place / "file").write_text("")
    (found,) = mistakes(place, "--quick", "--run-folder", "file/run")
    assert re.fullmatch(
        r"file/run cannot be made: .*/file is a file; name another folder with --run-folder, and .* --folder", found
    )


def test_a_folder_that_is_not_ones_own_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write anywhere
    assert f"{tmp_path} is not yours to write into" in unwritable(tmp_path / "run")


def test_the_command_wants_a_spec_or_an_installation():
    done = CliRunner().invoke(app, ["rehearse"])
    assert done.exit_code == 2 and "name a spec to rehearse, or give --install" in done.stderr


def test_it_installs_where_it_looks(place, monkeypatch):
    made = []

    def install(folder):
        made.append(folder)
        return folder / "bin" / "python"

    monkeypatch.setattr("cascade_core.rehearsal.install", install)
    done = CliRunner().invoke(app, ["rehearse", "--install"])
    where = Path(os.environ["XDG_CACHE_HOME"]) / "cascade-rl" / "openrlhf"
    assert done.exit_code == 0 and made == [where]
    assert done.stdout.splitlines()[-1] == f"OpenRLHF for a CPU: {where / 'bin' / 'python'}"


def test_an_interpreter_without_openrlhf_is_refused(place):
    (found,) = mistakes(place, "--python", "/bin/false", "--set", "stages.rl.trainer=openrlhf")
    assert found == "OpenRLHF is not installed in the environment of /bin/false; `cascade rehearse --install` makes one"
    (found,) = mistakes(place, "--python", "/no/python", "--set", "stages.rl.trainer=openrlhf")
    assert found.startswith("there is no interpreter at /no/python; `cascade rehearse --install` makes one")


def timeless(text):
    """Without what a clock says."""
    return re.sub(r"\b[\d.]+ (ms|s)\b", r"… \1", text)


@pytest.fixture
def documented(place, publish):
    """The folder that docs/rehearsal.md speaks of: its specs, its file of problems, its model."""
    specs = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    for name, text in zip(("spec.yaml", "right.yaml"), specs, strict=True):
        (place / name).write_text(text)
    (place / "problems.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    model(place / "models" / "small", template=TEMPLATE, context=4096)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "printed"), CONSOLE.findall(DOCUMENT), ids=["planted", "right"])
def test_the_document_shows_what_is_printed(documented, command, printed):
    done = CliRunner().invoke(app, command.split())
    assert timeless(done.output) == timeless(printed)
