"""Events become steps of one count, flat names and numbers; what an option may be is checked without wandb."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cascade_plugin_wandb.timeline import EVALUATION, Timeline, evaluation_row, numbers
from cascade_plugin_wandb.tracker import WandbTracker
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import RunInfo
from cascade_core.errors import SpecError
from cascade_core.options import check_options

EVAL = {
    "kind": "eval",
    "stage": "01-a",
    "time": 9.0,
    "benchmark": "math/test",
    "metric": "avg@2",
    "value": 0.5,
    "stderr": 0.1,
}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_steps_of_all_stages_are_one_count_without_a_gap(lengths: list[int]) -> None:
    line = Timeline({f"s{number}": length for number, length in enumerate(lengths)})
    steps = [
        line.step({"kind": "step", "stage": f"{index:02d}-s{index - 1}", "step": step})
        for index, length in enumerate(lengths, 1)
        for step in range(length)
    ]
    assert steps == list(range(1, sum(lengths) + 1))
    ends = [line.step({"kind": "eval", "stage": f"{i:02d}-s{i - 1}"}) for i in range(1, len(lengths) + 1)]
    assert ends == [sum(lengths[: i + 1]) for i in range(len(lengths))]
    assert line.step({"kind": "eval", "stage": "00-start"}) == 0


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "run_start", "stage": ""},
        {"kind": "data", "stage": "01-a"},
        {"kind": "step", "stage": "07-b", "step": 1},
        {},
    ],
)
def test_an_event_that_is_no_curve_has_no_step(event: dict[str, Any]) -> None:
    assert Timeline({"a": 3}).step(event) is None


def test_numbers_are_named_by_stage_and_nothing_else_is_a_curve() -> None:
    step = {"kind": "step", "stage": "01-a", "step": 2, "time": 1.0, "reward": 0.5, "note": "x", "flag": True, "n": 3}
    assert numbers(step) == {"01-a/reward": 0.5, "01-a/n": 3}
    assert numbers(EVAL) == {"eval/math/test/avg@2": 0.5, "eval/math/test/avg@2 stderr": 0.1}


def test_a_row_of_the_table_has_a_cell_for_every_column() -> None:
    assert evaluation_row({**EVAL, "scored": 3}) == ["01-a", "math/test", "avg@2", 0.5, 0.1, 3, None, None, None]
    assert len(EVALUATION) == 9


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "of"}, "option 'mode' must be 'online' or 'offline', found text 'of'"),
        ({"api_key": "hunter2"}, "option 'api_key' must be {env: NAME} or {file: PATH}"),
        ({"tags": "a"}, "option 'tags' must be a list"),
        ({"projekt": "a"}, "unknown option 'projekt', did you mean 'project'"),
    ],
)
def test_options_are_refused_and_no_secret_is_repeated(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as error:
        check_options(WandbTracker, options, "tracker")
    assert told in str(error.value) and "hunter2" not in str(error.value)


@pytest.mark.parametrize("project", ["", "a/b", "a?b", "x" * 129])
def test_a_project_that_wandb_would_refuse_is_refused(project: str) -> None:
    with pytest.raises(ValueError, match="project must be 1 to 128 characters"):
        WandbTracker(project)


class Run:
    """A run that W&B has already up to step 3."""

    step = 3

    def __init__(self) -> None:
        self.logged: list[tuple[int | None, dict[str, Any]]] = []
        self.summary: dict[str, Any] = {}
        self.code: int | None = None

    def log(self, numbers: dict[str, Any], step: int | None = None) -> None:
        self.logged.append((step, numbers))

    def finish(self, exit_code: int) -> None:
        self.code = exit_code


def test_what_wandb_has_of_a_run_that_is_gone_on_with_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, wandb = Run(), ModuleType("wandb")
    vars(wandb).update(init=lambda **_: run, Settings=dict, Table=dict)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    tracker = WandbTracker()
    tracker.start(RunInfo("00ff", "small", tmp_path, {"a": 4}, {}))
    steps = [{"kind": "step", "stage": "01-a", "step": step, "time": 1.0, "loss": step} for step in range(4)]
    tracker.events([{**EVAL, "stage": "00-start", "value": 0.1}, *steps])
    tracker.events([EVAL])
    tracker.finish("failed")
    *curves, (_, table) = run.logged
    assert [(step, numbers.get("01-a/loss")) for step, numbers in curves] == [(3, 2), (4, 3), (4, None)]
    assert [row[0] for row in table["evaluation"]["data"]] == ["00-start", "01-a"]
    assert run.summary == {"final/00-start/math/test": 0.1, "final/01-a/math/test": 0.5, "status": "failed"}
    assert run.code == 1


def test_the_top_module_loads_no_wandb_and_no_pydantic() -> None:
    code = "import sys, cascade_plugin_wandb; print(sorted({'wandb', 'pydantic', 'requests'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr
