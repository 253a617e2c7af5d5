"""Two scored files: which verdicts changed, both ways, by rule; and which files cannot be compared."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.difference import difference, rule
from cascade_core.errors import RowError, UsageError
from cascade_core.rows import dump


def row(task: str, score: dict, **more) -> dict:
    return {"domain": "d", "id": task, "sample": 0, "source": "s", "response": "r", "score": score, **more}


RIGHT, WRONG, PARTLY = {"value": 1.0, "note": "right"}, {"value": 0.0, "note": "wrong"}, {"value": 0.5}
LIMIT, FAILED = {"value": 0.0, "note": "limit: 10 s of CPU time"}, {"value": 0.0, "error": "ValueError: no"}


@pytest.fixture
def compare(tmp_path: Path):
    def run(first, second, **more):
        paths = (tmp_path / "first.jsonl", tmp_path / "second.jsonl")
        for path, rows in zip(paths, (first, second), strict=True):
            path.write_text("".join(dump(one) + "\n" for one in rows))
        return difference(*paths, **more)

    return run


def test_a_file_and_itself_do_not_differ(compare) -> None:
    rows = [row("a", RIGHT), row("b", FAILED), row("c", LIMIT), row("a", WRONG, sample=1)]
    found = compare(rows, rows)
    assert (found.status, found.changes) == (0, ())
    assert (found.cells[0].compared, found.cells[0].same) == (4, 4)


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        (RIGHT, WRONG, "worse"),
        (WRONG, RIGHT, "better"),
        (PARTLY, RIGHT, "better"),
        (RIGHT, PARTLY, "worse"),
        (RIGHT, LIMIT, "worse"),
        (WRONG, LIMIT, "otherwise"),
        (RIGHT, FAILED, "failed"),
        (WRONG, FAILED, "failed"),
        (LIMIT, FAILED, "failed"),
        (FAILED, WRONG, "recovered"),
        (FAILED, RIGHT, "recovered"),
    ],
)
def test_a_change_is_counted_by_its_direction(compare, before, after, counted) -> None:
    found = compare([row("a", before), row("b", RIGHT)], [row("a", after), row("b", RIGHT)])
    (cell,) = found.cells
    counts = {name: getattr(cell, name) for name in ("better", "worse", "failed", "recovered", "otherwise")}
    assert counts == {**dict.fromkeys(counts, 0), counted: 1}
    assert (cell.compared, cell.same, found.status) == (2, 1, 1)


def test_changes_are_grouped_by_both_rules_and_shown_with_a_few_samples(compare) -> None:
    first = [row(f"t{n}", {"value": 0.0, "note": f"found '{n}' at {n}"}) for n in range(9)] + [row("x", WRONG)]
    second = [row(f"t{n}", RIGHT) for n in range(9)] + [row("x", RIGHT)]
    many, one = compare(first, second, examples=2).changes
    assert (many.count, many.note_before, many.note_after) == (9, "found … at …", "right")
    assert [(example.id, example.before) for example in many.examples] == [
        ("t0", "found '0' at 0"),
        ("t1", "found '1' at 1"),
    ]
    assert (one.count, one.note_before) == (1, "wrong")


def test_the_name_of_an_instruction_or_function_is_part_of_the_rule() -> None:
    assert rule("not followed: keywords:existence, x2:y") == "not followed: keywords:existence, x2:y"
    assert rule("'a' is 3 of 10.5") == "… is … of …"


def test_domains_and_sources_are_told_apart(compare) -> None:
    first = [row("a", RIGHT), row("a", RIGHT, source="t"), row("a", RIGHT, domain="e")]
    rows = [{**one, "sample": n} for n, one in enumerate(first)]
    after = [{**rows[0], "score": WRONG}, *rows[1:]]
    cells = {(cell.domain, cell.source): cell.worse for cell in compare(rows, after).cells}
    assert cells == {("d", "s"): 1, ("d", "t"): 0, ("e", "s"): 0}


def test_rows_are_matched_by_their_names_whatever_their_order(compare) -> None:
    rows = [row(f"t{n}", RIGHT if n % 2 else WRONG) for n in range(10)]
    assert compare(rows, rows[::-1]).status == 0


def test_the_request_tells_rows_of_one_task_apart(compare) -> None:
    first = [row("a", RIGHT, request_id="p"), row("a", WRONG, request_id="q")]
    assert compare(first, first[::-1]).status == 0


def test_rows_without_a_name_of_their_own_are_matched_by_their_order(compare) -> None:
    first = [row("a", RIGHT), row("a", WRONG)]
    assert compare(first, first).status == 0
    assert compare(first, first[::-1]).cells[0].worse == 1


def test_rows_of_one_file_alone_are_a_difference(compare) -> None:
    found = compare([row("a", RIGHT), row("b", RIGHT)], [row("a", RIGHT), row("c", RIGHT), row("d", RIGHT)])
    (cell,) = found.cells
    assert (cell.compared, cell.only_first, cell.only_second, found.status) == (1, 1, 2, 1)


def test_other_responses_notes_and_rewards_are_counted_beside_the_verdict(compare) -> None:
    first = [row("a", RIGHT), row("b", RIGHT), row("c", RIGHT)]
    second = [
        row("a", RIGHT, response="other"),
        row("b", {"value": 1.0, "note": "right: in words"}),
        row("c", {**RIGHT, "reward": 2.0}),
    ]
    found = compare(first, second)
    (cell,) = found.cells
    assert (cell.other_response, cell.other_note, cell.other_reward, found.status) == (1, 1, 1, 0)


@pytest.mark.parametrize("second", [[], [row("b", RIGHT)], [row("a", RIGHT, domain="e")]])
def test_files_that_share_no_sample_are_refused(compare, second) -> None:
    with pytest.raises(UsageError, match=r"first\.jsonl and .*second\.jsonl have no sample in common"):
        compare([row("a", RIGHT)], second)


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (None, "has no score"),
        ("1", "has no score"),
        ({}, "a score that is none"),
        ({"value": "1"}, "a score that is none"),
        ({"value": 7}, "a score that is none"),
        ({"value": 1.0, "metrics": [1]}, "a score that is none"),
    ],
)
def test_a_row_without_a_verdict_is_named_with_its_file(compare, score, text) -> None:
    with pytest.raises(RowError, match=rf"second\.jsonl: row 2 \(id 'b'\) .*{text}"):
        compare([row("a", RIGHT)], [row("a", RIGHT), row("b", score)])


SCORES = st.sampled_from([RIGHT, WRONG, PARTLY, LIMIT, FAILED])


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=20))
def test_every_pair_is_counted_once_and_the_other_way_round_mirrored(tmp_path_factory, pairs) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    paths = (folder / "a.jsonl", folder / "b.jsonl")
    for side, path in enumerate(paths):
        path.write_text("".join(dump(row(f"t{n}", pair[side])) + "\n" for n, pair in enumerate(pairs)))
    there, back = difference(*paths), difference(*reversed(paths))
    (cell,), (mirror,) = there.cells, back.cells
    parts = (cell.same, cell.better, cell.worse, cell.failed, cell.recovered, cell.otherwise)
    assert sum(parts) == cell.compared == len(pairs)
    assert parts == (mirror.same, mirror.worse, mirror.better, mirror.recovered, mirror.failed, mirror.otherwise)
    assert sum(change.count for change in there.changes) == cell.compared - cell.same
    assert json.loads(json.dumps(there.json()))["cells"][0]["compared"] == len(pairs)
