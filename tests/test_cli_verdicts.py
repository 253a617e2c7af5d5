"""Verdicts on the command line, with the real domains: judged anew, compared, explained, audited."""

import json
import subprocess
import sys
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


def lines(path: Path, *content: dict[str, object]) -> Path:
    path.write_text("".join(dump(line) + "\n" for line in content))
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lines(tmp_path_factory.mktemp("verdicts") / "rows.jsonl", *ROWS)


@pytest.fixture(scope="module")
def scored(rows: Path) -> Path:
    cascade("score", rows, "--workers", 1, "--max-error-rate", 0.5)
    return rows.with_name("rows.scored.jsonl")


@pytest.fixture(scope="module")
def stated(scored: Path) -> Path:
    """The scored rows, judged anew under another option."""
    out = scored.with_name("stated.jsonl")
    options = ("--domain", "math", "--option", "answer=stated")
    cascade("score", scored, *options, "-o", out, "--workers", 1, "--max-error-rate", 0.5)
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
        ("--cpu-seconds", 0, "--cpu-seconds must be above 0, found 0.0"),
        ("--cpu-seconds", "nan", "--cpu-seconds must be a finite number, found nan"),
        ("--wall-seconds", -1, "--wall-seconds must be above 0, found -1.0"),
        ("--memory-mib", 0, "--memory-mib must be above 0, found 0"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(rows: Path, option: str, value: object, text: str) -> None:
    assert text in cascade("score", rows, option, value, status=2).stderr


def test_the_limits_of_a_verdict_are_those_given(rows: Path) -> None:
    out = rows.with_name("tight.jsonl")
    cascade("score", rows, "-o", out, "--cpu-seconds", 3, "--memory-mib", 512, "--max-error-rate", 0.5)
    lock = json.loads(out.with_name("tight.jsonl.lock.json").read_text())
    assert lock["limits"] == {"cpu_seconds": 3.0, "memory_mib": 512}


def test_diff_tells_what_another_option_changed_and_by_which_rule(scored: Path, stated: Path) -> None:
    found = json.loads(cascade("diff", scored, stated, "--json", status=1).stdout)
    (cell,), changes = found["cells"], found["changes"]
    assert (found["status"], cell["compared"], cell["same"], cell["better"], cell["worse"]) == (1, 4, 3, 1, 0)
    assert [(change["before"], change["after"], change["note_before"], change["count"]) for change in changes] == [
        ("wrong", "right", "no boxed answer", 1)
    ]
    out = " ".join(cascade("diff", scored, stated, status=1).stdout.split())
    assert "wrong → right no boxed answer → right" in out and "a #1" in out


def test_diff_of_the_same_verdicts_ends_with_status_0(scored: Path) -> None:
    same = " ".join(cascade("diff", scored, scored).stdout.split())
    assert "domain source compared same better worse" in same and same.endswith(" 4 4 0 0")


def test_diff_refuses_what_cannot_be_compared(scored: Path, rows: Path, tmp_path: Path) -> None:
    assert "absent.jsonl is no file" in cascade("diff", scored, tmp_path / "absent.jsonl", status=2).stderr
    assert "rows.jsonl: row 1 (id 'a') has no score" in cascade("diff", rows, scored, status=2).stderr
    other = tmp_path / "other.jsonl"
    other.write_text(dump({**ROWS[0], "id": "z", "score": {"value": 1.0}}) + "\n")
    assert "have no sample in common" in cascade("diff", scored, other, status=2).stderr


def test_explain_tells_rule_readings_cost_and_who_judged(scored: Path) -> None:
    found = json.loads(cascade("explain", scored, "--id", "a", "--sample", 0, "--json").stdout)
    (one,) = found["explained"]
    assert (found["rows"], one["now"]["value"], one["stored"]["value"], one["changed"]) == (1, 1.0, 1.0, False)
    assert one["domain"]["distribution"] == "cascade-plugin-math" == one["stored_by"]["distribution"]
    assert one["reasons"]["extracted"] == "7" and one["reasons"]["answer read as"] == ["7"]
    assert 0 < one["cpu_seconds"] < 5 and 0 < one["wall_seconds"] < 60


def test_explain_says_where_the_verdict_of_now_is_not_the_stored_one(scored: Path) -> None:
    arguments = ("explain", scored, "--id", "a", "--sample", 1)
    assert "(the same)" in cascade(*arguments).stdout
    out = " ".join(cascade(*arguments, "--domain", "math", "--option", "answer=stated").stdout.split())
    assert "(changed)" in out and "answer=stated" in out and "stored by math of cascade-plugin-math" in out


def test_rows_of_a_run_are_explained_with_the_options_of_its_spec(scored: Path, tmp_path: Path) -> None:
    spec = "name: r\nmodel: m\ndomains: {math: {generator: {name: arithmetic}, answer: stated}}\nstages: []\n"
    spec = spec.replace("stages: []", "stages: [{name: rl, domains: math, steps: 1}]")
    (tmp_path / "spec.yaml").write_text(spec)
    (tmp_path / "lock.json").write_text("{}")
    inside = tmp_path / "stages" / "01-rl" / "rollouts" / "step-00000.jsonl"
    inside.parent.mkdir(parents=True)
    inside.write_bytes(scored.read_bytes())
    judged = {
        name: json.loads(cascade("explain", path, "--json").output)["explained"]
        for name, path in {"inside": inside, "outside": scored}.items()
    }
    assert {one["domain"]["options"].get("answer") for one in judged["inside"]} == {"stated"}
    assert judged["inside"] != judged["outside"]


def test_explain_shows_each_instruction(tmp_path: Path) -> None:
    answer = {
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
        "kwargs": [{}, {"keywords": ["rain"]}],
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(dump({**row("t", answer, "snow, rain"), "domain": "if"}) + "\n")
    out = " ".join(cascade("explain", path).stdout.split())
    assert "instructions 1 id: punctuation:no_comma; strict: false; loose: false; arguments: none" in out
    assert 'instructions 2 id: keywords:existence; strict: true; loose: true; arguments: {"keywords": ["rain"]}' in out


def test_explain_shows_a_broken_task_as_not_judged(scored: Path) -> None:
    out = " ".join(cascade("explain", scored, "--id", "c").stdout.split())
    assert "verdict now could not be judged: the label" in out and "not explained the label" in out


def test_an_explanation_has_no_empty_heading(scored: Path) -> None:
    lines = cascade("explain", scored, "--id", "a", "--sample", 0).stdout.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["a", "#0"], []]
    assert lines[2].split()[0] == "response"


def test_a_command_that_goes_on_says_so_when_it_is_interrupted(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cascade_core.scoring.Scorer", interrupted)
    told = cascade("score", scored, status=130).stderr
    assert told == "cascade: interrupted; the same command goes on from here\n"
    assert cascade("explain", scored, status=130).stderr == "cascade: interrupted\n"


def test_explain_says_how_many_rows_it_leaves_out(scored: Path) -> None:
    assert "and 2 more rows" in cascade("explain", scored, "--limit", 2).stdout


def test_explain_names_ids_where_there_is_no_such_row(scored: Path) -> None:
    told = cascade("explain", scored, "--id", "z", "--sample", 3, status=2).stderr
    assert "has no row of id 'z' sample 3; it begins with a, b, c" in told


def test_a_file_without_rows_is_no_file_to_explain(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()
    told = cascade("explain", tmp_path / "rows.jsonl", status=2).stderr
    assert "rows.jsonl is empty: rows to explain are JSON lines with domain" in told


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\ud800\x00",
    "\u202eabc",
    "x" * 2_000_000,
    "[bold]\\boxed{7}[/bold]",
    "\\boxed{9^{9^{9^9}}}",
]


@pytest.mark.parametrize("response", HOSTILE, ids=["escape", "surrogate", "right-to-left", "long", "markup", "tower"])
def test_a_hostile_response_is_explained_without_harm_to_the_terminal(tmp_path: Path, response: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(dump(row("\x1b]0;t\x07", "7", response)) + "\n")
    out = cascade("explain", path).stdout
    assert "\x1b" not in out and "\x00" not in out and "\u202e" not in out and len(out) < 6_000
    assert "verdict now" in out


def test_audit_prints_a_table_and_ends_with_status_0(tmp_path: Path) -> None:
    out = " ".join(cascade("audit", "math", "--tasks", 5).stdout.split())
    assert "references that score 1.0 10 (100 %) 10" in out and "an empty answer scores 1.0 0 (0 %) 10" in out
    assert "p50" in out and "MiB" in out and "cascade-plugin-math" in out


def test_audit_ends_with_status_1_and_names_what_passed(tmp_path: Path) -> None:
    result = cascade("audit", "if", "--tasks", 2, "--json", status=1)
    found = json.loads(result.stdout)
    assert found["status"] == 1 and found["gold"]["passed"] == found["gold"]["total"] == 4
    assert result.stderr.startswith("cascade: domain 'if': ") and "the prompt itself scores 1.0" in result.stderr


def test_audit_is_told_what_share_of_hostile_answers_may_pass() -> None:
    found = json.loads(cascade("audit", "math", "--tasks", 1, "--max-hostile", 0.5, "--json").stdout)
    assert (found["max_hostile"], found["status"], found["troubles"]) == (0.5, 0, [])


def test_audit_names_a_label_that_cannot_be_read(tmp_path: Path) -> None:
    data = tmp_path / "eval.jsonl"
    data.write_text(json.dumps({"id": "bad", "problem": "What?", "answer": "\\frac{1}{"}) + "\n")
    result = cascade("audit", "math", "--option", f"eval_data={data}", status=1)
    assert "references: bad: " in result.stdout and "cannot be read" in result.stdout
    assert "1 of 1 references do not score 1.0" in result.stderr


@pytest.mark.parametrize("name", ["diff", "explain", "audit"])
def test_the_help_of_a_command_on_verdicts_shows_an_example(name: str) -> None:
    assert f"Example: cascade {name}" in " ".join(cascade(name, "--help").stdout.split())


@pytest.mark.parametrize("command", [("score",), ("explain",), ("diff", "rows.jsonl")], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("line", "text"),
    [(b"\xff\xfe", "not UTF-8"), (b'{"id": ', "not a JSON object"), (b"[" * 100_000, "not a JSON object")],
)
def test_a_broken_line_is_told_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], line: bytes, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    good = dump({**ROWS[0], "score": {"value": 1.0}}).encode()
    Path("rows.jsonl").write_bytes(good + b"\n\n" + line + b"\n" + good + b"\n")
    result = cascade(command[0], "rows.jsonl", *command[1:], status=2)
    assert f"cascade: rows.jsonl:3: {text}" in result.stderr and result.stderr.count("\n") == 1


def test_a_response_of_ten_megabytes_and_a_label_of_one_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    digits = "1" * 2**20
    found = [
        row("long", "7", "7 " * 5 * 2**20),
        row("label", digits, f"\\boxed{{{digits}}}"),
        row("other", digits, "\\boxed{7}"),
    ]
    path.write_text("".join(dump(line) + "\n" for line in found))
    cascade("score", path, "--workers", 1)
    assert [line["score"]["value"] for line in read(tmp_path / "rows.scored.jsonl")] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("answer", ["\u0661\u0662", "\uff11\uff12"], ids=["Arabic", "full-width"])
def test_digits_of_other_scripts_are_digits(tmp_path: Path, answer: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(dump(row("t", "12", f"\\boxed{{{answer}}}")) + "\n")
    found = json.loads(cascade("explain", path, "--json").stdout)["explained"][0]
    assert (found["now"]["value"], found["reasons"]["answer read as"]) == (1.0, ["12"])


def test_a_full_disk_is_told_with_the_file_and_loses_nothing(tmp_path: Path) -> None:
    path, out, whole = tmp_path / "rows.jsonl", tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    drawn = [row(f"t{n}", "7", "x" * 1000 + "\\boxed{7}") for n in range(20)]
    path.write_text("".join(dump(line) + "\n" for line in drawn))
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); from cascade_core.cli import main; main()"
    words = ["score", str(path), "-o", str(out), "--workers", "1"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, f"cascade: file too large: {out}\n")
    kept = out.read_bytes()
    assert kept.count(b"\n") >= 3
    cascade(*words)
    cascade("score", path, "-o", whole, "--workers", 1)
    assert out.read_bytes() == whole.read_bytes() and out.read_bytes().startswith(kept[: kept.rindex(b"\n")])
