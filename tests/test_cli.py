"""The command line as it is used: what is printed where, and the status at the end."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from strangers import environment, publish
from typer.main import get_command
from typer.testing import CliRunner

from cascade_core import plugins
from cascade_core.cli.app import app

__all__ = ["publish"]

TOY = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, Task, hookimpl
    from cascade_core.trainers import Trainer

    @dataclass
    class Toy(Domain):
        name = "toy"
        size: int = 3
        def tasks(self, split, seed): return [Task(f"{split}-{n}", f"{split} [red]question[/red] {n}") for n in range(self.size)]
        def score(self, task, response): return Score(1.0)

    class Plain(Trainer):
        name = "plain"
        kinds = ("sft", "rl")
        def settings(self, stage): return {"learning_rate": stage.optim.lr, "text": "[bold]as it is[/bold]"}
        def train(self, job): raise AssertionError

    @hookimpl
    def cascade_domains(): return [Toy]

    @hookimpl
    def cascade_trainers(): return [Plain]
"""

SPEC = """
name: small
trainer: plain
model: owner/model
domains: {toy: {size: 5}}
stages:
  - {name: rl, domains: toy, steps: 3}
"""

COMMANDS = """
    import typer
    from cascade_core import hookimpl
    from cascade_core.errors import UsageError, TaskError

    def tools():
        app = typer.Typer()
        @app.command()
        def hello(name: str = "you"): print(f"hello {name}")
        @app.command()
        def refuse(): raise UsageError("there is nothing to refuse")
        @app.command()
        def fail(): raise TaskError("it is broken")
        @app.command()
        def crash(): raise ZeroDivisionError("a bug\\nsecond line")
        @app.command()
        def absent(): open("/no/such/file")
        @app.command()
        def stop(): raise KeyboardInterrupt
        @app.command()
        def status(): raise typer.Exit(7)
        return app

    def broken(): raise RuntimeError("cannot be built")

    @hookimpl
    def cascade_commands(): return {"tools": tools, "broken": broken, "odd": dict, "plan": broken}
"""


@pytest.fixture(autouse=True)
def fresh_registry(publish):
    plugins.registry.cache_clear()
    yield
    plugins.registry.cache_clear()


@pytest.fixture
def spec(publish, tmp_path: Path) -> Path:
    publish("cascade-plugin-toy", TOY)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def cascade(*arguments: object, status: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, (result.output, result.exception)
    return result


def test_help_lists_every_command_and_shows_how_to_begin() -> None:
    out = cascade("--help").stdout
    for name in ("run", "plan", "report", "score", "check", "plugins", "schema"):
        assert f" {name} " in out
    assert "cascade plan spec.yaml" in out


@pytest.mark.parametrize("name", ["run", "plan", "report", "score", "check", "plugins", "schema"])
def test_the_help_of_every_command_shows_an_example(name: str) -> None:
    assert f"Example: cascade {name}" in " ".join(cascade(name, "--help").stdout.split())


def test_no_word_of_an_options_help_is_taken_for_a_style() -> None:
    def options(command: Any, *names: str) -> Iterator[tuple[str, str]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from options(inner, *names, name)
        yield from ((" ".join([*names, *one.opts]), getattr(one, "help", None) or "") for one in command.params)

    found = dict(options(get_command(app)))
    assert len(found) > 50
    styled = {name: [str(span.style) for span in Text.from_markup(told).spans] for name, told in found.items()}
    assert {name: styles for name, styles in styled.items() if set(styles) - {"bold"}} == {}
    assert "[default: null]" in cascade("serve", "--help").stdout


def test_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert cascade("--version").stdout == f"cascade-rl {version('cascade-rl')}\n"


def test_plan_shows_stages_flags_and_benchmarks_and_writes_nothing(spec: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*.*"))
    out = cascade("plan", spec).stdout
    for text in ("01-rl", "384", "3072", "learning_rate", "2e-06", "toy/test", "cascade-plugin-toy 1.0"):
        assert text in out
    assert sorted(tmp_path.rglob("*.*")) == before


def test_text_of_others_is_not_taken_for_markup(spec: Path) -> None:
    out = cascade("plan", spec, "--tasks").stdout
    assert "[bold]as it is[/bold]" in out and "train [red]question[/red] 0" in out


def test_plan_as_json_is_one_object(spec: Path) -> None:
    found = json.loads(cascade("plan", spec, "--json", "--tasks", "--set", "stages.rl.steps=4").stdout)
    assert found["totals"] == {"steps": 4, "tasks": 512, "responses": 4096, "evaluated": 10}


def test_a_wrong_spec_ends_with_status_2_and_its_lines_on_standard_error(spec: Path) -> None:
    spec.write_text(SPEC.replace("steps: 3", "stesp: 3").replace("name: small", "name: 3"))
    for command in ("plan", "run"):
        result = cascade(command, spec, status=2)
        assert result.stdout == ""
        first, *others = result.stderr.splitlines()
        assert first == f"cascade: {spec}:2:7: name: must be text, found 3; put it in quotes"
        assert len(others) == 2 and "did you mean 'steps'" in others[1]


def test_a_setting_that_cannot_be_ends_with_status_2(spec: Path) -> None:
    result = cascade("plan", spec, "--set", "stages.rlx.steps=4", status=2)
    assert (
        result.stderr
        == "cascade: --set stages.rlx.steps=4: nothing there is called 'rlx', did you mean 'rl' (allowed: rl)\n"
    )


def test_a_missing_file_ends_with_status_2(tmp_path: Path) -> None:
    assert "no such file" in cascade("plan", tmp_path / "absent.yaml", status=2).stderr


def test_a_wrong_option_ends_with_status_2_and_the_usage() -> None:
    assert "No such option" in cascade("plan", "--jsno", "x.yaml", status=2).stderr


def test_plugins_shows_what_is_offered_and_what_is_broken_and_why(publish) -> None:
    publish("cascade-plugin-toy", TOY)
    publish("cascade-plugin-bad", "raise ValueError('no licence [bold]here[/bold]')")
    out = " ".join(cascade("plugins").stdout.split())
    assert "cascade-plugin-toy 1.0 toy domain toy; trainer plain" in out
    assert "cascade-plugin-bad 1.0 bad broken: ValueError: no licence [bold]here[/bold]" in out
    assert "Traceback" not in out
    assert "Traceback" in cascade("plugins", "--trace").stdout


def test_plugins_as_json_tells_everything_conflicts_included(publish) -> None:
    publish("cascade-plugin-toy", TOY)
    publish("cascade-plugin-copy", TOY.replace("Plain", "Again").replace('"plain"', '"again"'))
    publish("cascade-plugin-bad", "print('noise')\nraise ValueError('no licence')")
    found = json.loads(cascade("plugins", "--json").stdout)
    broken = {plugin["distribution"]: plugin["error"] for plugin in found["plugins"] if plugin["error"]}
    assert broken == {"cascade-plugin-bad": "ValueError: no licence"}
    (conflict,) = found["conflicts"]
    assert (conflict["kind"], conflict["name"]) == ("domain", "toy")
    assert "conflict: domain 'toy' is offered by cascade-plugin-copy 1.0" in cascade("plugins").stdout


def test_a_name_that_two_plugins_offer_stops_the_spec_that_needs_it_with_its_line(publish, spec: Path) -> None:
    publish("cascade-plugin-copy", TOY.replace('"plain"', '"again"'))
    plugins.registry.cache_clear()
    assert (
        ":5:11: domains.toy: domain 'toy' is offered by cascade-plugin-copy 1.0"
        in cascade("plan", spec, status=2).stderr
    )


def test_a_command_of_a_plugin_is_listed_with_its_owner_and_called(publish) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    out = cascade("--help").stdout
    assert "tools" in out and "From cascade-plugin-tools 1.0." in out
    assert cascade("tools", "hello", "--name", "me").stdout == "hello me\n"
    assert "hello" in cascade("tools", "--help").stdout


def test_a_broken_command_of_a_plugin_stops_only_itself(publish) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    assert "command 'broken' of cascade-plugin-tools 1.0" in cascade("broken", status=1).stderr
    assert "must be a typer.Typer, found dict" in cascade("odd", status=1).stderr
    assert cascade("tools", "hello").stdout == "hello you\n"


def test_a_plugin_cannot_take_a_name_of_the_core(publish, spec: Path) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    assert "01-rl" in cascade("plan", spec).stdout


def test_a_command_that_two_plugins_offer_stops_no_other(publish) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    publish("cascade-plugin-more", COMMANDS.replace('"broken": broken, "odd": dict, ', '"fine": tools, '))
    assert "offered by cascade-plugin-more 1.0" in cascade("tools", status=1).stderr
    assert cascade("fine", "hello").stdout == "hello you\n"


def test_a_broken_plugin_is_named_when_a_command_is_not_there(publish) -> None:
    publish("cascade-plugin-bad", "raise ValueError('no licence')")
    assert "cascade-plugin-bad 1.0 (entry point 'bad') is broken" in cascade("absent", status=2).stderr


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("refuse", 2, "cascade: there is nothing to refuse\n"),
        ("fail", 1, "cascade: it is broken\n"),
        (
            "crash",
            1,
            "cascade: internal error: ZeroDivisionError: a bug; the same command after `cascade --debug` shows the traceback\n",
        ),
        ("absent", 1, "cascade: no such file or directory: /no/such/file\n"),
        ("stop", 130, "cascade: interrupted\n"),
        ("status", 7, ""),
    ],
)
def test_an_error_is_one_line_and_a_status(name: str, status: int, text: str, publish) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    result = cascade("tools", name, status=status)
    assert (result.stdout, result.stderr) == ("", text)


def test_debug_lets_the_traceback_through(publish) -> None:
    publish("cascade-plugin-tools", COMMANDS)
    result = CliRunner().invoke(app, ["--debug", "tools", "refuse"])
    assert type(result.exception).__name__ == "UsageError"


CHECKED = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, Task, hookimpl

    @dataclass
    class Checked(Domain):
        name = "checked"
        words: tuple[str, ...] = ("red", "blue")
        leak: bool = False
        def tasks(self, split, seed):
            return [Task(f"{split}-{w}", f"{w} {'' if self.leak else split}", answer=w) for w in self.words]
        def score(self, task, response): return Score(float(response.answer == task.answer))
        def reference(self, task): return task.answer

    @hookimpl
    def cascade_domains(): return [Checked]
"""


def test_check_tells_what_was_checked_and_ends_with_status_0(publish) -> None:
    publish("cascade-plugin-checked", CHECKED)
    found = json.loads(cascade("check", "checked", "--option", "words=[a, b, c]", "--json").stdout)
    assert found["failed"] == 0 and all(finding["ok"] for finding in found["findings"]), found


def test_check_tells_what_is_wrong_and_ends_with_status_1(publish) -> None:
    publish("cascade-plugin-checked", CHECKED)
    result = cascade("check", "checked", "--option", "leak=true", status=1)
    assert "no prompt is in both splits" in result.stdout and "failed" in result.stdout
    assert result.stderr.startswith("cascade: domain 'checked' fails 1 of ")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["chekced"], 2, "no domain is called 'chekced', did you mean 'checked'"),
        (["checked", "--option", "leek=true"], 2, "unknown option 'leek', did you mean 'leak'"),
        (["checked", "--option", "leak=3"], 2, "option 'leak' must be true or false, found 3"),
        (["checked", "--option", "leak"], 2, "--option leak: must be path=value"),
    ],
)
def test_check_refuses_what_is_not_there(arguments: list[str], status: int, text: str, publish) -> None:
    publish("cascade-plugin-checked", CHECKED)
    assert text in cascade("check", *arguments, status=status).stderr


def rows(path: Path, *responses: str) -> Path:
    lines = [
        {"id": f"t{n}", "prompt": "p", "answer": "red", "source": "s", "response": text}
        for n, text in enumerate(responses)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_score_writes_the_rows_with_their_scores_and_sums_them_up(publish, tmp_path: Path) -> None:
    publish("cascade-plugin-checked", CHECKED)
    path = rows(tmp_path / "rows.jsonl", "red", "blue", "red")
    result = cascade("score", path, "--domain", "checked", "--workers", 1, "--json")
    found = json.loads(result.stdout)
    (cell,) = found["cells"]
    assert (cell["domain"], cell["scored"], cell["failed"], cell["total"], found["status"]) == ("checked", 3, 0, 3, 0)
    written = [json.loads(line) for line in Path(found["output"]).read_text().splitlines()]
    assert [row["score"]["value"] for row in written] == [1.0, 0.0, 1.0]
    out = cascade("score", path, "--domain", "checked", "--workers", 1).stdout
    assert "0.667" in out and f"scored rows: {tmp_path / 'rows.scored.jsonl'}" in out


def test_score_says_of_a_file_without_rows_that_there_are_none(publish, tmp_path: Path) -> None:
    path = rows(tmp_path / "rows.jsonl")
    assert cascade("score", path, "--workers", 1, status=1).stderr == f"cascade: {path} holds no row\n"


def test_score_ends_with_status_1_when_too_many_could_not_be_judged(publish, tmp_path: Path) -> None:
    publish(
        "cascade-plugin-checked", CHECKED.replace("return Score(float", "1 / (task.id != 't0'); return Score(float")
    )
    path = rows(tmp_path / "rows.jsonl", "red", "blue")
    arguments = ["score", path, "--domain", "checked", "--workers", 1]
    result = cascade(*arguments, status=1)
    assert "could not be judged: 1 × " in result.stdout and "ZeroDivisionError" in result.stdout
    assert result.stderr == f"cascade: more of {path} could not be judged than --max-error-rate 0.02 allows\n"
    assert cascade(*arguments, "--max-error-rate", 0.5)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["absent.jsonl"], 2, "absent.jsonl is no file"),
        (["rows.jsonl", "--option", "leak=true"], 2, "name it with --domain"),
        (["rows.jsonl", "--domain", "chekced"], 2, "no domain is called 'chekced', did you mean 'checked'"),
        (["rows.jsonl", "--domain", "checked", "-o", "rows.jsonl"], 2, "would be overwritten with itself"),
        (["bad.jsonl"], 2, "bad.jsonl:1: not a JSON object"),
    ],
)
def test_score_refuses_what_cannot_be(arguments, status, text, publish, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows(tmp_path / "rows.jsonl", "red")
    (tmp_path / "bad.jsonl").write_text("no json\n")
    publish("cascade-plugin-checked", CHECKED)
    assert text in cascade("score", *arguments, status=status).stderr


def test_report_refuses_a_folder_that_is_no_run(tmp_path: Path) -> None:
    assert "is no run: a run's folder holds" in cascade("report", tmp_path, status=2).stderr


def test_the_schema_is_json_and_its_tables_are_markdown(publish) -> None:
    publish("cascade-plugin-toy", TOY)
    found = json.loads(cascade("schema").stdout)
    assert "size" in found["properties"]["domains"]["properties"]["toy"]["properties"]
    assert cascade("schema", "--markdown").stdout.startswith("### The spec\n")


def process(site: Path | None, *arguments: str, **kwargs) -> subprocess.Popen:
    env = environment(site) if site else None
    code = "from cascade_core.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def test_a_traceback_is_never_shown_without_debug(publish) -> None:
    site = publish("cascade-plugin-tools", COMMANDS)
    for name in ("refuse", "fail", "crash"):
        out, err = process(site, "tools", name).communicate(timeout=60)
        assert out == "" and "Traceback" not in err and err.count("\n") == 1
    assert "Traceback" in process(site, "--debug", "tools", "crash").communicate(timeout=60)[1]


def test_a_reader_that_stops_reading_is_no_error(publish) -> None:
    with process(None, "schema") as child:
        child.stdout.readline()
        child.stdout.close()
        assert "Traceback" not in child.stderr.read()


SLEEPER = """
    import sys, time, typer
    from cascade_core import hookimpl

    def build():
        app = typer.Typer()
        @app.command()
        def sleep():
            print("ready", flush=True)
            time.sleep(60)
        return app

    @hookimpl
    def cascade_commands(): return {"sleep": build}
"""


def test_ctrl_c_ends_with_status_130_and_one_line(publish) -> None:
    site = publish("cascade-plugin-sleeper", SLEEPER)
    child = process(site, "sleep")
    assert child.stdout.readline() == "ready\n"
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "cascade: interrupted\n")
    assert time.monotonic() - begin < 40  # it would sleep for 60
