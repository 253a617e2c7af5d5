"""A run with a reward model in it: who starts from what, what is measured when, and what a kill changes (nothing)."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_run import contents
from tasting import SPEC, child, taste

from cascade_core import provision
from cascade_core.cli.app import app
from cascade_core.domain import Domain
from cascade_core.errors import CheckpointError, RunChanged, SpecError
from cascade_core.plan import plan
from cascade_core.plugins import registry
from cascade_core.prepare import prepare
from cascade_core.report import matrix
from cascade_core.report import record as report_record
from cascade_core.report.answers import read_all
from cascade_core.reward_model import RewardReader, tokens
from cascade_core.rows import read
from cascade_core.run import run
from cascade_core.settings import Spec
from cascade_core.spec import check, load

__all__ = ["taste"]
pytestmark = pytest.mark.usefixtures("taste")


def spec_at(folder: Path, *changes: tuple[str, str]) -> Path:
    text = SPEC.replace("LOG", str(folder / "log"))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


@pytest.fixture(scope="module")
def whole(taste: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert child("none", spec_at(folder), folder / "run") == 0
    return folder / "run"


def metrics(folder: Path, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "stages" / stage / "metrics.json").read_text())
    return found


def test_the_policy_goes_past_a_reward_model(whole: Path) -> None:
    started, trained = (whole / "stages" / name / "checkpoint" for name in ("00-start", "02-rl"))
    names = [json.loads((place / "config.json").read_text())["architectures"] for place in (started, trained)]
    assert names == [["LlamaForCausalLM"], ["LlamaForCausalLM"]]
    kind = json.loads((whole / "stages" / "01-rm" / "checkpoint" / "config.json").read_text())
    assert kind["architectures"] == ["LlamaForSequenceClassification"] and len(kind["id2label"]) == 1


def test_a_domain_is_measured_from_the_stage_on_that_makes_its_resource(whole: Path) -> None:
    measured = {stage: sorted(metrics(whole, stage)["benchmarks"]) for stage in ("00-start", "01-rm", "02-rl")}
    assert measured == {
        "00-start": ["math/test"],
        "01-rm": ["taste/halves", "taste/pairs", "taste/test"],
        "02-rl": ["math/test", "taste/test"],
    }
    assert "change" in metrics(whole, "02-rl")["benchmarks"]["math/test"]  # since the last time that it was measured


def test_beside_a_reward_model_the_policy_is_measured_as_it_stands(whole: Path, tmp_path: Path) -> None:
    """The rows are those of the model that the next stage starts from, so that what this gains has a value to start from."""
    from cascade_core.sampling import LocalSampler

    spec = load(spec_at(tmp_path))
    exam = next(exam for exam in prepare(spec).exams if exam.name == "taste/test")
    sampler = LocalSampler(whole / "stages" / "00-start" / "checkpoint", spec.evaluation.batch_size)
    drawn = sampler.sample(exam.tasks, exam.samples, exam.sampling, spec.evaluation.seed)
    rows = list(read(whole / "stages" / "01-rm" / "eval" / "taste" / "test.jsonl"))
    assert [row["response"] for row in rows] == [one.text for samples in drawn for one in samples]
    assert metrics(whole, "02-rl")["benchmarks"]["taste/test"]["change"]["n"] == len(rows) == 20


def test_a_stage_that_trains_a_reward_model_is_not_said_to_have_trained_the_policy(whole: Path) -> None:
    record = report_record.read(whole)
    cells = matrix.build(record, read_all(record.stages)).cells
    own = {name: cells[name, "01-rm"].is_own for name in ("taste/pairs", "taste/test")}
    assert own == {"taste/pairs": True, "taste/test": False}
    assert cells["taste/test", "02-rl"].is_own and cells["taste/test", "02-rl"].change is not None


def test_what_serves_a_reward_model_is_told_once_where_it_was_made(whole: Path) -> None:
    events = [json.loads(line) for line in (whole / "events.jsonl").read_text().splitlines()]
    kinds = [(event["kind"], event.get("benchmark")) for event in events if event["stage"] == "01-rm"]
    told = [kind for kind in kinds if kind[0] in ("eval", "resources")]
    assert told == [("eval", "taste/pairs"), ("eval", "taste/halves"), ("resources", None), ("eval", "taste/test")]
    assert [event["stage"] for event in events if event["kind"] == "resources"] == ["01-rm"]


def test_pairs_that_teach_nothing_are_left_out_and_told(whole: Path) -> None:
    rows = list(read(whole / "stages" / "01-rm" / "prompts.jsonl"))
    assert len(rows) == 64 and all(row["chosen"].strip() and row["chosen"] != row["rejected"] for row in rows)
    record = json.loads((whole / "stages" / "01-rm" / "stage.json").read_text())["left_out"]
    assert set(record) == {"its chosen side is empty", "its sides are equal"}
    events = [json.loads(line) for line in (whole / "events.jsonl").read_text().splitlines()]
    (told,) = [event for event in events if event["kind"] == "data" and event["stage"] == "01-rm"]
    assert told["left_out"] == sum(record.values()) and told["tasks"] == 64
    assert metrics(whole, "01-rm")["benchmarks"]["taste/pairs"]["left_out"] == 4


def test_no_held_out_pair_is_trained_on(whole: Path) -> None:
    def prompts(name: str) -> set[str]:
        return {row["prompt"] for row in read(whole / "stages" / "01-rm" / name)}

    assert not prompts("prompts.jsonl") & prompts("eval/taste/pairs.jsonl")


def test_a_reward_model_learns_and_its_numbers_are_those_of_its_checkpoint(whole: Path) -> None:
    stage = whole / "stages" / "01-rm"
    result = metrics(whole, "01-rm")["benchmarks"]["taste/pairs"]
    assert result["estimates"]["accuracy"]["value"] == 1.0 and result["loss"] < 0.3
    reader = RewardReader(stage / "checkpoint", 3)
    rows = list(read(stage / "eval" / "taste" / "pairs.jsonl"))
    for side in ("chosen", "rejected"):
        found = reader.scores([tokens(reader.tokenizer, row, row[side]) for row in rows])
        assert found == pytest.approx([row["score"]["metrics"][side] for row in rows], abs=1e-5)
    events = [json.loads(line) for line in (whole / "events.jsonl").read_text().splitlines()]
    steps = [event for event in events if event["kind"] == "step" and event["stage"] == "01-rm"]
    assert [step["step"] for step in steps] == list(range(8)) and steps[-1]["loss"] < steps[0]["loss"]
    assert all(0 <= step["accuracy"] <= 1 for step in steps)


def test_report_and_comparison_show_what_was_not_measured_as_such(whole: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    page = (whole / "report.html").read_text()
    assert "01-rm" in page and "taste/pairs" in page
    done = CliRunner().invoke(app, ["compare", str(whole / "stages" / "00-start"), str(whole / "stages" / "02-rl")])
    assert done.exit_code == 0 and "math/test" in done.stdout, done.output
    assert CliRunner().invoke(app, ["report", str(whole)]).exit_code == 0


def test_what_nobody_asks_any_more_is_not_started(tmp_path: Path) -> None:
    path = spec_at(
        tmp_path,
        (SPEC[SPEC.index("  - name: rl") : SPEC.index("scoring:")], ""),
        ("limit: 20,", "limit: 20, benchmarks: [taste/pairs],"),
    )
    run(load(path, ["stages.rm.steps=1", "stages.rm.save_every=0"]), tmp_path / "run", say=lambda line: None)
    assert list(metrics(tmp_path / "run", "01-rm")["benchmarks"]) == ["taste/pairs"]
    assert not (tmp_path / "log").exists()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["step"])
def test_a_run_killed_in_and_given_again_ends_with_the_same_files(place: str, whole: Path, tmp_path: Path) -> None:
    same_again(place, whole, tmp_path)


@pytest.mark.drill
@pytest.mark.parametrize("place", ["data", "checkpoint", "pairs", "resource", "policy", "after"])
def test_a_run_killed_elsewhere_ends_with_the_same_files_too(place: str, whole: Path, tmp_path: Path) -> None:
    same_again(place, whole, tmp_path)


def same_again(place: str, whole: Path, tmp_path: Path) -> None:
    spec = spec_at(tmp_path)
    assert child(place, spec, tmp_path / "run") == -9
    assert child("none", spec, tmp_path / "run") == 0
    expected, found = contents(whole), contents(tmp_path / "run")
    for files in (expected, found):  # the log of the resource is called after the test
        files["spec.yaml"] = files["spec.yaml"].replace(bytes(whole.parent), b"").replace(bytes(tmp_path), b"")
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
    told = (tmp_path / "log").read_text().split()
    assert told[-2] == "stop" and told.count("start") == (2 if place in ("resource", "policy", "after") else 1)
    assert {Path(told[1])} == {tmp_path / "run" / "stages" / "01-rm" / "checkpoint"}


def test_a_resource_of_a_damaged_checkpoint_is_not_started(whole: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "stages" / "02-rl")
    weights = folder / "stages" / "01-rm" / "checkpoint" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="01-rm/checkpoint is damaged"):
        run(load(spec_at(tmp_path)), folder, say=lambda line: None)
    assert not (tmp_path / "log").exists()


def test_a_stage_with_a_model_of_its_own_insists_on_it(whole: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(whole / "stages" / "01-rm" / "checkpoint", tmp_path / "other")
    path = spec_at(tmp_path, ("kind: reward_model,", "kind: reward_model, model: ./other,"), ("steps: 8", "steps: 2"))
    spec = load(path, ["stages.rm.save_every=0", "stages.rl.steps=1"])

    class Stop(Exception):
        pass

    def stop(line: str) -> None:
        if "02-rl: training" in line:
            raise Stop

    with pytest.raises(Stop):
        run(spec, tmp_path / "run", say=stop)
    stage = tmp_path / "run" / "stages" / "01-rm"
    assert metrics(tmp_path / "run", "01-rm")["benchmarks"]["taste/pairs"]["estimates"]["accuracy"]["value"] == 1.0
    shutil.rmtree(stage / "checkpoint")
    (stage / "metrics.json").unlink()
    (tmp_path / "other" / "config.json").write_text((tmp_path / "other" / "config.json").read_text() + " ")
    with pytest.raises(RunChanged, match="is not the one that stage 01-rm began with"):
        run(spec, tmp_path / "run", say=lambda line: None)


# What is refused before anything starts

REFUSED = [
    (
        ("stage:rm", "stage:rn"),
        "spec.yaml:9:42: resources.taste-shelf.shelf.model: no stage is called 'rn' (allowed: rm, rl)",
    ),
    (
        ('{shelf: {model: "stage:rm", log: LOG}}', "stage:rm"),
        "resources.taste-shelf: 'stage:rm' is a checkpoint, and nothing that serves it",
    ),
    (("steps: 8, batch_size: 8", "steps: 8, kl: 0.1"), "'kl' is a setting of rl stages, and this stage is of kind"),
    (("    steps: 2\n", "    steps: 2\n    model: owner/model\n"), "'model' is a setting of reward_model stages"),
    (
        ("    steps: 2\n", "    steps: 2\n    batch_size: 4\n"),
        "'batch_size' is a setting of sft and reward_model stages",
    ),
    (("steps: 8,", "steps: 8, model: ./nowhere,"), "stages.rm.model: no folder is at"),
    (
        ("steps: 8,", "steps: 8, trainer_args: {max_length: 3},"),
        "max_length cannot be set: what does not fit the model",
    ),
    (
        ("steps: 8,", "steps: 8, trainer_args: {num_labels: 3},"),
        "num_labels is no flag of the installed TRL's RewardConfig",
    ),
]


@pytest.mark.parametrize(("change", "told"), REFUSED, ids=[told[-40:] for _, told in REFUSED])
def test_a_spec_that_cannot_be_meant_is_refused_with_its_place(
    change: tuple[str, str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC.replace(*change).replace("LOG", "log"))
    with pytest.raises(SpecError) as refused:
        check(load(tmp_path / "spec.yaml"), tmp_path / "spec.yaml")
    assert told in str(refused.value), refused.value
    assert "spec.yaml:" in str(refused.value)


def test_a_domain_that_is_trained_before_its_resource_is_made_is_refused(tmp_path: Path) -> None:
    rm, rl = SPEC.index("  - {name: rm"), SPEC.index("  - name: rl")
    end = SPEC.index("scoring:")
    (tmp_path / "spec.yaml").write_text(SPEC[:rm] + SPEC[rl:end] + SPEC[rm:rl] + SPEC[end:])
    told = "domain 'taste' needs 'taste-shelf', which is made of the checkpoint of stage 'rm'; put stage 'rl' after it"
    with pytest.raises(SpecError, match=f"spec.yaml:12:14: stages.rl.domains.taste: {told}|stages.rl.domains: {told}"):
        check(load(tmp_path / "spec.yaml"), tmp_path / "spec.yaml")
    with pytest.raises(SpecError, match=told):
        run(load(tmp_path / "spec.yaml"), tmp_path / "run", say=lambda line: None)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("{spoilt: 10}", r"benchmark 'taste/pairs' has no pairs of the split 'test' whose sides differ"),
        ("{size: 0}", r"no tasks|no pairs"),
        ("{same: true, size: 20}", r"stage 'rm': domain 'taste' has no pair of the split 'train' to train on"),
    ],
)
def test_a_domain_without_pairs_is_refused_before_anything_starts(options: str, told: str, tmp_path: Path) -> None:
    path = spec_at(tmp_path, ("{spoilt: 2}", options))
    with pytest.raises(SpecError, match=told):
        run(load(path), tmp_path / "run", say=lambda line: None)
    assert not (tmp_path / "run").exists()


def test_outside_of_a_run_a_resource_of_a_stage_says_what_to_name_instead(tmp_path: Path) -> None:
    spec = load(spec_at(tmp_path))
    chosen = provision.chosen(check(spec).values(), spec.resources)
    told = r"only a run makes; name a folder instead: resources\.taste-shelf\.shelf\.model=FOLDER"
    with pytest.raises(SpecError, match=told), provision.running(chosen.values()):
        pass


def test_an_option_may_decide_that_a_domain_needs_nothing(tmp_path: Path) -> None:
    path = spec_at(tmp_path, ("{spoilt: 2}", "{alone: true}"))
    text = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("resources"))
    path.write_text(text)
    spec = load(path)
    domains: dict[str, Domain] = check(spec, path)
    assert provision.needed(domains.values()) == []
    assert {one.name: one.times for one in plan(spec, domains).benchmarks}["taste/test"] == 2
    judges = [provision.judge_of(registry().reference("taste", {"alone": alone})) for alone in (True, False)]
    assert [judge.needs for judge in judges] == [(), ("taste-shelf",)]


def test_a_plan_counts_pairs_and_how_often_each_benchmark_is_measured(tmp_path: Path) -> None:
    spec: Spec = load(spec_at(tmp_path))
    made = plan(spec, check(spec), tasks=True)
    assert {one.name: (one.of, one.tasks, one.times) for one in made.benchmarks} == {
        "taste/test": ("policy", 20, 2),
        "taste/pairs": ("reward_model", 20, 1),
        "taste/halves": ("reward_model", 8, 1),
        "math/test": ("policy", 20, 2),
    }
    assert made.evaluations == 2 and made.totals["evaluated"] == 80
    rm, rl, *_ = made.stages
    assert rl.start == rm.start and [one.after for one in made.resources] == ["01-rm"]
    assert (rm.kind, rm.tasks, rm.responses, rm.settings["batch_size"]) == ("reward_model", 64, 0, 8)
    assert "model" in rm.settings and "kl" not in rm.settings and "model" not in made.stages[1].settings


def test_without_a_reward_model_stage_no_pair_is_loaded(tmp_path: Path) -> None:
    start = SPEC.index("  - {name: rm")
    text = SPEC[:start] + SPEC[SPEC.index("  - name: rl") :]
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("resources"))
    (tmp_path / "spec.yaml").write_text(text.replace("{spoilt: 2}", "{alone: true, spoilt: 10}"))
    spec = load(tmp_path / "spec.yaml")
    made = plan(spec, check(spec), tasks=True)
    assert [one.name for one in made.benchmarks] == ["taste/test", "math/test"]
