"""`cascade serve` as a process: how it starts, how it ends, what it says when it cannot."""

import signal
import socket
import threading
import time

import httpx2
import pytest
from echoed import wait_until
from serving import CASCADE, EXTENSION, Program
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.rows import write

ROW = {"domain": "faulty", "id": "t", "prompt": "p", "response": "right", "request_id": "r"}


def serve(*more):
    command = ("serve", "--domain", "faulty", "--port", "0", "--workers", "1", "--json", *more)
    return Program(*CASCADE, *command, PYTHONPATH=EXTENSION)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_drains_and_the_next_service_goes_on(number, tmp_path):
    program, told, may = serve(), [], tmp_path / "may-end"
    rows = [{**ROW, "response": f"until {may}"}]
    asked = threading.Thread(target=lambda: told.append(program.served.post("/score", {"rows": rows})))
    asked.start()
    wait_until(lambda: httpx2.get(f"{program.served.url}/health").json()["waiting"] == 1)
    program.process.send_signal(getattr(signal, number))
    time.sleep(0.5)
    may.touch()
    asked.join(60)
    assert told[0][1]["scores"][0]["value"] == 1.0
    assert program.end() == 0
    again = serve()
    assert again.served.post("/score", {"rows": [ROW]})[0] == 200
    again.process.terminate()
    assert again.end() == 0


def refused(*arguments, status=2):
    found = CliRunner().invoke(app, ["serve", *arguments])
    assert found.exit_code == status
    return found.output


def test_a_port_in_use_is_told_with_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = refused("--domain", "math", "--port", str(port))
    assert f"127.0.0.1:{port}: address already in use; name another" in told


def test_another_host_is_refused_without_a_token(monkeypatch, tmp_path):
    assert "--token-env or --token-file" in refused("--domain", "math", "--host", "0.0.0.0")
    monkeypatch.delenv("CASCADE_NO_SUCH_TOKEN", raising=False)
    told = refused("--domain", "math", "--host", "0.0.0.0", "--token-env", "CASCADE_NO_SUCH_TOKEN")
    assert "'CASCADE_NO_SUCH_TOKEN', which is to hold a secret, is not set" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "a spec or --domain"),
        (("--domain", "nowhere"), "nowhere"),
        (("--domain", "math", "--option", "no=1"), "no"),
        (("--domain", "math", "--set", "seed=1"), "no spec is given"),
        (("--domain", "math", "--domain", "if", "--option", "a=1"), "--option is for one domain"),
        (("spec.yaml", "--domain", "math"), "change it with --set"),
        (("--domain", "math", "--host", "no.such.host.invalid", "--token-file", "token"), "nothing can listen at"),
        (("--domain", "math", "--prompts", "prompts.jsonl"), "has tasks of other"),
        (("--domain", "math", "--prompts", "absent.jsonl"), "--prompts absent.jsonl is no file"),
        (("--domain", "math", "--unjudged", "nan"), "'--unjudged'"),
        (("--domain", "math", "--unjudged", "-inf"), "'--unjudged'"),
        (("--domain", "math", "--drain-seconds", "inf"), "'--drain-seconds'"),
        (("--domain", "math", "--drain-seconds", "nan"), "'--drain-seconds'"),
        (("--domain", "math", "--keep-seconds", "nan"), "'--keep-seconds'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_served_is_told(arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("t0ken")
    write(tmp_path / "prompts.jsonl", [{"domain": "other", "id": "a", "prompt": "p"}])
    found = CliRunner().invoke(app, ["serve", *arguments])
    assert found.exit_code in (1, 2) and told in found.output
