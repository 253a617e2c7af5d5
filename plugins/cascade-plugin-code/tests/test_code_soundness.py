"""References that fail their own tests: found, told, and not in what is written; what is written is loaded as it was."""

import json

import pytest
from cascade_plugin_code import files, soundness
from cascade_plugin_code.domain import CodeDomain
from cascade_plugin_code.problems import Problem
from cascade_sandbox import SandboxError
from typer.testing import CliRunner

from cascade_core.cli.app import app

ADD = "print(sum(map(int, input().split())))"
TESTS = {"kind": "stdin", "tests": [{"stdin": "2 3", "stdout": "5"}, {"stdin": "2 2", "stdout": "4"}]}


def problem(name, *solutions, **more):
    answer = more.pop("answer", TESTS)
    first, *others = (*solutions, "")
    return Problem(name, f"Add, {name}.", answer, "rows", solution=first, others=tuple(filter(None, others)), **more)


def test_a_problem_is_sound_by_the_first_solution_that_passes(docker):
    found = soundness.check(problem("a", "print(5)", "print(", ADD, "never run"), docker)
    assert (found.state, found.problem.solution, found.problem.others) == ("sound", ADD, ())


def test_a_problem_that_no_solution_passes_is_unsound_and_says_what_the_first_did(docker):
    found = soundness.check(problem("a", "print(5)", "print(6)"), docker)
    assert (found.state, found.note) == ("unsound", "test 2 of 2: wrong answer: token 1 is '5', expected '4'")


def test_tests_that_are_at_fault_make_a_problem_unsound(docker):
    answer = {"kind": "assert", "entry_point": "f", "test_code": "assert 1 == 1"}
    assert soundness.check(problem("a", "def f(): return 1", answer=answer), docker).state == "unsound"


def test_a_problem_without_a_solution_is_neither_and_needs_no_sandbox():
    assert soundness.check(problem("a"), None).state == "unknown"


def test_what_is_written_is_loaded_as_it_was_and_in_order(docker, tmp_path):
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Add, d."})
    given = [
        problem("a", ADD),
        problem("b", "print(5)"),
        problem("c"),
        problem("d", ADD, turns=chat),
        problem("e", ADD),
    ]
    path = tmp_path / "deep" / "sound.jsonl"
    counts = soundness.write(path, soundness.checked(given, docker, 2))
    assert (counts.sound, counts.unknown, [name for name, _ in counts.unsound]) == (3, 1, ["b"]) and counts.total == 5
    assert list(files.problems([str(path)])) == [one for one in given if one.id != "b"]


def test_a_sandbox_that_fails_leaves_no_file(tmp_path):
    class Broken:
        def open(self, *args, **more):
            raise SandboxError("gone")

    path = tmp_path / "sound.jsonl"
    path.write_text("before")
    with pytest.raises(SandboxError):
        soundness.write(path, soundness.checked([problem("a", ADD)], Broken(), 1))
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_the_command_writes_sound_problems_that_a_domain_trains_on(docker, tmp_path):
    rows = [
        {
            "question": f"Add, {name}.",
            "input_output": {"inputs": ["2 3", "2 2"], "outputs": ["5", "4"]},
            "solutions": [source],
        }
        for name, source in (("a", ADD), ("b", "print(5)"))
    ]
    source, out = tmp_path / "rows.jsonl", tmp_path / "sound.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["code", "sound", str(source), str(out), "--resource", f"sandbox={docker.address}"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert "left out" in done.stdout and "2 problems: 1 sound, 0 without a known solution, 1 left out" in done.stdout
    (task,) = CodeDomain(eval_data=str(out)).tasks("test", 0)
    assert CodeDomain().reference(task) == f"```python\n{ADD}\n```"
    assert json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)["sound"] == 1


@pytest.mark.parametrize("wrong", [["--format", "acm"], ["--language", "cobol"], ["--seconds", "0"]])
def test_the_command_refuses_what_cannot_be(tmp_path, wrong):
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({"prompt": "Add.", "answer": TESTS}) + "\n")
    done = CliRunner().invoke(
        app, ["code", "sound", str(source), str(tmp_path / "out"), *wrong, "--resource", "sandbox=process:"]
    )
    assert done.exit_code == 2 and not (tmp_path / "out").exists()
