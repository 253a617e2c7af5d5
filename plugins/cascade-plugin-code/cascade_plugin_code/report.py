"""The verdicts on one program as a `Score`, and as what people are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cascade_core import Score
from cascade_plugin_code.exam import Exam
from cascade_plugin_code.extraction import Extracted
from cascade_plugin_code.measure import TESTS_PASSED
from cascade_plugin_code.words import MOST_SHOWN, printable, shown

if TYPE_CHECKING:
    from cascade_plugin_code.judging import Verdict

_MOST_PROGRAM = 20_000
_MOST_TESTS = 100


@dataclass(frozen=True)
class Report:
    """How a program did.

    `verdicts` are those on the tests that were run, in order; `whole` says that none was left out because an earlier one
    had failed, so that those missing count as not passed. `missing` is why there was no program.
    """

    count: int
    verdicts: tuple[Verdict, ...]
    missing: str = ""
    whole: bool = False

    @property
    def passed(self) -> int:
        """How many tests were passed."""
        return sum(verdict.passed for verdict in self.verdicts)

    @property
    def note(self) -> str:
        """What happened, in one line; it begins with `limit` where a limit decided."""
        if self.missing:
            return self.missing
        failed = next(((number, one) for number, one in enumerate(self.verdicts, 1) if not one.passed), None)
        if failed is None:
            return f"passes all {self.count} tests" if self.count > 1 else "passes its test"
        number, verdict = failed
        which = f"{'limit: ' if verdict.limit else ''}test {number} of {self.count}: {verdict.note}"
        return f"{which}; {self.passed} of {self.count} passed" if self.whole and self.count > 1 else which

    def score(self, scoring: str) -> Score:
        """The value under `all-or-nothing` or `fraction`, the note and the metrics."""
        share = self.passed / self.count
        metrics = {"program": float(not self.missing)}
        if self.whole or self.missing:
            metrics[TESTS_PASSED] = share
        return Score(
            share if scoring == "fraction" else float(self.passed == self.count), note=self.note, metrics=metrics
        )


def explained(exam: Exam, found: Extracted, report: Report, scoring: str) -> dict[str, Any]:
    """Why the verdict is what it is, as JSON values."""
    return {
        "verdict": report.note,
        "scoring": scoring,
        "program": None if found.program is None else printable(found.program, _MOST_PROGRAM),
        "language": exam.language,
        "kind": exam.kind,
        "compared by": {"stdin": exam.checker.type, "function": exam.compare.type}.get(exam.kind, "the test code"),
        "tests": list(_rows(exam, report))[:_MOST_TESTS],
    }


def _rows(exam: Exam, report: Report) -> Iterator[dict[str, Any]]:
    for number, verdict in enumerate(report.verdicts):
        row: dict[str, Any] = {
            "test": number + 1,
            "verdict": "passed" if verdict.passed else verdict.limit or "failed",
            "note": verdict.note,
            "cpu_seconds": round(verdict.cpu_seconds, 3),
        }
        if exam.talks:
            talk = exam.talks[number]
            row["input"] = printable(talk.stdin[:2000].decode("utf-8", "replace"), MOST_SHOWN)
            row["expected"] = printable(talk.stdout, MOST_SHOWN)
        elif exam.calls:
            row["input"] = exam.calls[number].written
            row["expected"] = shown(exam.calls[number].expected)
        else:
            row["input"] = printable(exam.codes[number].source, MOST_SHOWN)
        yield {**row, "found": verdict.printed}
