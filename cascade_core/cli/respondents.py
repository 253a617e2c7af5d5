"""Who answers in `cascade eval`, as its options say: a model behind an endpoint, or one in a folder, sampled here or by vLLM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from cascade_core.endpoint import Endpoint
from cascade_core.errors import UsageError
from cascade_core.evaluate import Exam
from cascade_core.prepare import local_model
from cascade_core.respondent import Local, LocalVllm, Respondent, Served
from cascade_core.settings import Model, Modes, Spec
from cascade_core.vllm_sampling import Vllm, cluster


def served(server: Endpoint, concurrency: int, exams: Sequence[Exam]) -> Served:
    """The model of an endpoint, which must be able to say the modes of all tasks.

    Raises:
        UsageError: it cannot.
    """
    for mode in sorted({str(row.get("mode") or "") for exam in exams for row in exam.tasks}):
        server.check_mode(mode)
    return Served(server, concurrency)


def local(model: str, batch_size: int, modes: Modes) -> Local:
    """A model in a folder, sampled in this process.

    Raises:
        UsageError: there is no such folder.
    """
    if not Path(model).is_dir():
        raise UsageError(f"{model!r} is no folder; name the server of a model that is served with --endpoint")
    return Local(local_model(model), batch_size, modes)


def with_vllm(vllm: Vllm, model: str, folder: Path, exams: Sequence[Exam], seed: int, modes: Modes) -> LocalVllm:
    """A model in a folder, sampled by vLLM, whose process works in the `folder` of the evaluation.

    Raises:
        UsageError: there is no folder of that model.
    """
    if not Path(model).is_dir():
        raise UsageError(f"{model!r} is no folder, which --vllm samples from")
    return LocalVllm(vllm, local_model(model), folder, exams, seed, modes)


def vllm_of(python: str, tensor_parallel_size: int | None, spec: Spec | None) -> Vllm:
    """The vLLM of an interpreter, with what the spec says of it where no option does."""
    wide = tensor_parallel_size or (spec.evaluation.tensor_parallel_size if spec else None) or 1
    found = Vllm(str(Path(python).expanduser()), wide)
    if spec is None:
        return found
    return replace(found, arguments=spec.evaluation.vllm_args, cluster=cluster(spec.engine, wide))


def opened(respondent: Respondent) -> AbstractContextManager[object]:
    """Ends what the respondent started."""
    return respondent if isinstance(respondent, LocalVllm) else nullcontext()


def modes_of(given: str, spec: Spec | None) -> Modes:
    """How modes are said to the model: as given, or as the spec says.

    Raises:
        UsageError: there is no such way.
    """
    if given and given not in get_args(Modes):
        raise UsageError(f"--modes is {', '.join(get_args(Modes))}, found {given!r}")
    known = spec.model if spec else Model(path="./model")
    return known.model_copy(update={"modes": given} if given else {}).modes


def api_of(given: str) -> Literal["chat", "completions"]:
    """Which of an endpoint's two ways to be asked is meant.

    Raises:
        UsageError: neither.
    """
    if given == "chat" or given == "completions":
        return "chat" if given == "chat" else "completions"
    raise UsageError(f"--api is chat or completions, found {given!r}")


def key_of(name: str) -> str:
    """The API key that an environment variable holds; none where no variable is named.

    Raises:
        UsageError: it holds nothing.
    """
    key = os.environ.get(name, "").strip() if name else ""
    if name and not key:
        raise UsageError("the environment variable that --api-key-env names is empty or not set")
    return key
