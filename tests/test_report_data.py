"""What the browser of responses is given: every task that fits, as data that cannot leave its element."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_fixture import Shape, make_run

from cascade_core import report
from cascade_core.report import answers, browser, matrix, record, responses
from cascade_core.report.text import visible
from cascade_core.rows import read

ANY = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(
    ["</script>", "<!--<script", "]]>", "&lt;", "\u2028", "\x00", "\ud800", "</SCRIPT\n>", '"}],', "\\u003c"]
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", Shape(steps=3, tasks=40, samples=2))


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def build(run: Path) -> browser.Browser:
    whole = record.read(run)
    rows = answers.read_all(whole.stages)
    table = matrix.build(whole, rows)
    return browser.build(responses.sheets(table, rows), table.stages)


def change_rows(run: Path, **fields: Any) -> None:
    for path in run.glob("stages/*/eval/*/*.jsonl"):
        path.write_text("".join(json.dumps({**row, **fields}) + "\n" for row in read(path)))


def test_every_task_is_there_with_its_response_verdict_and_note_after_every_stage(finished: Path) -> None:
    made = build(finished)
    data = json.loads(made.data)
    assert made.shown == made.total == len(data["tasks"]) == 80 and not made.is_cut
    found = {(data["benchmarks"][task["b"]], task["id"]): task for task in data["tasks"]}
    checked = 0
    for place, stage in enumerate(record.read(finished).stages):
        for benchmark in data["benchmarks"]:
            for row in read(stage.folder.eval_file(benchmark)):
                if row["sample"]:
                    continue
                card = next(card for card in found[benchmark, row["id"]]["c"] if card["s"] == place)
                assert card.get("r", "") == row["response"]
                assert card.get("n", "") == (row["score"].get("error") or row["score"].get("note") or "")
                assert (data["verdicts"][card["v"]][0] == "right") == (row["score"]["value"] == 1)
                checked += 1
    assert checked == 4 * 80


def test_the_kinds_of_the_tasks_are_those_that_the_page_counts(finished: Path) -> None:
    whole = record.read(finished)
    rows = answers.read_all(whole.stages)
    data = json.loads(build(finished).data)
    for place, sheet in enumerate(responses.sheets(matrix.build(whole, rows), rows)):
        kinds = [data["kinds"][task["k"]] for task in data["tasks"] if task["b"] == place]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == dict(sheet.kinds)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=ANY)
def test_no_text_leaves_its_element_and_every_text_comes_back(run: Path, text: str) -> None:
    change_rows(run, response=text, prompt=[{"role": text, "content": text}], source=text)
    made = build(run)
    assert not re.search("[<>&]", made.data)
    task = json.loads(made.data)["tasks"][0]
    assert task["q"] == [[visible(text)] * 2]
    assert all(card.get("r", "") == visible(text) for card in task["c"])


def test_a_run_that_does_not_fit_is_cut_evenly_and_the_page_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "MOST_BYTES", 20_000)
    change_rows(run, response="<" * 500)
    made = build(run)
    data = json.loads(made.data)
    assert 0 < made.shown < made.total == 80 and made.is_cut
    assert len(made.data.encode()) < 20_000 + 500
    by_benchmark = [sum(task["b"] == place for task in data["tasks"]) for place in range(2)]
    assert abs(by_benchmark[0] - by_benchmark[1]) <= 1
    page = report.write(run).read_text()
    assert f"{made.shown} of 80 tasks are on this page" in page and "long texts cut to about 400 characters" in page


def test_a_large_run_adds_three_megabytes_at_most(run: Path) -> None:
    change_rows(run, response="x" * 300_000)
    made = build(run)
    assert 500_000 < len(made.data.encode()) <= browser.MOST_BYTES + 500


def test_a_task_of_a_thousand_turns_is_left_out_and_counted(run: Path) -> None:
    path = next(run.glob("stages/00-start/eval/math/test.jsonl"))
    rows = list(read(path))
    first = rows[0]["id"]
    turns = [{"role": "user", "content": "y" * 300}] * 1000
    path.write_text(
        "".join(json.dumps({**row, "prompt": turns if row["id"] == first else row["prompt"]}) + "\n" for row in rows)
    )
    made = build(run)
    assert (made.shown, made.total) == (79, 80)
    assert all(task["id"] != first for task in json.loads(made.data)["tasks"])


def test_a_page_without_rows_has_no_browser(run: Path) -> None:
    shutil.rmtree(run / "stages" / "00-start" / "eval")
    for path in run.glob("stages/*/eval/*/*.jsonl"):
        path.unlink()
    page = report.write(run).read_text()
    assert 'id="browse' not in page and 'href="#browse"' not in page
