"""Levels `easy`, `full` and `wide`: instructions drawn onto base prompts, and the reference that proves they fit together.

A task is kept only if its reference, built by the families' edits in the order of their stages, is judged right by the
verifier; so no task asks for what cannot be done, and every reference scores 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from cascade_core.errors import TaskError
from cascade_core.sources import is_held_out
from cascade_plugin_if import drafts, prompts
from cascade_plugin_if.conflicts import agree
from cascade_plugin_if.draws import DRAWS as OF_IFEVAL
from cascade_plugin_if.draws import EASY
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.registry import TRAINING
from cascade_plugin_if.training.draws import DRAWS as OF_TRAINING
from cascade_plugin_if.verdict import Call, calls, judge

if TYPE_CHECKING:
    from cascade_plugin_if.generator import Settings

_PATIENCE = 2000
DRAWS = {**OF_IFEVAL, **OF_TRAINING}
_FAMILIES = {"easy": EASY, "full": tuple(REGISTRY), "wide": tuple(TRAINING)}


def compose(settings: Settings, split: str, seed: int) -> Iterator[Mapping[str, Any]]:
    """Rows in the public form, each prompt once; ends when new prompts become too rare to find."""
    rng = Random(f"if-{settings.level}-{split}-{seed}")
    families = settings.families or _FAMILIES[settings.level]
    seen: set[str] = set()
    misses = 0
    while misses < _PATIENCE:
        row = _row(settings, families, rng)
        if row is None or row["prompt"] in seen or is_held_out(row["prompt"]) != (split == "test"):
            misses += 1
            continue
        misses = 0
        seen.add(row["prompt"])
        yield row


def _row(settings: Settings, families: Sequence[str], rng: Random) -> Mapping[str, Any] | None:
    """A task, or `None` where the instructions drawn do not fit together."""
    full = settings.level != "easy"
    base = prompts.draw(rng)
    least, most = settings.bounds
    ids = choose(families, rng.randint(least, most), rng)
    if len(ids) < least:
        return None
    if "detectable_format:constrained_response" in ids:
        base = prompts.question(base)
    kwargs = [DRAWS[name](rng, base, full) for name in ids]
    asked = calls({"instruction_id_list": ids, "kwargs": kwargs})
    reference = write(asked, drafts.opening(base.topic, rng, 4 if full else 2), rng)
    if not all(judge(asked, reference).strict):
        return None
    prompt = " ".join([base.prompt, *(call.instruction.describe(call.args) for call in asked)])
    digest = hashlib.sha256(json.dumps([prompt, ids, kwargs]).encode()).hexdigest()[:12]
    return {
        "key": f"{settings.level}-{digest}",
        "prompt": prompt,
        "instruction_id_list": ids,
        "kwargs": kwargs,
        "reference": reference,
    }


def choose(families: Sequence[str], count: int, rng: Random) -> list[str]:
    """Up to `count` families that agree, in a random order; fewer where no more agree."""
    chosen: list[str] = []
    for name in rng.sample(families, len(families)):
        if len(chosen) < count and agree(name, chosen):
            chosen.append(name)
    return chosen


def write(asked: Sequence[Call], draft: str, rng: Random) -> str:
    """A draft changed by every family's edit, body first and wrapping last."""
    for call in sorted(asked, key=lambda call: call.instruction.stage):
        if call.instruction.edit is None:
            raise TaskError(f"instruction {call.instruction.id!r} is for evaluation only: no task is made of it")
        draft = call.instruction.edit(draft, call.args, rng)
    return draft


def spoil(answer: Mapping[str, Any], reference: str, rng: Random) -> str:
    """The reference of the same task without one of its instructions, or cut short: what the verifier calls wrong."""
    asked = calls(answer)
    order = rng.sample(range(len(asked)), len(asked))
    for place in order:
        rest = [call for other, call in enumerate(asked) if other != place]
        draft = write(rest, drafts.opening("it", rng, 2), rng)
        verdict = judge(asked, draft).strict
        if not verdict[place] and sum(verdict) == len(asked) - 1:
            return draft
    for draft in (reference.swapcase(), reference + ", and so on", reference[: len(reference) // 2], ""):
        if not all(judge(asked, draft).strict):
            return draft
    return ""
