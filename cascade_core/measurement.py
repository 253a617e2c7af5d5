"""What is measured after a stage: of a policy every benchmark, of a reward model every benchmark of pairs.

Rows that exist are not made again. Which exams there are after which stage is the run's to say; what one of them is, is in
`evaluate.py` and `pairs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cascade_core import evaluate, pairs
from cascade_core.folder import StageFolder
from cascade_core.scoring import Scorer
from cascade_core.settings import Spec

Samplers = Callable[[Sequence[evaluate.Exam]], AbstractContextManager[evaluate.Sampler | evaluate.Streamer | None]]
"""Gives whoever samples some exams, while they are taken."""
Before = Callable[[str], Path | None]
"""A benchmark's name to its rows after the last stage that it was measured after."""


def measured(
    spec: Spec,
    stage: StageFolder,
    model: Path,
    exams: Sequence[evaluate.Exam | pairs.PairExam],
    scorer: Scorer,
    before: Before,
    sampling: Samplers,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and result of each exam, in turn, as `metrics.json` has them.

    Raises:
        TooManyFailures: more could not be judged than `scoring.max_error_rate` allows.
        TrainerError: the model cannot be read.
    """
    left = [exam for exam in exams if not stage.eval_file(exam.name).exists()]
    _read_pairs(spec, stage, model, [exam for exam in left if isinstance(exam, pairs.PairExam)])
    with sampling([exam for exam in left if isinstance(exam, evaluate.Exam)]) as sampler:
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
