"""Benchmarks sampled with vLLM: every response a request of its own, with a seed of its own, kept as soon as it has ended.

    with VllmSampler(vllm, model, folder, log, exams, seed) as sampler:
        for key, sample in sampler.stream(exam, keys): ...

vLLM is started when the first response is missing, and once for all exams. `ask` hands requests over ahead, so that it goes on with
the next benchmark while one is judged; with `finish` it ends by itself as soon as all have come. A killed evaluation leaves its
answers in `folder`, and none of them is sampled again. At temperature 0 a task's samples are one and the same, asked once.

With a seed for each response, what it is does not depend on the responses beside it, as far as vLLM's arithmetic does not: its
kernels round differently in batches of different sizes. This module judges nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cascade_core.completions import Key
from cascade_core.errors import TrainerError
from cascade_core.evaluate import Exam
from cascade_core.folder import load_json
from cascade_core.rows import write_json
from cascade_core.sampling import Sample, check_length
from cascade_core.vllm_sampling import Vllm, pinned
from cascade_core.vllm_sampling.launch import end_earlier
from cascade_core.vllm_sampling.session import Session, kept

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_WHOLE = ("stop", "length")
Place = tuple[str, str, int]
"""The name of an exam, the id of a task, the number of a sample."""


class VllmSampler:
    """Samples the responses to some exams from the model in a folder.

    Args:
        folder: of its own, for what it asks and is answered; removed when all went well.
        log: where vLLM's output is appended.
        exams: all that will be asked for; they say how long a prompt with its response can be.
        seed: of the evaluation; each response's own follows from it.
        modes: how a task's mode is said to the model.

    Raises:
        TrainerError: the model's tokenizer cannot be read, a prompt leaves no room for a response in its context, or what an
            earlier evaluation in the folder left running cannot be ended.
    """

    def __init__(
        self,
        vllm: Vllm,
        model: Path,
        folder: Path,
        log: Path,
        exams: Sequence[Exam],
        seed: int,
        modes: str = "switch",
    ) -> None:
        from cascade_core.pretrained import Decoder, load_tokenizer
        from cascade_core.template import encode

        self._vllm, self._model, self._folder, self._log, self._seed = vllm, model, folder, log, seed
        self._modes = modes
        tokenizer = load_tokenizer(model)
        self._decoder = Decoder(tokenizer)
        self._ends, context = ends_and_context(model, tokenizer)
        self._prompts = {(exam.name, row["id"]): encode(tokenizer, row, modes) for exam in exams for row in exam.tasks}
        self._longest = 0
        for exam in exams:
            for row in exam.tasks:
                length, response = len(self._prompts[exam.name, row["id"]][0]), exam.sampling.max_response_tokens
                check_length(row, length, response, context)
                self._longest = max(self._longest, length + response)
        self._found: dict[Place, Sample] = {}
        self._asked: set[Place] = set()
        self._session: Session | None = None
        end_earlier(vllm, folder)  # whose record goes with the folder, where nothing of it is kept
        self._recall(exams)

    def __enter__(self) -> VllmSampler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.__exit__(kind, cause, trace)
        if kind is None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, exam: Exam, keys: Iterable[Key]) -> None:
        """Hands over what has neither come nor been asked."""
        for key in keys:
            place = _source(exam, key)
            if place in self._found or place in self._asked:
                continue
            if self._session is None:
                self._session = self._started()
            self._asked.add(place)
            self._session.ask(
                {"key": place, "tokens": self._prompts[exam.name, key[0]][0], "sampling": self._sampling(exam, place)}
            )
        if self._session is not None:
            self._session.flush()

    def finish(self) -> None:
        """Says that nothing more will be asked."""
        if self._session is not None:
            self._session.finish()

    def stream(self, exam: Exam, keys: Sequence[Key]) -> Iterator[tuple[Key, Sample]]:
        """The responses with these keys, in the order in which they come.

        Raises:
            TrainerError: vLLM failed; says why.
        """
        self.ask(exam, keys)
        waiting: dict[Place, list[Key]] = {}
        for key in keys:
            waiting.setdefault(_source(exam, key), []).append(key)
        for place in [place for place in waiting if place in self._found]:
            yield from ((key, self._found[place]) for key in waiting.pop(place))
        if not waiting:
            return
        assert self._session is not None
        for answer in self._session.answers():
            place = self._take(answer)
            yield from ((key, self._found[place]) for key in waiting.pop(place, ()))
            if not waiting:
                return

    def _take(self, answer: dict[str, Any]) -> Place:
        exam, task, sample = answer["key"]
        if answer["finish"] not in _WHOLE or not answer["tokens"]:
            raise TrainerError(f"vLLM ended a response to task {task!r} of {exam!r} with {answer['finish']!r}")
        tokens = answer["tokens"]
        _, prefill = self._prompts[exam, task]
        place = (exam, task, sample)
        self._found[place] = Sample(self._decoder.text(tokens), len(tokens), tokens[-1] not in self._ends, prefill)
        return place

    def _sampling(self, exam: Exam, place: Place) -> dict[str, Any]:
        """One request's `SamplingParams`, by their names there."""
        from cascade_core.respondent import seed_of

        wanted = exam.sampling
        return {
            "temperature": wanted.temperature,
            "top_p": wanted.top_p,
            "top_k": wanted.top_k,
            "max_tokens": wanted.max_response_tokens,
            "seed": seed_of(self._seed, (place[1], place[2])),
            "stop_token_ids": self._ends,
        }

    def _started(self) -> Session:
        wide = self._vllm.tensor_parallel_size
        arguments = {
            "model": str(self._model.absolute()),
            "skip_tokenizer_init": True,
            "trust_remote_code": False,
            "generation_config": "vllm",  # nothing is filled in from the model's own preferences
            "tensor_parallel_size": wide,
            "disable_log_stats": True,
            "max_model_len": self._longest,
            **({"distributed_executor_backend": "ray"} if self._vllm.ray else {}),
            **self._vllm.arguments,
        }
        _free_memory()
        return Session(self._vllm, arguments, self._folder, self._log).__enter__()

    def _recall(self, exams: Sequence[Exam]) -> None:
        """Takes in what an evaluation of the same model in the same way has left; of another one, nothing is kept."""
        pins: dict[str, Any] = {
            "model": {
                file.name: [file.stat().st_size, file.stat().st_mtime_ns]
                for file in sorted(self._model.iterdir())
                if file.is_file()
            },
            "exams": {exam.name: exam.fingerprint for exam in exams},
            "seed": self._seed,
            "modes": self._modes,
            "arguments": pinned(self._vllm.arguments),
        }
        begun = self._folder / "begun.json"
        before: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            before = load_json(begun)
        known = before.get("exams", {})
        if {**before, "exams": None} != {**pins, "exams": None}:
            shutil.rmtree(self._folder, ignore_errors=True)
        wanted = {name for name, fingerprint in pins["exams"].items() if known.get(name) == fingerprint}
        for answer in kept(self._folder):
            exam, task, _ = answer["key"]
            if exam in wanted and (exam, task) in self._prompts and answer["finish"] in _WHOLE:
                self._take(answer)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(begun, pins)


def ends_and_context(model: Path, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], int | None]:
    """The ids that end a response and the longest sequence in tokens, as `pretrained` reads them off a loaded model.

    Raises:
        TrainerError: the model's configuration cannot be read.
    """
    from types import SimpleNamespace
    from typing import cast

    from transformers import AutoConfig, GenerationConfig, PreTrainedModel

    from cascade_core.pretrained import context_length, end_tokens

    try:
        config = AutoConfig.from_pretrained(str(model), trust_remote_code=False)
        try:
            generation = GenerationConfig.from_pretrained(str(model))
        except OSError:  # transformers then makes one of the configuration
            generation = GenerationConfig.from_model_config(config)
    except (OSError, ValueError, KeyError, TypeError) as cause:
        reason = " ".join(str(cause).split())[:200]
        raise TrainerError(f"no configuration can be read from {model} ({reason}); check the model setting") from cause
    unloaded = cast(PreTrainedModel, SimpleNamespace(config=config, generation_config=generation))
    return end_tokens(unloaded, tokenizer), context_length(unloaded)


def _source(exam: Exam, key: Key) -> Place:
    """The response that a key gets."""
    return exam.name, key[0], 0 if exam.sampling.temperature == 0 else key[1]


def _free_memory() -> None:
    """Gives back what a stage that was trained in this process has left on the GPU."""
    import gc

    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()
        torch.cuda.empty_cache()
