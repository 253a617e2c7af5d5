"""Sampling with vLLM in a process of its own: what was asked comes, whatever ends, stalls or is killed, and nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from echoed import wait_until
from faulty import faulty_scorer

from cascade_core.cli.app import app
from cascade_core.domain import Benchmark
from cascade_core.errors import TrainerError
from cascade_core.evaluate import Exam, take
from cascade_core.initial import make
from cascade_core.lock import pinned_spec
from cascade_core.respondent import seed_of
from cascade_core.rows import read
from cascade_core.settings import InitModel, Sampling, Spec
from cascade_core.trainers.openrlhf_guard import MARK
from cascade_core.vllm_sampling import Vllm, chosen, session
from cascade_core.vllm_sampling.program import Asked
from cascade_core.vllm_sampling.reasons import reason
from cascade_core.vllm_sampling.sampler import VllmSampler, ends_and_context

HERE = Path(__file__).parent
SEED = 5


def exam(tasks: int = 3, samples: int = 4, name: str = "faulty/test", **sampling: Any) -> Exam:
    rows = tuple({"domain": "faulty", "id": f"t{i}", "prompt": f"task {i}", "answer": None} for i in range(tasks))
    settings = Sampling(max_response_tokens=6).model_copy(update=sampling)
    return Exam(name, Benchmark("test", samples=samples), rows, samples, settings)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    make(InitModel(hidden_size=8, layers=1, heads=2, context=32), 0, folder)
    return folder


class Rig:
    """A sampler over the stand-in, and what that wrote down."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model = folder, model
        self.vllm = Vllm(stall_seconds=60.0)

    def sampler(self, *found: Exam, **changes: Any) -> VllmSampler:
        vllm = replace(self.vllm, **changes)
        return VllmSampler(vllm, self.model, self.folder / "sampling", self.folder / "vllm.log", found, SEED)

    def all_of(self, *found: Exam, **changes: Any) -> list[dict[Any, Any]]:
        with self.sampler(*found, **changes) as sampler:
            for one in found:
                sampler.ask(one, one.keys)
            sampler.finish()
            return [dict(sampler.stream(one, one.keys)) for one in found]

    def lines(self, name: str) -> list[Any]:
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def is_over(self) -> bool:
        """Whether the engine's daemon, in its own session, has ended too."""
        found = [Path(f"/proc/{pid}/stat") for pid in self.lines("pids")]
        assert found
        return all(not path.exists() or path.read_text().rpartition(")")[2].split()[0] == "Z" for path in found)


@pytest.fixture
def rig(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("PYTHONPATH", str(HERE / "vllm_stand_in"))
    for variable, name in (("FAKE_PIDS", "pids"), ("FAKE_ASKED", "asked"), ("FAKE_ARGUMENTS", "arguments")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    return Rig(tmp_path, model)


def test_each_response_is_asked_with_its_own_seed_and_comes_to_its_place(rig: Rig) -> None:
    one = exam()
    (found,) = rig.all_of(one)
    asked = {key: seed_of(SEED, key) for key in one.keys}
    assert sorted(seed for _, seed, _ in rig.lines("asked")) == sorted(asked.values())
    assert set(found) == set(one.keys)
    for key, seed in asked.items():
        assert found[key].truncated == (seed % 4 == 0)
        assert found[key].tokens == (6 if seed % 4 == 0 else 2 + seed % 3)
    assert {sample.truncated for sample in found.values()} == {True, False}


def test_the_end_token_is_no_text(rig: Rig) -> None:
    (found,) = rig.all_of(exam())
    assert all(len(sample.text) == sample.tokens - (not sample.truncated) for sample in found.values())


def test_at_temperature_0_a_task_is_asked_once(rig: Rig) -> None:
    (found,) = rig.all_of(exam(temperature=0.0))
    assert len(rig.lines("asked")) == 3 and len(found) == 12
    assert len({found["t0", sample].text for sample in range(4)}) == 1


def test_vllm_is_started_once_for_all_exams_and_is_gone_afterwards(rig: Rig) -> None:
    found = rig.all_of(exam(), exam(tasks=5, name="faulty/other", max_response_tokens=9))
    assert [len(one) for one in found] == [12, 20]
    (arguments,) = rig.lines("arguments")
    assert arguments["max_model_len"] == len("task 0") + 9
    assert rig.is_over()
    assert not (rig.folder / "sampling").exists()


def test_an_answer_that_came_together_with_the_last_one_of_another_exam_is_not_lost(rig: Rig) -> None:
    first, second = exam(name="faulty/a"), exam(name="faulty/b")
    with rig.sampler(first, second) as sampler:
        sampler.ask(first, first.keys)
        sampler.ask(second, second.keys)
        sampler.finish()
        while (rig.folder / "sampling/answers.jsonl").read_bytes().count(b"\n") < len(first.keys) + len(second.keys):
            time.sleep(0.02)
        assert [len(dict(sampler.stream(one, one.keys))) for one in (first, second)] == [12, 12]


def test_vllm_takes_nothing_from_the_models_own_preferences(rig: Rig) -> None:
    rig.all_of(exam(), tensor_parallel_size=16, ray=True, arguments={"gpu_memory_utilization": 0.5})
    (told,) = rig.lines("arguments")
    assert told["generation_config"] == "vllm" and told["trust_remote_code"] is False
    assert told["tensor_parallel_size"] == 16 and told["distributed_executor_backend"] == "ray"
    assert told["gpu_memory_utilization"] == 0.5


def test_what_came_before_vllm_died_is_not_asked_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    found = exam(), exam(name="faulty/other")
    whole = rig.all_of(*found)
    (rig.folder / "asked").unlink()
    monkeypatch.setenv("FAKE_VLLM", "die 7")
    with pytest.raises(TrainerError, match="sampling with vLLM ended with status 137; see .*vllm.log"):
        rig.all_of(*found)
    assert rig.is_over()
    before = [json.loads(line)["key"] for line in (rig.folder / "sampling" / "answers.jsonl").read_text().splitlines()]
    assert len(before) == 7
    with (rig.folder / "sampling" / "answers.jsonl").open("a") as file:
        file.write('{"key": ["faulty/test", "t0"')  # cut short
    (rig.folder / "asked").unlink()
    monkeypatch.setenv("FAKE_VLLM", "")
    assert rig.all_of(*found) == whole
    assert len(rig.lines("asked")) == 24 - 7


def test_what_another_model_or_other_arguments_answered_is_asked_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change in ("model", "arguments"):
        monkeypatch.setenv("FAKE_VLLM", "die 7")
        with pytest.raises(TrainerError):
            rig.all_of(exam(), arguments={"dtype": "bfloat16"})
        monkeypatch.setenv("FAKE_VLLM", "")
        if change == "model":
            os.utime(rig.model / "model.safetensors", ns=(1, 1))
        (rig.folder / "asked").unlink()
        rig.all_of(exam(), arguments={"dtype": "float16" if change == "arguments" else "bfloat16"})
        assert len(rig.lines("asked")) == 12


def test_vllm_of_which_nothing_comes_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "stall 3")
    with pytest.raises(TrainerError, match=r"made no progress for 3 s \(engine.stall_seconds\) and was ended"):
        rig.all_of(exam(), stall_seconds=3.0)
    assert rig.is_over()
    assert len((rig.folder / "sampling" / "answers.jsonl").read_text().splitlines()) == 3


def test_a_response_that_vllm_gave_up_is_an_error_and_is_asked_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "abort 5")
    with pytest.raises(TrainerError, match="vLLM ended a response to task 't1' of 'faulty/test' with 'abort'"):
        rig.all_of(exam())
    monkeypatch.setenv("FAKE_VLLM", "")
    (found,) = rig.all_of(exam())
    assert len(found) == 12


@pytest.mark.parametrize(
    ("mode", "arguments", "why"),
    [
        ("absent", {}, "vLLM is not installed in the environment of .*; set engine.python"),
        ("memory", {}, "vLLM ran out of memory; raise evaluation.tensor_parallel_size"),
        (
            "",
            {"gpu_memory_utilisation": 1},
            "no argument 'gpu_memory_utilisation', did you mean 'gpu_memory_utilization'",
        ),
    ],
)
def test_a_start_that_fails_is_explained(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, mode: str, arguments: dict[str, Any], why: str
) -> None:
    monkeypatch.setenv("FAKE_VLLM", mode)
    with pytest.raises(TrainerError, match=f"sampling with vLLM ended with status 1: .*{why}"):
        rig.all_of(exam(), arguments=arguments)


def test_an_interpreter_that_is_not_there_is_explained(rig: Rig) -> None:
    with pytest.raises(TrainerError, match="engine.python"):
        rig.all_of(exam(), python=str(rig.folder / "nowhere"))


def test_a_prompt_without_room_for_its_response_is_refused_before_anything_is_started(rig: Rig) -> None:
    with pytest.raises(TrainerError, match="task 't0' has a prompt of 6 tokens"):
        rig.sampler(exam(max_response_tokens=27))
    assert not (rig.folder / "pids").exists()


def test_an_error_in_the_body_ends_vllm(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "stall 2")
    with pytest.raises(ZeroDivisionError), rig.sampler(exam()) as sampler:
        stream = sampler.stream(exam(), exam().keys)
        next(stream)
        raise ZeroDivisionError
    assert rig.is_over()


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_vllm_sampling import Rig, exam
Rig(Path({folder!r}), Path({model!r})).all_of(exam())
"""


@pytest.mark.drill
def test_a_killed_run_leaves_no_engine(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "stall 4")
    code = KILLED.format(here=str(HERE), folder=str(rig.folder), model=str(rig.model))
    run = subprocess.Popen([sys.executable, "-c", code])
    answers = rig.folder / "sampling" / "answers.jsonl"
    end = time.monotonic() + 90
    while time.monotonic() < end and not (answers.exists() and answers.read_bytes().count(b"\n") == 4):
        time.sleep(0.05)
    assert not rig.is_over()
    run.send_signal(signal.SIGKILL)
    run.wait()
    while time.monotonic() < end and not rig.is_over():
        time.sleep(0.1)
    assert rig.is_over()
    (rig.folder / "asked").unlink()
    monkeypatch.setenv("FAKE_VLLM", "")
    (found,) = rig.all_of(exam())
    assert len(found) == 12 and len(rig.lines("asked")) == 8


def test_what_an_evaluation_of_another_model_left_running_is_ended_before_its_answers_are_removed(rig: Rig) -> None:
    record = rig.folder / "sampling" / "process.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"token": f"of-{rig.folder.name}", "guard": 0}))
    left = subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: f"of-{rig.folder.name}"})
    (record.parent / "begun.json").write_text('{"model": "another"}')
    with rig.sampler(exam()):
        assert not record.exists() and left.wait(60) == -signal.SIGKILL


def test_what_comes_is_judged_before_the_last_has_come(rig: Rig) -> None:
    one, handed = exam(), []
    with faulty_scorer(workers=1) as scorer, rig.sampler(one) as sampler:
        kept = scorer.hand_over

        def hand_over(row: Any, known: Any) -> None:
            handed.append((row["id"], row["sample"]))
            kept(row, known)

        scorer.hand_over = hand_over  # type: ignore[method-assign]
        take(one, sampler, scorer, rig.folder / "rows.jsonl", seed=SEED, max_error_rate=1.0)
    rows = list(read(rig.folder / "rows.jsonl"))
    assert [(row["id"], row["sample"]) for row in rows] == one.keys
    assert sorted(handed) == sorted(one.keys) and handed != one.keys
    assert all("score" in row for row in rows)


def test_a_request_that_is_still_being_written_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "asked"
    with path.open("wb") as out, path.open("rb") as file:
        asked = Asked(file)
        out.write(b'{"key"')
        out.flush()
        assert asked.next() is None and not asked.has_ended
        out.write(b': 1}\n{"end": true}\n')
        out.flush()
        assert asked.next() == {"key": 1}
        assert asked.next() is None and asked.has_ended


def test_vllm_of_which_nothing_more_is_asked_gives_its_gpus_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_IDLE_SECONDS", 3.0)
    folder, log = rig.folder / "sampling", rig.folder / "vllm.log"
    with session.Session(Vllm(sys.executable), {"model": "m"}, folder, log) as found:
        found.ask({"key": "k", "tokens": [1], "sampling": {"seed": 1, "max_tokens": 4, "stop_token_ids": [2]}})
        answers = found.answers()
        assert next(answers)["key"] == "k"
        with pytest.raises(TrainerError, match="nothing was asked for 3 s"):
            next(answers)
    wait_until(rig.is_over)


def test_ends_and_context_are_those_of_the_loaded_model(model: Path) -> None:
    from cascade_core.pretrained import context_length, end_tokens, load_model, load_tokenizer

    loaded, tokenizer = load_model(model), load_tokenizer(model)
    assert ends_and_context(model, tokenizer) == (end_tokens(loaded, tokenizer), context_length(loaded))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "(EngineCore pid=7) ERROR 11-30 16:00:00 [core.py:9] ValueError: Free memory on device cuda:0 (3.1/79.2 GiB) on"
            " startup is less than desired GPU memory utilization (0.92, 72.8 GiB).",
            "gpu_memory_utilization",
        ),
        (
            "ValueError: To serve at least one request with the models's max seq len (40960), (5.6 GiB KV cache is needed, which"
            " is larger than the available KV cache memory (1.2 GiB).",
            "no room for the longest response",
        ),
        ("RuntimeError: Failed to infer device type, please set", "finds no GPU on this machine"),
        ("ValueError: Model architectures ['Odd'] are not supported for now.", "does not know the model"),
        ("ValueError: Total number of attention heads (9) must be divisible by tensor parallel size (2).", "split so"),
        ("OSError: [Errno 28] No space left on device", "No space left on device"),
        ("KeyError: 'odd'", "KeyError: 'odd'"),
        ("all is well", ""),
    ],
)
def test_what_vllm_prints_is_told_with_the_setting_to_change(line: str, why: str) -> None:
    assert why in reason(["INFO nothing", line], "python") if why else reason([line], "python") == ""


def test_what_vllm_survived_does_not_hide_what_ended_it() -> None:
    survived = "WARNING 11-30 16:00:00 [utils.py:7] ImportError: cannot import name 'cpp' from 'odd'"
    passing = "WARNING 11-30 16:00:00 [utils.py:7] CUDA out of memory, falling back to the smaller kernel"
    ended = "(EngineCore pid=7) ERROR 11-30 16:00:09 [core.py:9] KeyError: 'rope_type'"
    points = "RuntimeError: Engine core initialization failed. See root cause above."
    told = reason([survived, ended, points], "python")
    assert "do not fit" in told and told.endswith("the last error was: KeyError: 'rope_type'")
    assert reason([passing, ended, points], "python") == "KeyError: 'rope_type'"
    assert "the last error" not in reason(["MemoryError", points], "python")


def spec(**changes: Any) -> Spec:
    whole = {
        "name": "one",
        "model": "./model",
        "domains": {"math": {}},
        "stages": [{"name": "s", "domains": "math", "steps": 1}],
        **changes,
    }
    return Spec.model_validate(whole)


def test_vllm_samples_where_a_stage_is_openrlhfs_or_the_spec_says_so() -> None:
    assert chosen(spec()) is None
    assert chosen(spec(trainer="openrlhf")) is not None
    assert chosen(spec(evaluation={"sampler": "vllm"})) is not None
    assert chosen(spec(trainer="openrlhf", evaluation={"sampler": "transformers"})) is None


@pytest.mark.parametrize(
    ("engine", "evaluation", "wide", "ray"),
    [
        ({}, {}, 1, False),
        ({"gpus": 8, "tensor_parallel_size": 4}, {}, 4, False),
        ({"gpus": 8, "tensor_parallel_size": 4}, {"tensor_parallel_size": 2}, 2, False),
        ({"gpus": 8, "nodes": 2, "ray": "http://head:8265"}, {"tensor_parallel_size": 16}, 16, True),
        ({"cpu": True}, {"tensor_parallel_size": 2}, 1, False),
    ],
)
def test_the_model_is_spread_as_the_spec_says(
    engine: dict[str, Any], evaluation: dict[str, Any], wide: int, ray: bool
) -> None:
    found = chosen(spec(trainer="openrlhf", engine=engine, evaluation=evaluation))
    assert found is not None and (found.tensor_parallel_size, found.ray) == (wide, ray)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"evaluation": {"vllm_args": {"dtype": "float16"}}}, "is a setting of the sampler vllm"),
        ({"evaluation": {"tensor_parallel_size": 2}}, "is a setting of the sampler vllm"),
        (
            {"evaluation": {"sampler": "vllm", "vllm_args": {"seed": 1}}},
            "'seed' cannot be set: every response has a seed of its own; set evaluation.seed",
        ),
        ({"evaluation": {"sampler": "vllm", "tensor_parallel_size": 2}}, "without a Ray cluster"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        spec(**changes)


def test_what_vllm_needs_to_fit_may_change_under_a_run_and_what_it_computes_may_not() -> None:
    def pinned(**more: Any) -> dict[str, Any]:
        return pinned_spec(spec(evaluation={"sampler": "vllm", **more}))

    assert pinned(tensor_parallel_size=1, vllm_args={"gpu_memory_utilization": 0.5}) == pinned()
    assert pinned(vllm_args={"dtype": "float16"}) != pinned()


RUN = """
name: small
model: {{init: {{hidden_size: 16, layers: 1, heads: 2, context: 48, tokenizer: {{phrases: ["\\\\boxed{{"]}}}}}}
domains: {{math: {{generator: {{name: arithmetic, max_a: 30, max_b: 9}}}}}}
stages:
  - {{name: sft, kind: sft, domains: math, steps: 1, batch_size: 2, save_every: 0}}
engine: {{python: {python}}}
scoring: {{workers: 1}}
evaluation: {{sampler: vllm, limit: 10, samples: 2, sampling: {{max_response_tokens: 6}}}}
"""


def test_a_run_whose_evaluation_failed_goes_on_with_what_has_come(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    path, folder = rig.folder / "spec.yaml", rig.folder / "run"
    path.write_text(RUN.format(python=sys.executable))
    monkeypatch.setenv("FAKE_VLLM", "die 12")
    first = CliRunner().invoke(app, ["run", str(path), "--folder", str(folder)])
    assert first.exit_code == 1 and "sampling with vLLM ended with status 137" in first.output
    monkeypatch.setenv("FAKE_VLLM", "")
    path.write_text(path.read_text().replace("limit: 10", "limit: 10, vllm_args: {enforce_eager: true}"))
    again = CliRunner().invoke(app, ["run", str(path), "--folder", str(folder)])
    assert again.exit_code == 0, again.output
    assert len(rig.lines("asked")) == 20 + 8 + 20  # of the first 20, 12 were answered
    for stage in (folder / "stages").iterdir():
        assert json.loads((stage / "metrics.json").read_text())["benchmarks"]["math/test"]["total"] == 20
        assert not (stage / "sampling").exists() and (stage / "vllm.log").exists()
    assert rig.is_over()


def test_cascade_eval_samples_with_vllm_and_goes_on_where_it_died(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    path, output = rig.folder / "spec.yaml", rig.folder / "evaluated"
    path.write_text(RUN.format(python=sys.executable))
    command = ["eval", str(path), "--model", str(rig.model), "--vllm", sys.executable, "-o", str(output), "--json"]
    command += ["--max-response-tokens", "4", "--limit", "4"]
    monkeypatch.setenv("FAKE_VLLM", "die 3")
    assert CliRunner().invoke(app, command).exit_code == 1
    monkeypatch.setenv("FAKE_VLLM", "")
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["benchmarks"]["math/test"]["total"] == 8
    assert rig.is_over()
