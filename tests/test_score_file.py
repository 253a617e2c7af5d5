"""`cascade score` as a function: what is written, what is summed up, and what an interruption or a change does."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from faulty import EXTENSION, faulty_scorer, importable, ref

from cascade_core.errors import PluginNotFound, RowError, RunChanged, RunLocked, SpecError, UsageError
from cascade_core.rows import dump, read
from cascade_core.score_file import output_of, references, score_file


@pytest.fixture(scope="module", autouse=True)
def installed():
    with importable():
        yield


@pytest.fixture(scope="module")
def scorer(installed):
    with faulty_scorer() as shared:
        yield shared


def row(task, response, **more):
    return {"domain": "faulty", "id": task, "prompt": "p", "source": "s", "response": response, **more}


ROWS = [row("a", "right", sample=0), row("a", "wrong", sample=1), row("b", "task"), row("c", "right", extra=[1, {}])]


@pytest.fixture
def paths(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(dump(row) + "\n" for row in ROWS))
    return path, tmp_path / "out.jsonl"


def test_every_row_is_written_as_it_was_with_its_score(scorer, paths):
    score_file(*paths, scorer)
    written = list(read(paths[1]))
    assert [{k: v for k, v in row.items() if k != "score"} for row in written] == ROWS
    assert [row["score"].get("error", row["score"]["value"]) for row in written] == [
        1.0,
        0.0,
        "label '?' does not parse",
        1.0,
    ]


def test_the_summary_counts_per_domain_and_source_and_averages_over_tasks(scorer, paths):
    (cell,) = score_file(*paths, scorer).cells
    assert (cell.domain, cell.source) == ("faulty", "s")
    assert (cell.tasks, cell.scored, cell.limit, cell.failed, cell.total) == (3, 3, 0, 1, 4)
    assert cell.value == pytest.approx((0.5 + 1.0) / 2)
    assert cell.stderr == pytest.approx(0.25)


def test_sources_and_domains_are_kept_apart(scorer, paths):
    path, out = paths
    rows = [row("a", "right", source="x"), row("a", "wrong", source="y"), row("a", "right", domain="grouped")]
    path.write_text("".join(dump(row) + "\n" for row in rows))
    cells = score_file(path, out, scorer).cells
    assert [(cell.domain, cell.source, cell.value) for cell in cells] == [
        ("faulty", "x", 1.0),
        ("faulty", "y", 0.0),
        ("grouped", "s", 1.0),
    ]


def test_the_table_and_the_json_say_the_same(scorer, paths):
    from rich.console import Console

    summary = score_file(*paths, scorer)
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(summary.table())
    console.file.close()
    text = console.export_text()
    assert "0.750 ± 0.250" in text
    assert [cell["value"] for cell in summary.json()["cells"]] == [0.75]
    assert summary.json()["errors"] == [{"error": "label '?' does not parse", "count": 1, "task": "b"}]
    json.dumps(summary.json())


def test_text_of_others_is_no_markup_in_the_table(scorer, paths):
    from rich.console import Console

    path, out = paths
    path.write_text(dump(row("a", "right", source="[red]x[/red] [/]")) + "\n")
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(score_file(path, out, scorer).table())
    console.file.close()
    assert "[red]x[/red] [/]" in console.export_text()


@pytest.mark.parametrize(("rate", "status"), [(0.0, 1), (0.2, 1), (0.25, 0), (1.0, 0)])
def test_the_status_is_1_above_the_allowed_error_rate(scorer, paths, rate, status):
    assert score_file(*paths, scorer).status(rate) == status


def test_a_failing_domain_is_not_hidden_by_a_healthy_one(scorer, paths):
    path, out = paths
    rows = [row(str(i), "right") for i in range(50)] + [row("x", "task", domain="grouped")]
    path.write_text("".join(dump(row) + "\n" for row in rows))
    assert score_file(path, out, scorer).status(0.1) == 1


@pytest.mark.parametrize("rows", [[], [row("a", "task")]])
def test_no_verdict_at_all_is_never_a_success(scorer, paths, rows):
    path, out = paths
    path.write_text("".join(dump(row) + "\n" for row in rows))
    summary = score_file(path, out, scorer)
    assert summary.status(1.0) == 1
    assert all(cell.value is None for cell in summary.cells)
    assert summary.table().row_count == len(rows)


def test_a_finished_output_is_summed_up_and_nothing_is_judged_again(paths, tmp_path):
    with faulty_scorer(log=tmp_path / "log") as scorer:
        first = score_file(*paths, scorer)
        before, judged = paths[1].read_bytes(), (tmp_path / "log").read_text().count("score")
        assert score_file(*paths, scorer) == first
        assert paths[1].read_bytes() == before
        assert (tmp_path / "log").read_text().count("score") == judged


@pytest.mark.parametrize("cut", [1, 30, 0.5])
def test_it_goes_on_behind_the_last_whole_line(scorer, paths, cut):
    path, out = paths
    summary = score_file(path, out, scorer)
    whole = out.read_bytes()
    out.write_bytes(whole[: -cut if isinstance(cut, int) else int(len(whole) * cut)])
    assert score_file(path, out, scorer) == summary
    assert out.read_bytes() == whole


def test_rows_that_were_added_are_judged_too(scorer, paths):
    path, out = paths
    score_file(path, out, scorer)
    with path.open("a") as more:
        more.write(dump(row("d", "right")) + "\n")
    assert score_file(path, out, scorer).cells[0].total == 5
    assert len(list(read(out))) == 5


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ([row("a", "right", sample=0), row("a", "other", sample=1)], ":2 was scored and the row has changed"),
        ([row("a", "right", sample=0, new=1)], ":1 was scored and the row has changed"),
        (ROWS[:2], ":3 was scored and there is no such row any more"),
        ([], ":1 was scored and there is no such row any more"),
    ],
)
def test_an_input_that_changed_is_refused_and_the_output_kept(scorer, paths, changed, found):
    path, out = paths
    score_file(path, out, scorer)
    before = out.read_bytes()
    path.write_text("".join(dump(row) + "\n" for row in changed))
    with pytest.raises(RunChanged) as error:
        score_file(path, out, scorer)
    assert found in str(error.value)
    assert out.read_bytes() == before


def test_other_options_or_limits_of_the_domain_are_refused(scorer, paths, tmp_path):
    score_file(*paths, scorer)
    changed = {"faulty": ref(log=str(tmp_path / "x"))}
    with faulty_scorer(domains=changed) as other, pytest.raises(RunChanged, match="domain 'faulty' at options"):
        score_file(*paths, other)
    with faulty_scorer(cpu_seconds=3.0) as other, pytest.raises(RunChanged, match="cpu_seconds 10.0, now 3.0"):
        score_file(*paths, other)


def test_another_version_or_source_of_the_domain_is_refused(scorer, paths):
    score_file(*paths, scorer)
    sidecar = paths[1].with_name("out.jsonl.lock.json")
    pins = json.loads(sidecar.read_text())
    for key, value, found in (("version", "0.0.9", "version '0.0.9', now '0.1.0'"), ("source", "0", "state of its")):
        changed = json.loads(json.dumps(pins))
        changed["domains"]["faulty"][key] = value
        sidecar.write_text(json.dumps(changed))
        with pytest.raises(RunChanged, match=found):
            score_file(*paths, scorer)


def test_a_change_of_a_domain_that_has_no_rows_yet_does_not_matter(scorer, paths):
    score_file(*paths, scorer)
    with faulty_scorer(domains={"grouped": ref("grouped", fault="nan")}) as other:
        assert score_file(*paths, other).cells[0].total == 4


@pytest.mark.parametrize("damage", ["{", "[]", "{}", None])
def test_a_damaged_sidecar_is_refused(scorer, paths, damage):
    score_file(*paths, scorer)
    sidecar = paths[1].with_name("out.jsonl.lock.json")
    sidecar.unlink() if damage is None else sidecar.write_text(damage)
    with pytest.raises(RunChanged, match="out.jsonl"):
        score_file(*paths, scorer)


def test_a_file_that_is_not_ours_is_never_overwritten(scorer, paths):
    paths[1].write_text("important\n")
    with pytest.raises(RunChanged, match="not written by cascade score"):
        score_file(*paths, scorer)
    assert paths[1].read_text() == "important\n"


def test_the_input_is_never_the_output(scorer, paths):
    with pytest.raises(UsageError, match="overwritten with itself"):
        score_file(paths[0], paths[0], scorer)
    assert list(read(paths[0])) == ROWS


def test_two_commands_do_not_write_one_file(scorer, paths):
    import fcntl

    with paths[1].open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RunLocked, match="another process is writing"):
            score_file(*paths, scorer)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"{broken\n", "rows.jsonl:5: not a JSON object"),
        (b"[1]\n", "rows.jsonl:5: not a JSON object, found list"),
        (b'{"domain": "faulty", "id": "x", "answer": NaN}\n', "row 5 holds NaN or infinity"),
        (b'{"id": "\xff"}\n', "not UTF-8"),
    ],
)
def test_a_broken_line_is_named_after_what_came_before_was_written(scorer, paths, line, found):
    path, out = paths
    good = path.read_bytes()
    path.write_bytes(good + line + good)
    with pytest.raises(RowError) as error:
        score_file(path, out, scorer)
    assert found in str(error.value)
    if b"\xff" not in line:  # a decoder reads ahead
        assert len(list(read(out))) == 4
    path.write_bytes(good)
    assert score_file(path, out, scorer).cells[0].total == 4


def test_rows_without_a_domain_take_the_one_that_is_given(scorer, paths):
    path, out = paths
    path.write_text('{"id": "a", "prompt": "p", "response": "right"}\n\n' + dump(row("b", "wrong")) + "\n")
    score_file(path, out, scorer, domain="grouped")
    assert [row["domain"] for row in read(out)] == ["grouped", "faulty"]
    assert score_file(path, out, scorer, domain="grouped").cells[1].value == 1.0


def test_rows_of_an_unknown_domain_are_failures_of_their_own(scorer, paths):
    path, out = paths
    path.write_text(dump(row("a", "right", domain="nowhere")) + "\n" + dump(row("b", "right")) + "\n")
    summary = score_file(path, out, scorer)
    assert [(cell.domain, cell.failed) for cell in summary.cells] == [("faulty", 0), ("nowhere", 1)]
    assert "no domain 'nowhere'" in summary.errors[0].error


def test_rows_that_were_scored_before_get_a_new_score(scorer, paths):
    path, out = paths
    path.write_text(dump(row("a", "wrong", score={"value": 1.0})) + "\n")
    assert score_file(path, out, scorer).cells[0].value == 0.0
    assert score_file(path, out, scorer).cells[0].value == 0.0


def test_hostile_text_survives(scorer, paths):
    path, out = paths
    hostile = row("a", "right \ud800 \u2028 \x00 \r\n", answer={"deep": [None, True, 1e-7, "\ud83d"]})
    path.write_text(dump(hostile) + "\n")
    score_file(path, out, scorer)
    (written,) = read(out)
    assert written.pop("score")["value"] == 1.0
    assert written == hostile


def test_progress_tells_of_every_row_also_those_of_an_earlier_command(scorer, paths):
    for _ in range(2):
        seen = []
        score_file(*paths, scorer, progress=seen.append)
        assert sum(seen) == 4


def test_a_killed_command_goes_on_to_the_same_file(tmp_path):
    path, out, script = tmp_path / "rows.jsonl", tmp_path / "out.jsonl", tmp_path / "script.py"
    late, may = f"until {tmp_path / 'may-end'}", tmp_path / "may-end"
    responses = [("right" if i < 100 else late) if i % 2 else "wrong" for i in range(120)]
    path.write_text("".join(dump(row(str(i), response)) + "\n" for i, response in enumerate(responses)))
    script.write_text(
        textwrap.dedent(
            f"""
            from pathlib import Path
            from cascade_core.score_file import references, score_file
            from cascade_core.scoring import Scorer
            from cascade_core.settings import Scoring
            with Scorer(references(), Scoring(workers=1)) as scorer:
                summary = score_file(Path({str(path)!r}), Path({str(out)!r}), scorer)
            assert summary.cells[0].total == 120
            """
        )
    )
    command, environment = [sys.executable, script], {**os.environ, "PYTHONPATH": str(EXTENSION)}
    killed = subprocess.Popen(command, env=environment)
    end = time.monotonic() + 60
    while not (out.exists() and out.read_bytes().count(b"\n") > 20):
        assert time.monotonic() < end
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = out.read_bytes()
    assert before.count(b"\n") < 120
    may.touch()
    assert subprocess.run(command, env=environment, timeout=60).returncode == 0
    whole = before[: before.rindex(b"\n") + 1]
    assert out.read_bytes().startswith(whole)
    assert [row["score"]["value"] for row in read(out)] == [float(i % 2) for i in range(120)]


def test_all_installed_domains_are_offered_and_one_with_options():
    found = references("faulty", {"log": "x"})
    assert {"math", "if", "faulty", "grouped"} <= set(found)
    assert found["faulty"].options == {"log": "x"}
    assert found["grouped"].options == {}


def test_options_and_domains_that_do_not_exist_are_refused():
    with pytest.raises(UsageError, match="--domain"):
        references("", {"log": "x"})
    with pytest.raises(PluginNotFound, match="faultyy"):
        references("faultyy")
    with pytest.raises(SpecError, match="lgo"):
        references("faulty", {"lgo": "x"})


def test_the_output_stands_beside_the_input_unless_said_otherwise():
    assert output_of(Path("a/rows.jsonl")) == Path("a/rows.scored.jsonl")
    assert output_of(Path("rows")) == Path("rows.scored.jsonl")
