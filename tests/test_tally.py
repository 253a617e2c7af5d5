"""Counting of judged rows beyond what the tests of `cascade score` see."""

from cascade_core.domain import Score
from cascade_core.tally import Tally


def test_errors_that_are_all_different_take_bounded_room_and_are_all_counted():
    tally = Tally()
    for number in range(5_000):
        tally.add({"domain": "d", "id": f"{number}"}, Score.failed(f"task {number}: no label"))
    summary = tally.summary()
    assert (summary.cells[0].failed, summary.cells[0].value) == (5_000, None)
    assert (summary.errors[0].count, summary.errors[0].task) == (4_000, "1000")
    assert "other" in summary.errors[0].error
    assert len(tally._errors) <= 1_001


def test_the_mean_is_over_tasks_wherever_their_samples_stand():
    tally = Tally()
    for task, value in [("a", 1.0), ("b", 0.0), ("c", 1.0), ("a", 0.0), ("b", 0.0)]:
        tally.add({"domain": "d", "id": task, "source": "web"}, Score(value))
    (cell,) = tally.summary().cells
    assert (cell.domain, cell.source, cell.tasks, cell.total, cell.value) == ("d", "web", 3, 5, 0.5)
