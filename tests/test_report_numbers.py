"""What the report computes: matrix, verdicts, curves, time, chosen responses, and the terminal's table."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from report_fixture import DOMAINS, Shape, edit, make_run
from rich.console import Console

from cascade_core.estimates import paired
from cascade_core.report import answers, curves, matrix, record, responses, text, verdict
from cascade_core.report import console as terminal
from cascade_core.report.matrix import Change
from cascade_core.report.page import render
from cascade_core.rows import dump, read


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", Shape(steps=20, tasks=60))


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def build(run: Path) -> tuple[record.Record, matrix.Matrix]:
    whole = record.read(run)
    return whole, matrix.build(whole, answers.read_all(whole.stages))


def metrics(run: Path, stage: str) -> Path:
    return run / "stages" / stage / "metrics.json"


def change_result(run: Path, stage: str, benchmark: str, **fields: Any) -> None:
    path = metrics(run, stage)
    results = json.loads(path.read_text())["benchmarks"]
    results[benchmark] |= fields
    edit(path, benchmarks=results)


def set_change(run: Path, stage: str, benchmark: str, low: float, high: float) -> None:
    change_result(
        run,
        stage,
        benchmark,
        change={"difference": (low + high) / 2, "stderr": 0.01, "low": low, "high": high, "n": 60},
    )


def sentence(run: Path, stage: str) -> verdict.Verdict:
    whole, table = build(run)
    return next(one for one in verdict.verdicts(table, whole.stages) if one.stage.id == stage)


# --- the matrix ---


def test_the_distance_from_the_best_is_the_value_minus_the_largest_so_far(finished: Path) -> None:
    _, table = build(finished)
    for benchmark in table.benchmarks:
        so_far: list[float] = []
        for _, cell in table.measured(benchmark):
            so_far.append(cell.value)
            assert cell.below_best == cell.value - max(so_far)
            assert math.isclose(cell.best_value, max(so_far))


def test_the_change_since_the_baseline_is_the_paired_one_over_the_rows(finished: Path) -> None:
    _, table = build(finished)
    sft, last = (
        list(read(finished / "stages" / stage / "eval" / "if" / "test.jsonl")) for stage in ("01-sft", "03-math")
    )
    expected, found = paired(sft, last), table.cells["if/test", "03-math"].since
    assert expected is not None and found is not None
    assert (found.difference, found.low, found.high, found.n) == pytest.approx(
        (expected.difference, expected.low, expected.high, expected.n)
    )


def test_without_an_sft_stage_the_baseline_is_the_starting_model(run: Path) -> None:
    lock = json.loads((run / "lock.json").read_text())
    lock["spec"]["stages"][0]["kind"] = "rl"
    (run / "lock.json").write_text(json.dumps(lock))
    _, table = build(run)
    assert table.baseline is not None and table.baseline.id == "00-start"


def test_a_stage_without_metrics_gets_its_change_from_the_rows(run: Path) -> None:
    recorded = json.loads(metrics(run, "03-math").read_text())["benchmarks"]["math/test"]
    metrics(run, "03-math").unlink()
    cell = build(run)[1].cells["math/test", "03-math"]
    assert cell.change is not None
    assert cell.change.low == pytest.approx(recorded["change"]["low"]) and cell.counts.total == recorded["total"]


@pytest.mark.parametrize(
    ("low", "high", "way", "mark"),
    [(0.01, 0.2, 1, "▲"), (-0.2, -0.01, -1, "▼"), (-0.01, 0.2, 0, "≈"), (0.0, 0.2, 0, "≈")],
)
def test_a_change_is_marked_only_where_its_interval_leaves_out_zero(
    low: float, high: float, way: int, mark: str
) -> None:
    change = Change((low + high) / 2, low, high, 10)
    assert (change.direction, change.mark) == (way, mark)


@pytest.mark.parametrize(
    ("low", "high", "look"),
    [(0.3, 0.4, "rise4"), (0.001, 0.01, "rise1"), (-0.06, -0.03, "fall2"), (-0.3, 0.3, "still")],
)
def test_a_cell_is_tinted_by_a_change_that_is_told_apart_from_none(
    run: Path, low: float, high: float, look: str
) -> None:
    set_change(run, "02-if", "math/test", low, high)
    page = render(record.read(run))
    row = page[page.index("math/test<small>") :]
    assert re.findall(r'<td class="(\w+)', row)[2] == look


# --- the verdicts ---


def test_a_stage_that_raised_its_own_benchmark_is_said_to_with_size_and_values(run: Path) -> None:
    set_change(run, "02-if", "if/test", 0.09, 0.15)
    set_change(run, "02-if", "math/test", -0.05, 0.01)
    change_result(run, "01-sft", "if/test", estimates={"avg@4": {"value": 0.33, "stderr": 0.01, "n": 60}})
    change_result(run, "02-if", "if/test", estimates={"avg@4": {"value": 0.45, "stderr": 0.01, "n": 60}})
    said = sentence(run, "02-if")
    assert (
        said.sentence == "raised if/test by +0.120 ±0.030 (0.330 → 0.450); math/test did not move beyond its interval"
    )
    assert said.direction == 1


def test_a_loss_elsewhere_is_told_in_the_sentence(run: Path) -> None:
    set_change(run, "02-if", "math/test", -0.08, -0.02)
    assert sentence(run, "02-if").sentence.endswith("; elsewhere math/test −0.050 ±0.030")


def test_a_change_inside_its_interval_is_not_called_a_gain(run: Path) -> None:
    set_change(run, "02-if", "if/test", -0.02, 0.06)
    said = sentence(run, "02-if")
    assert said.sentence.startswith("did not move if/test beyond the noise: +0.020 ±0.040") and said.mark == "≈"


def test_a_control_is_called_a_control(run: Path) -> None:
    lock = json.loads((run / "lock.json").read_text())
    lock["spec"]["stages"][1]["control"] = "permuted-rewards"
    (run / "lock.json").write_text(json.dumps(lock))
    assert sentence(run, "02-if").sentence.startswith("as a control, with permuted rewards, ")


def test_many_benchmarks_are_counted_and_the_extremes_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Shape(rl_stages=("if",), steps=2, tasks=5, samples=2, benchmarks_per_domain=5))
    for place, name in enumerate(["test", "hard-1", "hard-2", "hard-3", "hard-4"]):
        set_change(run, "02-if", f"if/{name}", 0.1 * place - 0.1, 0.1 * place)
    said = sentence(run, "02-if").sentence
    assert said == "raised 3 of its 5 own benchmarks, from if/test −0.050 ±0.050 to if/hard-4 +0.350 ±0.050"


# --- curves and time ---


def test_a_field_that_no_event_has_gets_no_curve_and_an_unknown_one_does(run: Path) -> None:
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    for event in events:
        event.pop("entropy", None)
        if event["kind"] == "step":
            event["code_switch_rate"] = 0.25
    (run / "events.jsonl").write_text("".join(dump(event) + "\n" for event in events))
    titles = [chart.title for chart in curves.training(record.read(run).stages[2]).charts]
    assert "entropy" not in titles and "divergence from the start (KL)" not in titles
    assert titles[-1] == "code switch rate"


def test_values_are_drawn_by_domain_where_a_stage_has_several(run: Path) -> None:
    with (run / "events.jsonl").open("a") as log:
        for step in range(30, 33):
            log.write(
                dump({"kind": "step", "stage": "02-if", "step": step, "value/if": 0.5, "value/math": 0.25}) + "\n"
            )
    chart = next(c for c in curves.training(record.read(run).stages[2]).charts if c.title == "value by domain")
    assert [(series.name, series.head) for series in chart.series] == [("if", "0.500"), ("math", "0.250")]


def test_counts_of_training_are_sums_over_the_steps_and_no_step_counts_twice(run: Path) -> None:
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    again = [line for line in lines if '"02-if"' in line and '"step": 7,' in line and '"kind": "step"' in line]
    (run / "events.jsonl").write_text("".join(lines + again))
    training = curves.training(record.read(run).stages[2])
    assert (training.steps, training.counts.total, training.counts.failed) == (20, 20 * 256, 1)


def test_the_parts_of_the_time_of_a_stage_add_up_to_what_the_metrics_say(finished: Path) -> None:
    for one in curves.spent(record.read(finished)):
        seconds = one.stage.metrics["seconds"]
        assert one.total == pytest.approx(sum(seconds.values()), rel=1e-6)


def test_time_that_the_metrics_of_a_resumed_stage_forgot_is_counted_from_its_steps(run: Path) -> None:
    edit(metrics(run, "02-if"), seconds={"data_seconds": 0.0, "train_seconds": 0.1, "eval_seconds": 0.0})
    one = next(one for one in curves.spent(record.read(run)) if one.stage.id == "02-if")
    steps = one.stage.steps_seen()
    assert one.total == pytest.approx(sum(step[field] for step in steps for field in curves.PHASES.values()))


# --- responses ---


def test_losses_are_shown_as_well_as_gains_and_each_task_once(finished: Path) -> None:
    whole, table = build(finished)
    for sheet in responses.sheets(table, answers.read_all(whole.stages)):
        kinds = Counter(example.kind for example in sheet.examples)
        assert kinds["gained"] >= 1 and kinds["lost"] >= 1
        assert len({example.task for example in sheet.examples}) == len(sheet.examples) == responses.TASKS
        assert sum(sheet.kinds.values()) == 60


def test_a_card_shows_the_first_sample_with_its_own_verdict_and_note(finished: Path) -> None:
    whole, table = build(finished)
    for sheet in responses.sheets(table, answers.read_all(whole.stages)):
        for example in sheet.examples:
            for card in example.cards:
                row = next(
                    row
                    for row in read(card.stage.folder.eval_file(sheet.benchmark))
                    if row["id"] == example.task and row["sample"] == 0
                )
                assert card.text.head == row["response"]
                assert card.note == (row["score"].get("error") or row["score"].get("note") or "")
                wrong = "limit" if card.note.startswith("limit") else "wrong"
                assert card.verdict == (
                    "not judged" if "error" in row["score"] else "right" if row["score"]["value"] else wrong
                )


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0, 0, 1], "gained"), ([1, 0, 0], "lost"), ([0, 1, 0], "changed between"), ([0, None, 1], "not judged"), ([1, 1, 1], "unchanged, right"),
     ([0.5, 0.5, 0.5], "unchanged, not right"), ([1], "right"), ([0.2], "not right")],
)  # fmt: skip
def test_a_task_is_of_the_kind_that_its_first_sample_says(
    tmp_path: Path, values: list[float | None], kind: str
) -> None:
    files = []
    for place, value in enumerate(values):
        path = tmp_path / f"{place}.jsonl"
        score = {"value": 0.0, "error": "lost"} if value is None else {"value": value}
        path.write_text(
            "".join(
                dump({"id": "t", "sample": s, "response": "", "score": score if s == 0 else {"value": 0.7}}) + "\n"
                for s in (1, 0)
            )
        )
        files.append(answers.read(path, 10_000))
    assert responses._kind("t", files) == kind


def test_rows_are_read_up_to_the_limit_and_never_in_halves(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    line = dump({"id": "t", "sample": 0, "response": "x", "score": {"value": 1.0}}) + "\n"
    path.write_text(line * 10)
    for limit in range(1, len(line) * 10 + 2):
        found = answers.read(path, limit)
        assert len(found.tasks.get("t", ())) == min(10, limit // len(line)) and found.damaged == 0
        assert found.is_whole == (limit >= len(line) * 10)


# --- the terminal ---


def shown(run: Path, width: int = 80) -> str:
    console = Console(width=width, record=True, force_terminal=False, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(terminal.matrix(run))
        return console.export_text()


def test_the_terminal_shows_values_changes_marks_and_counts_in_eighty_columns(finished: Path) -> None:
    told = shown(finished)
    assert max(map(len, told.splitlines())) <= 80 and "…" not in told
    _, table = build(finished)
    for cell in table.cells.values():
        assert f"{cell.value:.3f} ±{cell.stderr:.3f}" in told
        assert f"{cell.counts.scored}/{cell.counts.limit}/{cell.counts.failed}" in told
        if cell.change:
            assert (
                f"{cell.change.mark} {text.signed(cell.change.difference)} [{text.signed(cell.change.low)}, {text.signed(cell.change.high)}]"
                in told
            )


def test_a_wide_matrix_is_a_list_that_fits_the_terminal(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", Shape(rl_stages=DOMAINS, steps=2, tasks=6, samples=2))
    told = shown(run)
    assert max(map(len, told.splitlines())) <= 80 and "…" not in told
    assert told.count("05-swe") == len(DOMAINS)


def test_the_terminal_takes_a_name_for_a_name_and_not_for_markup(run: Path) -> None:
    lock = json.loads((run / "lock.json").read_text())
    lock["spec"]["name"] = "[red]x[/red] \x1b[31m"
    (run / "lock.json").write_text(json.dumps(lock))
    told = shown(run)
    assert "[red]x[/red]" in told and "\x1b" not in told


def test_the_terminal_shows_a_run_of_which_nothing_was_measured(run: Path) -> None:
    shutil.rmtree(run / "stages")
    (run / "events.jsonl").unlink()
    assert "nothing is measured yet" in shown(run)
