"""Measures one model after a stage: a policy on benchmarks, or a reward model on benchmarks of pairs.

Rows that exist are not made again. Which model is measured on what after which stage is the run's to say; what one of them is, is in
`evaluate.py` and `pairs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade_core import evaluate, pairs, vllm_sampling
from cascade_core.folder import StageFolder
from cascade_core.scoring import Scorer
from cascade_core.settings import Spec

SAMPLING = "sampling"  # in a stage's folder, while it is measured
Before = Callable[[str], Path | None]
"""A benchmark's name to its rows after the last stage that it was measured after."""


def measured(
    spec: Spec,
    stage: StageFolder,
    model: Path,
    exams: Sequence[evaluate.Exam | pairs.PairExam],
    scorer: Scorer,
    before: Before,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and result of each exam, in turn, as `metrics.json` has them.

    Raises:
        TooManyFailures: more could not be judged than `scoring.max_error_rate` allows.
        TrainerError: the model cannot be read.
    """
    left = [exam for exam in exams if not stage.eval_file(exam.name).exists()]
    _read_pairs(spec, stage, model, [exam for exam in left if isinstance(exam, pairs.PairExam)])
    of_policy = [exam for exam in left if isinstance(exam, evaluate.Exam)]
    with _sampler(spec, stage, model, of_policy) as sampler:
        for exam in exams:
            path = stage.eval_file(exam.name)
            if isinstance(exam, pairs.PairExam):
                yield exam.name, pairs.report(exam, path, before(exam.name))
                continue
            if sampler is not None and not path.exists():
                seed, rate = spec.evaluation.seed, spec.scoring.max_error_rate
                evaluate.take(exam, sampler, scorer, path, seed=seed, max_error_rate=rate)
            yield exam.name, evaluate.report(exam, path, before(exam.name))


def _read_pairs(spec: Spec, stage: StageFolder, model: Path, left: Sequence[pairs.PairExam]) -> None:
    if not left:
        return
    from cascade_core.reward_model import RewardReader

    reader = RewardReader(model, spec.evaluation.batch_size)
    for exam in left:
        pairs.take(exam, reader, stage.eval_file(exam.name), max_error_rate=spec.scoring.max_error_rate)


@contextmanager
def _sampler(
    spec: Spec, stage: StageFolder, model: Path, left: Sequence[evaluate.Exam]
) -> Iterator[evaluate.Sampler | evaluate.Streamer | None]:
    """Whoever samples the exams that are left, as the spec says; nobody where none is."""
    settings, vllm = spec.evaluation, vllm_sampling.chosen(spec)
    if not left:
        yield None
    elif vllm is None:
        from cascade_core.sampling import LocalSampler

        yield LocalSampler(model, settings.batch_size, spec.model.modes)
    else:
        from cascade_core.vllm_sampling.sampler import VllmSampler

        place, log = stage.path / SAMPLING, stage.path / "vllm.log"
        with VllmSampler(vllm, model, place, log, left, settings.seed, spec.model.modes) as sampler:
            for exam in left:  # all at once: vLLM goes on while they are judged, and ends when they are answered
                sampler.ask(exam, exam.keys)
            sampler.finish()
            yield sampler
