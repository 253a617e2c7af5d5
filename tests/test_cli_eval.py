"""`cascade eval` against a server process and a model in a folder: figures, failures, interruptions, refusals."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from served import process, server
from strangers import environment, publish
from typer.testing import CliRunner

from cascade_core import plugins
from cascade_core.cli.app import app
from cascade_core.rows import read

__all__ = ["process", "publish", "server"]

SCRIPT = """
    from dataclasses import dataclass, field
    from cascade_core import Benchmark, Domain, Score, Task, hookimpl
    from cascade_core.errors import TaskError

    @dataclass
    class Script(Domain):
        name = "script"
        prompts: list[str] = field(default_factory=list)
        called: str = "test"
        def tasks(self, split, seed):
            return [Task(f"t{number}", prompt, "right") for number, prompt in enumerate(self.prompts)]
        def score(self, task, response):
            if response.text == "broken": raise TaskError("the label is broken")
            return Score(float(response.answer == "right"))
        def benchmarks(self):
            return (Benchmark(self.called, sampling={"temperature": 0.5}), Benchmark("other", samples=2))

    @hookimpl
    def cascade_domains(): return [Script]
"""


@pytest.fixture
def site(publish):
    folder = publish("cascade-plugin-script", SCRIPT)
    plugins.registry.cache_clear()
    yield folder
    plugins.registry.cache_clear()


@pytest.fixture
def run(site, server, tmp_path):
    """`run(prompts, *arguments)`: the command's result, and its folder of results."""

    def call(prompts, *arguments, benchmark="script/test", url=None):
        options = ["--option", f"prompts={json.dumps(prompts)}", "--output", str(tmp_path / "out"), "--workers", "1"]
        asked = ["--endpoint", url or server.url, "--model", "small", "--benchmark", benchmark, "--domain", "script"]
        return CliRunner().invoke(app, ["eval", *asked, *options, *arguments])

    return call


def figures(result, benchmark="script/test"):
    return json.loads(result.stdout)["benchmarks"][benchmark]


def kept(tmp_path):
    return [row["id"] for row in read(tmp_path / "out/completions/script/test.jsonl")]


def test_figures_counts_and_tokens_are_printed_and_written(run, server, tmp_path):
    result = run(["a|right", "b|wrong", "cut|", "think|"], "--json")
    assert result.exit_code == 0, result.output
    found = figures(result)
    assert found["estimates"]["avg@1"] == {"value": 0.5, "stderr": pytest.approx(1 / 12**0.5), "n": 4}
    assert (found["scored"], found["failed"], found["total"], found["truncated"]) == (4, 0, 4, 1)
    assert found["usage"] == {"prompt": 28, "completion": 12, "unreported": 0}
    assert json.loads((tmp_path / "out/metrics.json").read_text())["benchmarks"]["script/test"] == found
    rows = list(read(tmp_path / "out/eval/script/test.jsonl"))
    assert [(row["id"], row["score"]["value"]) for row in rows] == [("t0", 1.0), ("t1", 0.0), ("t2", 0.0), ("t3", 1.0)]
    assert rows[3]["response"] == "<think>so\n</think>right" and rows[2]["truncated"]


def test_responses_without_a_count_enter_no_mean_of_lengths(run):
    found = figures(run(["a|right", "nousage|", "400|x"], "--json", "--max-error-rate", "0.5"))
    assert found["usage"] == {"prompt": 7, "completion": 3, "unreported": 1}
    assert found["response_tokens"] == 3


def test_a_table_shows_every_measure(run):
    result = run(["a|right", "b|wrong"], "--samples", "2")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["script/test", "avg@2", "0.500", "±", "0.500", "2"] in lines
    assert ["pass@2", "0.500", "±", "0.500", "2"] in lines
    assert ["script/test", "4", "0", "0", "4", "0", "28", "12"] in lines


def test_every_sample_has_its_own_seed_and_the_same_one_in_another_evaluation(run, server, tmp_path):
    run(["a|right", "b|right"], "--samples", "3", "--output", str(tmp_path / "one"))
    first = {(one["asked"]["messages"][0]["content"], one["asked"]["seed"]) for one in server.requests()}
    assert len({seed for _, seed in first}) == 6
    run(["a|right", "b|right"], "--samples", "3", "--output", str(tmp_path / "two"))
    assert {(one["asked"]["messages"][0]["content"], one["asked"]["seed"]) for one in server.requests()} == first


def test_a_request_that_failed_is_counted_as_failed_with_its_cause_and_never_as_wrong(run, tmp_path):
    result = run(["a|right", "400|right", "b|broken"], "--json", "--max-error-rate", "0.7")
    assert result.exit_code == 0, result.output
    found = figures(result)
    assert found["estimates"]["avg@1"]["value"] == 1.0
    assert (found["scored"], found["failed"], found["total"]) == (1, 2, 3)
    causes = json.loads(result.stdout)["failures"]
    assert causes["request failed: refused: HTTP 400: no"] == 1 and any("label is broken" in cause for cause in causes)
    assert sorted(kept(tmp_path)) == ["t0", "t2"]


def test_too_many_failures_end_with_status_1_after_the_figures(run):
    result = run(["a|right", "400|right"])
    assert result.exit_code == 1
    assert "1 × request failed: refused: HTTP 400" in result.stdout
    assert "--max-error-rate 0.02" in result.stderr and "again" in result.stderr


def test_nothing_judged_is_status_1_whatever_may_fail(run):
    result = run(["400|right"], "--json", "--max-error-rate", "1")
    assert result.exit_code == 1
    assert figures(result)["estimates"] == {}


def test_a_failed_request_is_made_again_by_the_same_command(run, server):
    prompts = ["again|right", "500,500|right"]
    assert run(prompts, "--tries", "1").exit_code == 1
    assert run(prompts, "--tries", "1").exit_code == 1
    assert run(prompts, "--tries", "1").exit_code == 0
    assert (len(server.asked(prompts[0])), len(server.asked(prompts[1]))) == (1, 3)


def test_a_server_that_refuses_everything_is_not_asked_for_everything(run, server):
    result = run([f"401|{number}" for number in range(200)], "--concurrency", "2")
    assert result.exit_code == 1
    assert "the first 20 tasks failed" in result.stderr and "HTTP 401" in result.stderr
    assert len(server.requests()) <= 22


def test_a_server_that_is_gone_is_given_up_and_what_came_is_kept(run, server, tmp_path):
    result = run(["a|right", *["500"] * 100], "--concurrency", "1", "--tries", "1")
    assert result.exit_code == 1
    assert "20 requests in a row failed" in result.stderr and "goes on from here" in result.stderr
    assert len(server.requests()) == 21 and kept(tmp_path) == ["t0"]


def test_refusals_of_one_task_or_after_a_response_end_nothing(run, server):
    sampled = run(["400|x", "a|right"], "--samples", "30", "--concurrency", "1", "--json", "--max-error-rate", "0.6")
    assert sampled.exit_code == 0 and figures(sampled)["failed"] == 30
    late = run(
        ["a|right", *[f"400|{n}" for n in range(25)]],
        "--concurrency",
        "1",
        "--json",
        "--output",
        str(server.folder / "o"),
    )
    assert late.exit_code == 1 and figures(late)["failed"] == 25


def test_no_more_requests_run_at_once_than_allowed(run, server):
    assert run([f"slow 0.3|{number}" for number in range(12)], "--concurrency", "3").exit_code == 0
    assert 1 < server.most_at_once() <= 3


def test_a_finished_evaluation_asks_nothing_more(run, server):
    first = run(["a|right", "b|right"], "--json")
    assert run(["a|right", "b|right"], "--json").stdout == first.stdout
    assert len(server.requests()) == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", "other"], "model small, now other"),
        (["--seed", "4"], "seed 0, now 4"),
        (["--temperature", "0"], "sampling"),
        (["--limit", "1"], "tasks"),
        (["--samples", "2"], "was begun with samples 1, now 2; use"),
        (["--body", "n=1"], "body"),
        (["--api", "completions"], "api chat, now completions"),
    ],
)
def test_another_command_into_the_same_output_is_refused(run, tmp_path, arguments, named):
    run(["a|right", "b|right"])
    before = (tmp_path / "out/completions/script/test.jsonl").read_bytes()
    result = run(["a|right", "b|right"], *arguments)
    assert result.exit_code == 1 and named in result.stderr, result.stderr
    assert (tmp_path / "out/completions/script/test.jsonl").read_bytes() == before


def test_another_benchmark_goes_into_the_same_output(run, tmp_path):
    assert run(["a|right"]).exit_code == 0
    assert run(["a|right"], benchmark="script/other").exit_code == 0
    assert len(list(read(tmp_path / "out/eval/script/other.jsonl"))) == 2


def test_a_sampling_option_goes_over_the_benchmarks_own(run, server, tmp_path):
    run(["a|right"])
    run(["a|right"], "--temperature", "0.25", "--top-k", "3", "--output", str(tmp_path / "b"))
    assert [one["asked"]["temperature"] for one in server.requests()] == [0.5, 0.25]


def test_the_key_comes_from_the_environment_and_is_written_nowhere(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sk-secret-1")
    result = run(["a|right", "key|x"], "--api-key-env", "TEST_KEY")
    assert server.requests()[0]["key"] == "Bearer sk-secret-1"
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file() and "out" in path.parts)
    assert "wrong key" in result.stdout and "sk-secret" not in result.output + written


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--api-key-env", "NO_SUCH_KEY"], "empty or not set"),
        (["--api", "socket"], "chat or completions"),
        (["--endpoint", "localhost:8000"], "an endpoint is"),
        (["--benchmark", "script/none"], "script/none"),
        (["--set", "seed=1"], "no spec"),
        (["--top-p", "0"], "top_p"),
        (["--model", ""], "--model"),
        (["--option", "prompts=[]"], "no tasks"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(run, server, arguments, told):
    result = run(["a|right"], *arguments)
    assert result.exit_code == 2 and told in result.stderr, result.output
    assert server.requests() == []


def test_a_model_that_is_no_folder_needs_an_endpoint(site):
    result = CliRunner().invoke(
        app, ["eval", "--model", "owner/model", "--domain", "script", "--option", "prompts=[a]"]
    )
    assert result.exit_code == 2 and "--endpoint" in result.stderr


def test_a_benchmark_whose_name_leads_elsewhere_is_refused(run, tmp_path):
    result = run(["a|right"], "--option", "called=a/../../up", benchmark="script/a/../../up")
    assert result.exit_code == 1 and "letters, digits" in result.stderr
    assert not list(tmp_path.rglob("*up*"))


SPEC = """
name: measured
model: owner/model
domains: {script: {prompts: ["a|right", "b|wrong", "c|right"]}}
stages: [{name: one, domains: script, steps: 1}]
evaluation: {limit: 2, samples: 3, seed: 7, benchmarks: [script/test]}
"""


def test_a_spec_gives_domains_and_settings_and_options_replace_them(site, server, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    arguments = ["eval", str(spec), "--endpoint", server.url, "--model", "m", "-o", str(tmp_path / "o"), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--samples", "1"])
    assert result.exit_code == 0, result.output
    assert figures(result)["total"] == 2
    assert json.loads((tmp_path / "o/metrics.json").read_text())["seed"] == 7
    refused = CliRunner().invoke(app, [*arguments, "--domain", "script"])
    assert refused.exit_code == 2 and "--set" in refused.stderr


def command(server, tmp_path, prompts):
    """The command as another process runs it."""
    code = "from cascade_core.cli import main; main()"
    options = ["--domain", "script", "--option", f"prompts={json.dumps(prompts)}", "--benchmark", "script/test"]
    where = ["--endpoint", server.url, "--model", "small", "--output", str(tmp_path / "out"), "--workers", "1"]
    return [sys.executable, "-c", code, "eval", *where, *options, "--concurrency", "4"]


def wait_for(condition, child):
    end = time.monotonic() + 60
    while not condition():
        assert child.poll() is None and time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_command_goes_on_and_asks_nothing_twice_that_came(site, server, tmp_path, number):
    # The first try of four of them hangs until long after the signal.
    prompts = [f"{'hang' if index in range(20, 24) else ''}|{number}{index}" for index in range(60)]
    path = tmp_path / "out/completions/script/test.jsonl"
    child = subprocess.Popen(
        command(server, tmp_path, prompts), env=environment(site), stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: sum("hang" in str(one["asked"]["messages"]) for one in server.requests()) == 4, child)
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 8, child)
    child.send_signal(number)
    _, told = child.communicate(timeout=60)
    assert child.returncode == (130 if number == signal.SIGINT else -number), told
    before = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"id": "t59", "sam')
    done = subprocess.run(command(server, tmp_path, prompts), env=environment(site), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    whole = before[: before.rindex(b"\n") + 1]
    assert path.read_bytes().startswith(whole) and sorted(set(kept(tmp_path))) == sorted(kept(tmp_path))
    assert len(kept(tmp_path)) == 60 and len(server.requests()) <= 60 + 4
    assert [row["response"] for row in read(tmp_path / "out/eval/script/test.jsonl")] == [
        p.split("|")[1] for p in prompts
    ]


def test_a_full_disk_is_told_and_loses_nothing(site, server, tmp_path):
    prompts = [f"n{number}|{'long ' * 400}" for number in range(40)]
    words = shlex.join([*command(server, tmp_path, prompts), "--json"])
    quiet = {**environment(site), "PYTHONDONTWRITEBYTECODE": "1"}
    full = subprocess.run(
        ["bash", "-c", f"ulimit -f 32; {words}"], env=quiet, capture_output=True, text=True, timeout=60
    )
    assert full.returncode == 1 and "no space left" in full.stderr, full.stderr
    before = kept_whole(tmp_path)
    assert 0 < len(before) < 40
    done = subprocess.run(["bash", "-c", words], env=quiet, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert kept(tmp_path)[: len(before)] == before and len(kept(tmp_path)) == 40


def kept_whole(tmp_path):
    """The ids of the whole lines."""
    lines = (tmp_path / "out/completions/script/test.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["id"] for line in lines]


def test_a_terminal_sees_progress(site, server, tmp_path):
    terminal, end = pty.openpty()
    child = subprocess.Popen(
        command(server, tmp_path, ["a|right", "b|right"]),
        env={**environment(site), "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.DEVNULL,
        stderr=end,
    )
    os.close(end)
    seen = b""
    try:
        while part := os.read(terminal, 4096):
            seen += part
    except OSError:  # the other side was closed
        pass
    os.close(terminal)
    assert child.wait(60) == 0
    assert b"answering" in seen and b"2/2" in seen


@pytest.mark.slow
def test_a_model_in_a_folder_is_measured_and_gone_on_with(site, tmp_path):
    from cascade_core.initial import make
    from cascade_core.settings import InitModel

    model, out = tmp_path / "model", tmp_path / "out"
    make(InitModel(hidden_size=16, layers=1, heads=2, context=32), 1, model)
    prompts = json.dumps([f"{number}+1=" for number in range(12)])
    options = ["--domain", "script", "--option", f"prompts={prompts}", "--benchmark", "script/test", "--workers", "1"]
    size = ["--max-response-tokens", "4", "--samples", "2", "--batch-size", "2", "--json"]
    arguments = ["eval", "--model", str(model), *options, *size, "--output", str(out)]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    path = out / "completions/script/test.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 24
    path.write_bytes(b"".join(lines[:11]) + lines[11][:9])  # as a kill in the middle of a batch leaves it
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0 and path.read_bytes() == whole
    assert again.stdout == first.stdout
    (Path(model) / "extra.json").write_text("{}")
    assert "weights" in CliRunner().invoke(app, arguments).stderr
