"""A stage's command on its way: where its files are, what its processes see, on this machine or on a Ray cluster that runs already.

    with launched(engine, command, folder, (address, token)) as job:
        ...  # a Running

On this machine the job has a Ray of its own and gets its variables from this process. On a cluster (`engine.ray`) it is submitted,
and `job` is the program that follows it (`openrlhf_cluster.py`). Both end with the body; `end_earlier` ends what a start before this
one could not.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from cascade_core.rows import write_text
from cascade_core.settings import Engine, is_path
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers.openrlhf_args import Places, submitted
from cascade_core.trainers.openrlhf_client import ADDRESS, TOKEN_FILE
from cascade_core.trainers.openrlhf_cluster import Submission, followed, lend, variables
from cascade_core.trainers.openrlhf_job import Running, end_old


def places(engine: Engine, folder: Path, model: Path, output: Path) -> Places:
    """The files of a stage; for a cluster by paths that are the same on all its machines, the agent's among them."""
    if engine.ray is None:
        return Places.of(folder, model, output)
    folder = folder.absolute()
    agent = folder / "trainer" / "lent" / "cascade_core" / "trainers" / "openrlhf_agent.py"
    is_local = is_path(str(model)) or model.exists()
    return Places.of(folder, model.absolute() if is_local else model, output.absolute(), agent)


def end_earlier(engine: Engine, folder: Path) -> None:
    """Ends what an earlier start left of the stage in `folder`.

    Raises:
        TrainerError: OpenRLHF is not there; or something still runs and cannot be ended.
    """
    end_old(folder / "trainer" / "job.json")
    engines.check(engine)
    _submission(engine, folder).end()


@contextmanager
def launched(
    engine: Engine, command: Sequence[str], folder: Path, service: tuple[str, str] | None = None, gpus: int = 0
) -> Iterator[Running]:
    """Runs a command of `openrlhf_args.command` while the body does.

    Args:
        folder: the stage's; `command.txt` and `train.log` in it are written, and `trainer/`.
        service: the address of the service of the stage and its token, where its samples are judged.
        gpus: those that the command uses itself on a cluster, where its actors ask for none.
    """
    write_text(folder / "command.txt", shlex.join(command) + "\n")
    log, record = folder / "train.log", folder / "trainer" / "job.json"
    if engine.ray is None:
        env = engines.environment(os.environ, engine, folder / "trainer" / "lent", *(service or ("", "")))
        with Running(command, env, log, record) as running:
            yield running
        return
    mark = uuid4().hex
    submission = _submission(engine, folder)
    lent = lend(folder.absolute() / "trainer" / "lent")
    with _secret(folder.absolute() / "trainer" / "token", service[1] if service else "") as token:
        env = variables(engine, lent, os.environ)
        env |= {ADDRESS: service[0] if service else "", TOKEN_FILE: str(token)}
        words = submission.prepare(engine, folder.name, mark, submitted(command), env, gpus)
        with followed(submission, words, mark, log, record) as running:
            yield running


def _submission(engine: Engine, folder: Path) -> Submission:
    return Submission(folder.absolute() / "trainer" / "submission.json", engines.interpreter(engine))


@contextmanager
def _secret(path: Path, text: str) -> Iterator[Path]:
    """A file that only its owner reads, while the body runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    path.write_text(text, "utf-8")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
