"""A job on a Ray cluster that runs already (`engine.ray`), a stage's or an evaluation's: what it is given, and how it is ended.

Its folder must be one that all machines of the cluster see at the same path, and `engine.python` the interpreter that
Ray was started with on each of them. The job is submitted and followed by `openrlhf_submit.py`, which runs under the guard of
`openrlhf_job.py` like a job on this machine. `submission.json` says which job was submitted, before it is; whoever starts the stage
again ends that one first, so that there are never two. The token of the service is in a file that the job is told the
path of: what Ray shows in its dashboard and its logs holds no secret. `followed` runs a submission while a body does.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pluggy

import cascade_core
from cascade_core.errors import TrainerError
from cascade_core.rows import write_json
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_guard as guard
from cascade_core.trainers.openrlhf_job import Running

_PROGRAM = Path(__file__).with_name("openrlhf_submit.py")
_END_SECONDS = 240.0  # more than the program needs that ends a job
PASSED = ("NCCL_", "GLOO_", "TORCH_NCCL_")
"""Variables of this process that the job gets, by how they begin; all others are set where Ray is started."""

_UNBEGUN = re.compile(r"cascade: (too few GPUs: .*|no Ray cluster can be asked at .*|job \S+ wait(?:s|ed) for .*)")


def host(engine: Engine) -> str:
    """The address of this machine by which the machines of the cluster reach it; the loopback address without a cluster.

    Raises:
        TrainerError: the cluster's own name is not known here.
    """
    if engine.ray is None:
        return "127.0.0.1"
    if engine.host is not None:
        return engine.host
    parts = urlsplit(engine.ray)
    try:
        family, kind, _, _, place = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as channel:  # a datagram socket chooses its way and sends nothing
            channel.connect(place)
            return str(channel.getsockname()[0])
    except OSError as cause:
        why = str(cause.strerror or cause).lower()
        raise TrainerError(f"engine.ray {engine.ray} cannot be reached from here: {why}") from cause


def lend(folder: Path) -> Path:
    """Copies what the agent is part of into a folder that is made, for machines on which it is not installed."""
    shutil.rmtree(folder, ignore_errors=True)
    for package in (cascade_core, pluggy):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    return folder


def variables(engine: Engine, lent: Path, base: Mapping[str, str]) -> dict[str, str]:
    """The variables of the job's processes beside those of the Ray that runs them; all of them can be read in its dashboard."""
    found = {
        **{name: value for name, value in base.items() if name.startswith(PASSED)},
        "PYTHONPATH": str(lent),
        "PYTHONUNBUFFERED": "1",
        "RAY_DEDUP_LOGS": "0",
        "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",  # OpenRLHF names some of these itself, and Ray would refuse the two together
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if engine.cpu:
        from cascade_core import rehearsal

        return rehearsal.environment(found)
    return found


class Submission:
    """One job on a cluster, and its record.

    Args:
        record: the file that says which job it is.
        python: the interpreter that has Ray, here and there.
    """

    def __init__(self, record: Path, python: str) -> None:
        self.record, self._python = record, python

    def prepare(
        self,
        engine: Engine,
        name: str,
        mark: str,
        entrypoint: Sequence[str],
        env: Mapping[str, str],
        gpus: int = 0,
        asks: str = "",
    ) -> list[str]:
        """Writes down what is going to be submitted; the command that submits and follows it.

        Args:
            name: of the stage or the evaluation; a part of the job's name.
            mark: what its processes are found by.
            gpus: those of one machine that the entrypoint uses itself; 0 where its actors ask for them.
            asks: who asks for how many, by which setting; a stage by default.
        """
        from cascade_core.trainers.openrlhf_engine import cluster

        total = gpus or max(2 if engine.cpu else 1, cluster(engine).gpus)
        of_stage = f"{gpus} on one machine (engine.gpus)" if gpus else f"{total} (engine.nodes × engine.gpus)"
        told = {
            "address": engine.ray,
            "id": f"cascade-{re.sub('[^A-Za-z0-9_-]', '-', name)}-{mark[:12]}",
            "entrypoint": shlex.join(entrypoint),
            "runtime_env": {"env_vars": {**env, guard.MARK: mark}},
            "entrypoint_gpus": gpus,
            "gpus": total,
            "asks": asks or f"the stage asks for {of_stage}",
            "mark": mark,
            "sweep": shlex.join(self._words(env, "openrlhf_submit.py", "sweep", "openrlhf_guard.py", mark)),
        }
        write_json(self.record, told)
        return [self._python, "-P", str(_PROGRAM), "run", str(self.record)]

    def _words(self, env: Mapping[str, str], program: str, what: str, *rest: str) -> list[str]:
        """The command on the cluster for a program that was lent with the agent."""
        lent = Path(env["PYTHONPATH"].split(os.pathsep)[-1]) / "cascade_core" / "trainers"
        return [
            self._python,
            "-P",
            str(lent / program),
            what,
            *(str(lent / one) if one.endswith(".py") else one for one in rest),
        ]

    def end(self) -> None:
        """Ends the job that the record names, and what is left of it; without a record there is none.

        Raises:
            TrainerError: it may still run; says where, and how to end it by hand.
        """
        told = self._told()
        if told is None:
            return
        words = [self._python, "-P", str(_PROGRAM), "end", str(self.record)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_END_SECONDS, check=False)
            why = "" if done.returncode == 0 else _last(done.stdout) or _last(done.stderr)
            ended = done.returncode == 0
        except (OSError, subprocess.TimeoutExpired) as cause:
            ended, why = False, " ".join(str(cause).split())[:300]
        if not ended:
            raise TrainerError(
                f"job {told['id']} on the Ray at {told['address']} may still run and cannot be ended: {why}; end it with:"
                f" ray job stop --address {told['address']} {told['id']}, then remove {self.record}"
            )
        self.record.unlink(missing_ok=True)

    def forget(self) -> None:
        """The job has ended by itself, and nothing is to be ended."""
        self.record.unlink(missing_ok=True)

    def _told(self) -> dict[str, Any] | None:
        try:
            told = json.loads(self.record.read_text("utf-8"))
            return told if isinstance(told, dict) and {"address", "id", "sweep"} <= set(told) else None
        except (OSError, ValueError):
            return None


@contextmanager
def followed(submission: Submission, words: Sequence[str], mark: str, log: Path, record: Path) -> Iterator[Running]:
    """Runs the command that `prepare` gave while the body does; the job has ended with the body, or the next start ends it.

    Args:
        mark: that of the job.
        log: where the job's output is appended.
        record: where it is written which process follows it.
    """
    is_over = False
    try:
        with Running(words, os.environ, log, record, mark) as running:
            yield running
        is_over = running.poll() == 0
    finally:
        if is_over:
            submission.forget()
        else:
            _ended(submission, log)


def _ended(submission: Submission, log: Path) -> None:
    """Whatever ended the body is to be told; that its job does not end, the next start tells, which ends it first."""
    try:
        submission.end()
    except TrainerError as cause:
        with log.open("a", encoding="utf-8") as out:
            out.write(f"cascade: {cause}\n")


def unbegun(lines: Sequence[str]) -> str:
    """Why a job has not begun, where that is the last that was said of it; `""` otherwise."""
    found = _UNBEGUN.fullmatch(lines[-1]) if lines else None
    return found[1] if found else ""


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].removeprefix("cascade: ")[:300] if lines else ""
