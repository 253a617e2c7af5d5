"""A run of `cascade run` whose grader breaks in its third step: as it was when the command had ended, and as the same command finished it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import psutil
from openrlhf_runs import Cascade, command, finished

EXTENSION = Path(__file__).parent / "extension"
STEPS, SLOTS, SAMPLES, BROKEN = 4, 8, 4, 2
SPEC = """
name: graded
seed: 1
trainer: openrlhf
engine: {{python: {python}, cpu: true, stall_seconds: 600}}
model: {{init: {{hidden_size: 64, layers: 2, heads: 2, context: 64, tokenizer: {{phrases: [train]}}}}}}
domains:
  graded: {{grader: "{grader}"}}
stages:
  - name: rl
    domains: graded
    steps: 4
    save_every: 2
    micro_batch: 8
    rollout: {{prompts_per_step: 8, samples_per_prompt: 4, max_response_tokens: 12}}
    optim: {{lr: 1e-4}}
    overlong: keep # nearly all responses are cut
evaluation: {{benchmarks: []}}
scoring: {{workers: 1, max_error_rate: 0.1}}
"""


@dataclass(frozen=True)
class Stopped:
    """What there was when the command had ended for the first time, and the run when it had ended for the second.

    `checkpoints` is a copy of OpenRLHF's at the first end, of which the run keeps the newest two only.
    """

    status: int
    told: str
    running: list[list[str]]
    rows: list[dict[str, Any]]
    files: list[str]
    checkpoints: Path
    run: Cascade


class Grader(ThreadingHTTPServer):
    """Half of all texts are right, so that rewards vary in any group of responses. Until it is mended, it cannot judge tasks of the third step and later."""

    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Judging)
        self.is_mended = False

    def hear(self, number: int, text: str) -> None:
        """Called before a response is judged, by the thread of its request."""


Made = TypeVar("Made", bound=Grader)


class _Judging(BaseHTTPRequestHandler):
    server: Grader

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.hear(asked["number"], asked["text"])
        is_well = self.server.is_mended or asked["number"] < BROKEN * SLOTS
        told = str(float(zlib.crc32(asked["text"].encode()) & 1)).encode()
        with suppress(ConnectionError):  # of whoever was killed meanwhile
            self.send_response(200 if is_well else 503)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def grading(make: Callable[[], Made] = Grader) -> Iterator[Made]:
    with make() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def running(folder: Path) -> list[list[str]]:
    """Command lines of the processes that have to do with that folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in part for part in (*process.cmdline(), *process.environ().values())):
                found.append(process.cmdline())
        except psutil.Error:
            continue
    return found


def files(folder: Path) -> list[str]:
    """All files of a run but those inside OpenRLHF's own, models and boards."""
    left_out = {"trainer", "checkpoint", "tensorboard"}
    inner = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path) for path in inner if not left_out & set(path.parts))


def stopped_and_finished(engine: Path, place: Path) -> Stopped:
    """Runs it, mends the grader, and gives the same command again."""
    spec, folder, kept = place / "spec.yaml", place / "run", place / "checkpoints"
    path = os.pathsep.join(filter(None, [str(EXTENSION), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path}
    with grading() as grader:
        spec.write_text(SPEC.format(python=engine, grader=f"http://127.0.0.1:{grader.server_port}"))
        done = subprocess.run(command(spec, folder), env=env, capture_output=True, text=True, timeout=900, check=False)
        left, run = running(folder), Cascade(folder)
        shutil.copytree(run.stage("rl") / "trainer" / "checkpoints", kept)
        first = (done.returncode, done.stdout + done.stderr, left, run.rollouts("rl"), files(folder))
        grader.is_mended = True
        return Stopped(*first, kept, finished(spec, folder, PYTHONPATH=str(EXTENSION)))
