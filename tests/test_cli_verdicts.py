"""Verdicts on the command line, with the real domains: judged anew, compared, explained, audited."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.rows import dump, read


def cascade(*arguments: object, status: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, (result.output, result.exception)
    return result


def row(task: str, answer: object, response: str, **more: object) -> dict[str, object]:
    return {
        "domain": "math",
        "id": task,
        "prompt": "What is it?",
        "answer": answer,
        "source": "s",
        "response": response,
        **more,
    }


ROWS = [
    row("a", "7", "\\boxed{7}", sample=0, reward=1.0, advantage=0.5),
    row("a", "7", "The answer is 7.", sample=1),
    row("b", "8", "The answer is 9.", sample=0),
    row("c", "\\frac{1}{", "\\boxed{1}", sample=0),
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(dump(line) + "\n" for line in ROWS))
    return path


@pytest.fixture
def scored(rows: Path) -> Path:
    cascade("score", rows, "--workers", 1, "--max-error-rate", 0.5)
    return rows.with_name("rows.scored.jsonl")


@pytest.fixture
def stated(scored: Path) -> Path:
    """The scored rows, judged anew under another option."""
    out = scored.with_name("stated.jsonl")
    cascade(
        "score",
        scored,
        "--domain",
        "math",
        "--option",
        "answer=stated",
        "-o",
        out,
        "--workers",
        1,
        "--max-error-rate",
        0.5,
    )
    return out


def test_scored_rows_are_judged_anew_under_other_options(scored: Path, stated: Path) -> None:
    values = [
        [line["score"]["value"] for line in read(path) if "error" not in line["score"]] for path in (scored, stated)
    ]
    assert values == [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    bare = [{key: value for key, value in line.items() if key != "score"} for line in read(stated)]
    assert bare == ROWS


def test_other_options_do_not_go_on_in_an_output_of_the_old_ones(rows: Path, scored: Path) -> None:
    before = scored.read_bytes()
    result = cascade("score", rows, "--domain", "math", "--option", "answer=stated", status=1)
    assert "was begun with domain 'math' at options" in result.stderr
    assert scored.read_bytes() == before


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--cpu-seconds", 0, "--cpu-seconds 0.0: input should be greater than 0"),
        ("--cpu-seconds", "nan", "--cpu-seconds nan: input should be"),
        ("--wall-seconds", -1, "--wall-seconds -1.0: input should be greater than 0"),
        ("--memory-mib", 0, "--memory-mib 0: input should be greater than 0"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(rows: Path, option: str, value: object, text: str) -> None:
    assert text in cascade("score", rows, option, value, status=2).stderr


def test_the_limits_of_a_verdict_are_those_given(rows: Path) -> None:
    out = rows.with_name("tight.jsonl")
    cascade("score", rows, "-o", out, "--cpu-seconds", 3, "--memory-mib", 512, "--max-error-rate", 0.5)
    lock = json.loads(out.with_name("tight.jsonl.lock.json").read_text())
    assert lock["limits"] == {"cpu_seconds": 3.0, "memory_mib": 512}
