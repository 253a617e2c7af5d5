"""The plan: what a run would do, counted; nothing done, and tasks loaded only when asked."""

import json
import re
from pathlib import Path

import pytest
from strangers import publish
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.errors import PluginBroken, SpecError
from cascade_core.plan import MOST_COUNTED, Plan, plan
from cascade_core.plugins import Registry
from cascade_core.spec import check, load

__all__ = ["publish"]

TOY = """
    from dataclasses import dataclass
    from itertools import count
    from cascade_core import Benchmark, Domain, Score, Task, hookimpl
    from cascade_core.trainers import Trainer

    @dataclass
    class Toy(Domain):
        name = "toy"
        size: int = 3
        log: str = ""
        taught: bool = True
        def tasks(self, split, seed):
            if self.log:
                with open(self.log, "a") as log: log.write(split + "\\n")
            if self.size == -2: return ()
            if self.size < 0: raise OSError("no such file: tasks.jsonl")
            if self.size == 0 and split == "test": return (Task("only", "a test"),)
            numbers = range(self.size) if self.size < 10**6 else count()
            return (Task(f"{split}-{n}", f"{split} question {n}, seed {seed}") for n in numbers)
        def score(self, task, response): return Score(1.0)
        def reference(self, task): return "yes" if self.taught else None
        def benchmarks(self):
            return (
                Benchmark("test", samples=4, sampling={"temperature": 0.6}),
                Benchmark("short", limit=2, mode="think"),
                Benchmark("reward", of="reward_model"),
            )

    class Other(Toy):
        name = "other"

    class Plain(Trainer):
        name = "plain"
        kinds = ("sft", "rl")
        def settings(self, stage): return {"learning_rate": stage.optim.lr, "steps": stage.steps}
        def train(self, job): raise AssertionError("a plan trains nothing")

    @hookimpl
    def cascade_domains(): return [Toy, Other]

    @hookimpl
    def cascade_trainers(): return [Plain]
"""

SPEC = """
name: small
seed: 7
trainer: plain
model: owner/model
domains: {toy: {size: 5}, other: }
stages:
  - {name: sft, kind: sft, domains: [toy, other], steps: 10, batch_size: 6}
  - {name: rl, domains: toy, steps: 3, seed: 9, rollout: {prompts_per_step: 4, samples_per_prompt: 2}}
"""


@pytest.fixture
def make(publish, tmp_path: Path):
    publish("cascade-plugin-toy", TOY, version="1.2")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)

    def made(*settings: str, tasks: bool = False) -> Plan:
        found = Registry()
        spec = load(path, settings)
        return plan(spec, check(spec, path, settings, found), found, tasks=tasks)

    return made


def test_stages_say_what_is_drawn_and_sampled(make) -> None:
    sft, rl = make().stages
    assert (sft.folder, sft.tasks, sft.responses, sft.seed) == ("01-sft", 60, 0, 7)
    assert (rl.folder, rl.tasks, rl.responses, rl.seed) == ("02-rl", 12, 24, 9)
    assert make().totals == {"steps": 13, "tasks": 72, "responses": 24, "evaluated": None}


def test_stages_say_what_they_start_from(make) -> None:
    assert [stage.start for stage in make().stages] == ["owner/model", "01-sft"]


def test_a_plan_for_people_says_when_what_is_made_of_a_checkpoint_comes_and_how_often_each_benchmark() -> None:
    spec = Path(__file__).parents[1] / "examples" / "rlhf.yaml"
    out = CliRunner().invoke(app, ["plan", str(spec)], env={"COLUMNS": "160"}).stdout
    other = CliRunner().invoke(app, ["plan", str(spec), "--set", "stages.rm.model=org/base"]).stdout
    assert "Settings of 02-rm, which starts from org/base" in other
    (resource,) = (line.split() for line in out.splitlines() if line.startswith(" reward_model "))
    assert resource[-2:] == ["after", "02-rm"]
    starts = dict(re.findall(r"Settings of (\S+), which starts from (\S+)", out))
    assert starts == {"01-sft": "model.init", "02-rm": "01-sft", "03-sft-2": "01-sft", "04-rlhf": "03-sft-2"}
    measured = {line.split()[0]: line for line in out.splitlines() if line.startswith((" rlhf/test", " rlhf/pairs"))}
    assert measured["rlhf/test"].rstrip().endswith("3 times") and measured["rlhf/pairs"].rstrip().endswith("once")
    assert "4 times" not in out


def test_stages_show_the_flags_that_their_trainer_gets(make) -> None:
    assert dict(make("stages.rl.optim.lr=1e-3").stages[1].flags) == {"learning_rate": 1e-3, "steps": 3}


def test_stages_show_the_settings_that_no_flag_tells(make) -> None:
    sft, rl = make("stages.rl.overlong=mask", "stages.rl.advantage.std=population").stages
    assert (rl.settings["overlong"], rl.settings["loss"], rl.settings["control"]) == ("mask", "token", "none")
    assert rl.settings["advantage"] == {"std": "population", "epsilon": 1e-4, "shaping": "none"}
    assert sft.settings["batch_size"] == 6 and not {"overlong", "rollout"} & set(sft.settings)
    assert "batch_size" not in rl.settings


def test_domains_are_shown_with_their_distribution_and_options(make) -> None:
    toy, other = make().domains
    assert (toy.distribution, toy.version, dict(toy.options)) == ("cascade-plugin-toy", "1.2", {"size": 5})
    assert (other.name, dict(other.options)) == ("other", {})


def test_benchmarks_take_from_the_spec_what_they_do_not_say_themselves(make) -> None:
    test, short, *_ = make("evaluation.sampling.temperature=0.9", "evaluation.sampling.top_p=0.5").benchmarks
    assert (test.sampling["temperature"], test.sampling["top_p"], test.samples) == (0.6, 0.5, 4)
    assert (short.sampling["temperature"], short.tasks, short.mode) == (0.9, 2, "think")


def test_a_benchmark_of_a_reward_model_is_not_measured_of_the_policy(make) -> None:
    assert [one.name for one in make().benchmarks] == ["toy/test", "toy/short", "other/test", "other/short"]


def test_only_the_benchmarks_that_the_spec_names_are_measured(make) -> None:
    assert [one.name for one in make("evaluation.benchmarks=[toy/short]").benchmarks] == ["toy/short"]


def test_counted_tasks_give_the_number_of_evaluated_responses(make) -> None:
    made = make(tasks=True)
    assert [one.tasks for one in made.benchmarks] == [5, 2, 3, 2]
    assert made.totals["evaluated"] == 3 * (5 * 4 + 2 + 3 * 4 + 2)
    assert make("evaluation.limit=3", "evaluation.samples=1").totals["evaluated"] == 3 * (3 + 2 + 3 + 2)


def test_the_first_prompt_is_shown_only_when_tasks_are_asked_for(make) -> None:
    assert make().domains[0].example is None
    assert make(tasks=True).domains[0].example == "train question 0, seed 7"


def test_without_being_asked_no_task_is_loaded(make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    make(f"domains.toy.log={log}")
    assert not log.exists()
    make(f"domains.toy.log={log}", tasks=True)
    assert log.read_text().splitlines() == ["train", "test", "test", "train", "train"]


def test_an_endless_benchmark_is_counted_up_to_a_bound(make) -> None:
    assert make("domains.toy.size=1000000", tasks=True).benchmarks[0].tasks == MOST_COUNTED


def test_a_domain_without_tasks_to_train_on_is_refused(make) -> None:
    with pytest.raises(SpecError, match=r"domain 'toy' has no demonstration of the split 'train' to train on"):
        make("domains.toy.size=0", tasks=True)


def test_a_domain_without_demonstrations_is_refused_for_a_supervised_stage(make) -> None:
    with pytest.raises(SpecError, match=r"stage 'sft': domain 'other' has no demonstration"):
        make("domains.other={taught: false}", tasks=True)


def test_a_benchmark_without_tasks_is_refused(make) -> None:
    with pytest.raises(SpecError, match=r"benchmark 'toy/test' has no tasks"):
        make("domains.toy.size=-2", tasks=True)


def test_tasks_that_cannot_be_loaded_are_a_clear_error(make) -> None:
    with pytest.raises(
        PluginBroken, match=r"domain 'toy' cannot load the tasks of its split 'train': OSError: no such"
    ):
        make("domains.toy.size=-1", tasks=True)


def test_files_and_folders_that_are_not_here_are_lacking(make, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "small").mkdir(parents=True)
    (tmp_path / "here.jsonl").touch()
    assert make("model=models/small", "domains.math={data: here.jsonl}").lacking == ()
    assert make("model=models/smal", "domains.math={data: [here.jsonl, gone.jsonl], eval_data: owner/set}").lacking == (
        "model.path: no folder is at 'models/smal', did you mean 'small'; it is taken as a name on the hub",
        "domains.math.data: no file is at 'gone.jsonl'",
    )


def test_a_plan_is_json(make) -> None:
    found = json.loads(json.dumps(make(tasks=True).json()))
    assert found["totals"]["tasks"] == 72 and found["stages"][0]["domains"] == {"toy": 1.0, "other": 1.0}
