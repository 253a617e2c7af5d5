"""Samples with vLLM: `python program.py JOB.json`, in the environment that has vLLM; needs nothing of the core.

The job names the model, vLLM's arguments and two files of JSON lines. `asked` is read to its end and then watched, until a line
`{"end": true}`; every other line is one request: a `key`, the prompt's `tokens`, and `sampling`. `answers` gets one line for each
response as it ends: the `key`, its `tokens` (the end token too) and vLLM's `finish` reason; `beat` is touched while vLLM works.
Where nothing is asked for `idle_seconds`, whoever asked is gone with his machine, and the GPUs are given back.

Tokens come in and go out: no text is made here, and no tokenizer is loaded.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import sys
import time
from pathlib import Path
from typing import IO, Any

_LOOK_SECONDS = 0.05
_BEAT_SECONDS = 1.0
# vLLM queues them itself; a window keeps the memory flat, and is more than any GPU decodes at once.
_MOST_IN_FLIGHT = 4096
_ON_CPU = {"dtype": "float32", "enforce_eager": True, "gpu_memory_utilization": 0.3}


class Asked:
    """The requests, as far as they have been written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.has_ended = False

    def next(self) -> dict[str, Any] | None:
        """The next request; `None` where there is none yet, or no more."""
        if self.has_ended:
            return None
        before = self._file.tell()
        line = self._file.readline()
        if not line.endswith(b"\n"):  # still being written
            self._file.seek(before)
            return None
        request: dict[str, Any] = json.loads(line)
        self.has_ended = bool(request.get("end"))
        return None if self.has_ended else request


def engine(job: dict[str, Any]) -> Any:
    """vLLM's engine with the job's model."""
    from vllm import EngineArgs, LLMEngine
    from vllm.platforms import current_platform

    given = {**(_ON_CPU if current_platform.is_cpu() else {}), **job["arguments"]}
    known = [field.name for field in dataclasses.fields(EngineArgs)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]!r}" if near else ""
            sys.exit(f"cascade: vLLM has no argument {name!r}{hint}; see evaluation.vllm_args")
    return LLMEngine.from_engine_args(EngineArgs(**given))


def sample(model: Any, asked: Asked, answers: IO[bytes], beat: Path, idle_seconds: float) -> None:
    """Answers all requests, in the order in which they end."""
    from vllm import SamplingParams

    keys: dict[str, Any] = {}
    count, last, busy = 0, time.monotonic(), time.monotonic()
    while keys or not asked.has_ended:
        while len(keys) < _MOST_IN_FLIGHT and (request := asked.next()) is not None:
            name, count = str(count), count + 1
            keys[name] = request["key"]
            chosen = SamplingParams(detokenize=False, **request["sampling"])
            model.add_request(name, {"prompt_token_ids": request["tokens"]}, chosen)
        if not keys:
            if time.monotonic() - busy > idle_seconds:
                sys.exit(f"cascade: nothing was asked for {idle_seconds:g} s; the model is given up")
            time.sleep(_LOOK_SECONDS)
            continue
        for output in model.step():
            if output.finished:
                (one,) = output.outputs
                line = {"key": keys.pop(output.request_id), "tokens": list(one.token_ids), "finish": one.finish_reason}
                answers.write(json.dumps(line).encode("ascii") + b"\n")
        answers.flush()
        busy = time.monotonic()
        if time.monotonic() - last > _BEAT_SECONDS:
            beat.touch()
            last = time.monotonic()


def main(path: Path) -> None:
    """Loads the model and samples until the requests have ended."""
    job = json.loads(path.read_text("utf-8"))
    model = engine(job)
    print("cascade: the model is loaded", flush=True)
    with Path(job["asked"]).open("rb") as asked, Path(job["answers"]).open("ab") as answers:
        sample(model, Asked(asked), answers, Path(job["beat"]), job["idle_seconds"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
