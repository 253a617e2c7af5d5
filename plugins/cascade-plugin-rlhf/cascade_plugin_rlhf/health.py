"""Signs that a policy learns to please its reward model rather than people, and that scores no longer mean what they did.

- A stage's reward goes with the surface of answers: the correlation inside groups with length, lists, headings or bold, the mean over
  the stage's last quarter of steps, reaches a level.
- The mean score of the policy's answers to a benchmark's fixed prompts has fallen since the stage before by a level, in standard deviations
  of the scores. (It is meant to rise where the domain is trained.)
- The mean score of the references to these prompts, which are fixed texts, has moved by that level, up or down: the reward model is
  another, or is served otherwise.
- The share of answers, or of references, that were too long for the reward model and lost their beginning reaches a level: over the stage's last
  quarter of steps, or in a benchmark.

Scores have no unit, so that a level in standard deviations is the only one that fits every reward model. A warning stops nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from cascade_core.domain import Estimate, Figures

_PREFIX = "correlation/surface_"
_LEAST_STEPS = 3


def correlated(steps: Sequence[Mapping[str, float]], level: float) -> Iterator[str]:
    """A line for each surface that the reward went with, over the last quarter of the steps and at least three."""
    last = _last(steps)
    for name in sorted({name for step in last for name in step if name.startswith(_PREFIX)}):
        found = [step[name] for step in last if name in step]
        mean = math.fsum(found) / len(found)
        if len(found) >= _LEAST_STEPS and abs(mean) >= level:
            surface = name.removeprefix(_PREFIX)
            yield (
                f"the reward goes with the {surface} of answers: correlation {mean:+.2f} inside groups, mean of the last {len(found)} steps"
                f" (warn_correlation is {level:g})"
            )


def drifted(now: Mapping[str, Figures], before: Mapping[str, Figures], level: float) -> Iterator[str]:
    """A line for each benchmark whose answers score worse, or whose fixed references score otherwise, than after the stage before."""
    for name in sorted(set(now) & set(before)):
        for figure, what, is_fixed in (
            ("score", "the policy's answers to", False),
            ("reference_score", "the fixed reference answers of", True),
        ):
            if figure not in now[name] or figure not in before[name]:
                continue
            new, old = now[name][figure], before[name][figure]
            spread = max(_deviation(before[name].get("reference_score", old)), _deviation(old))
            moved = abs(new.value - old.value) if is_fixed else old.value - new.value
            if moved > level * spread:
                yield (
                    f"{what} benchmark {name!r} score {new.value:.3g}, and scored {old.value:.3g} after the stage before: more than"
                    f" {level:g} standard deviations of {spread:.3g} (warn_drift)"
                )


def cut(steps: Sequence[Mapping[str, float]], now: Mapping[str, Figures], level: float) -> Iterator[str]:
    """A line for the steps, and one for each benchmark, where so many texts were too long for the reward model; one step is enough."""
    cure = f"let it read more tokens, or shorten prompts and answers (warn_cut is {level:g})"
    found = [step["metric/cut"] for step in _last(steps) if "metric/cut" in step]
    if found and (share := math.fsum(found) / len(found)) >= level:
        yield f"the reward model read only the end of {share:.1%} of answers, mean of the last {len(found)} steps: {cure}"
    for name in sorted(now):
        for figure, what in (("cut", "answers to"), ("reference_cut", "the references of")):
            if figure in now[name] and (share := now[name][figure].value) >= level:
                yield f"the reward model read only the end of {share:.1%} of {what} benchmark {name!r}: {cure}"


def _last(steps: Sequence[Mapping[str, float]]) -> Sequence[Mapping[str, float]]:
    """The last quarter, and three at least."""
    return steps[-max(_LEAST_STEPS, len(steps) // 4) :]


def _deviation(estimate: Estimate) -> float:
    """The standard deviation of the tasks' scores, from the error of their mean."""
    return estimate.stderr * math.sqrt(estimate.n)
