"""What a domain does while its module is imported is found, each effect by name; what is harmless is not."""

from pathlib import Path
from textwrap import indent

import pytest
from strangers import publish

from cascade_core import plugins
from cascade_core.domain import DomainRef
from cascade_core.probe import ProbeLost, traces
from cascade_core.testing import examine

__all__ = ["publish"]

SOURCE = """
from dataclasses import dataclass
from cascade_core import Domain, Score, Task, hookimpl

@dataclass
class Side(Domain):
    name = "side"
    def tasks(self, split, seed): return [Task(f"{split}-{n}", f"{split} {n}", str(n)) for n in range(5)]
    def score(self, task, response):
SCORE
        return Score(float(response.answer == task.answer))
    def reference(self, task): return task.answer

@hookimpl
def cascade_domains(): return [Side]
"""
ROW = {"domain": "side", "id": "1", "prompt": "one", "answer": "1", "response": "1"}

EFFECTS = [
    ("open('left', 'w').close()", "writes left"),
    ("import os; os.close(os.open('left', os.O_CREAT | os.O_WRONLY))", "writes left"),
    ("import pathlib; pathlib.Path('made').mkdir()", "makes the folder made"),
    ("import os; os.remove('there')", "removes there"),
    ("import os; os.rename('there', 'here')", "moves there"),
    ("import os; os.chdir('/')", "changes the working directory"),
    ("import os; os.environ['SIDE'] = '1'", "changes the environment variable SIDE"),
    ("import os; del os.environ['HOME']", "changes the environment variable HOME"),
    ("import sys; sys.path.append('/nowhere')", "changes the search path of modules"),
    ("import random; random.seed(1)", "changes the shared random numbers"),
    ("import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "changes a signal's handler"),
    ("import threading; threading.Thread(target=threading.Event().wait).start()", "leaves threads running"),
    ("import subprocess; subprocess.run(['true'])", "starts a process"),
    ("import socket; socket.gethostbyname('localhost')", "wants the network: 'localhost'"),
    (
        "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('127.0.0.1', 9))",
        "wants the network: ('127.0.0.1'",
    ),
    ("print('welcome')", "prints 'welcome'"),
    ("import torch", "loads torch, which takes seconds"),
]
HARMLESS = """
import asyncio, os, random, re, socket, sqlite3, tempfile, threading
open(os.devnull, "w").close()
open(__file__).read()
random.Random(1).random()
one, other = socket.socketpair()
one.close(), other.close()
thread = threading.Thread(target=int)
thread.start()
thread.join()
os.environ["SIDE"] = "1"
del os.environ["SIDE"]
import numpy, pandas, requests, sympy
"""


@pytest.fixture
def told(publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`told(on_import, on_score)` is what a domain with these lines is found to do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()

    def noted(on_import: str = "", on_score: str = "pass", seconds: float = 60.0):
        publish("cascade-plugin-side", on_import + SOURCE.replace("SCORE", indent(on_score, " " * 8)))
        return traces("cascade_plugin_side", DomainRef("side"), {}, [ROW, ROW], seconds)

    return noted


@pytest.mark.parametrize(("line", "effect"), EFFECTS, ids=[effect for _, effect in EFFECTS])
def test_an_effect_of_an_import_is_found_and_named(told, line, effect) -> None:
    assert any(found.startswith(effect) for found in told(line).imported)


def test_what_is_harmless_is_not_found(told) -> None:
    found = told(HARMLESS, HARMLESS)
    assert found.imported == found.scored == ()


def test_a_score_does_not_get_the_network_and_is_found_wanting_it_once(told) -> None:
    found = told("", "import socket\ntry: socket.getaddrinfo('localhost', 80)\nexcept OSError: pass")
    assert found.imported == () and found.scored == ("wants the network: 'localhost'",)


def test_a_score_that_prints_and_raises_does_not_spoil_the_answer(told) -> None:
    assert told("", "import os; os.write(1, b'{}'); print('{}'); raise ValueError").scored == ()


@pytest.mark.parametrize(
    ("score", "what"),
    [("import os; os._exit(3)", "ended with status 3"), ("while True: pass", "took more than 1 s")],
)
def test_a_process_that_is_lost_is_told(told, score, what) -> None:
    with pytest.raises(ProbeLost, match=what):
        told("", score, seconds=1.0 if "while" in score else 60.0)


def test_the_check_of_a_domain_tells_of_its_module(publish) -> None:
    site = publish("cascade-plugin-side", "import random; random.seed(1)" + SOURCE.replace("SCORE", ""))
    plugins.registry.cache_clear()
    try:
        found = [item for item in examine(plugins.registry().domain("side")(), tasks=5) if not item.ok]
    finally:
        plugins.registry.cache_clear()
    assert site and [item.check for item in found] == ["importing it has no side effects"]
    assert found[0].detail.startswith("cascade_plugin_side changes the shared random numbers; what a library does")
