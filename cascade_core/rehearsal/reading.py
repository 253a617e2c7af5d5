"""What the user's model reads: whether its tokenizer has a chat template for these prompts, and whether they fit beside a response.

Lengths are counted on the rows that the run will train on first, against the context of the user's own model and the room that the
trainer gives a prompt, not against those of the tiny model.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cascade_core.errors import CascadeError, SpecError
from cascade_core.pretrained import context_of, load_tokenizer
from cascade_core.rehearsal.checks import Looked
from cascade_core.rehearsal.findings import Lengths
from cascade_core.rehearsal.tiny import config_of, source
from cascade_core.reward_model import tokens
from cascade_core.rows import Row
from cascade_core.settings import Stage
from cascade_core.template import encode, response_ids

_READ = {"rl": "prompts", "sft": "demonstrations", "reward_model": "pairs"}


def read(seen: Looked, tiny: Path) -> tuple[dict[str, Lengths], list[str]]:
    """Lengths of each stage's prompts, and notes; mistakes go to `seen`.

    Args:
        tiny: the tiny model, which has the user's tokenizer.
    """
    tokenizer: Any = load_tokenizer(tiny)
    tokenizer.model_max_length = sys.maxsize  # it would warn of what is told here
    notes, found = [], {}
    for phase, what in _template(seen, tokenizer):
        if phase == "note":
            notes.append(what)
        else:
            seen.add(phase, what)
    context = _context(seen, tokenizer)
    for stage in seen.spec.stages:
        rows = seen.rows.get(stage.name, [])
        try:
            limit = _limit(seen, stage, context)
            sizes = [(_tokens(tokenizer, stage, row, seen.spec.model.modes), str(row["id"])) for row in rows]
            lengths = _lengths(stage, sizes, limit, context) if rows else None
        except CascadeError as cause:
            seen.add("model", cause)
            continue
        if lengths is not None:
            found[stage.name] = lengths
    _benchmarks(seen, tokenizer, context)
    return found, notes


def _template(seen: Looked, tokenizer: Any) -> Iterator[tuple[str, str]]:
    """What a model without a chat template makes of the prompts."""
    rows = [row for rows in [*seen.rows.values(), *(exam.tasks for exam in seen.exams)] for row in rows]
    turned = Counter(row["domain"] for row in rows if not isinstance(row["prompt"], str))
    moded = Counter(row["domain"] for row in rows if row.get("mode") and seen.spec.model.modes == "switch")
    if tokenizer.chat_template is not None or seen.spec.model.init is not None:
        if moded and seen.spec.model.init is None and not _switches(tokenizer):
            yield (
                "note",
                "the chat template does not know the switch enable_thinking, so that both modes read the same prompt; set"
                " model.modes to flags or prefill, or to none",
            )
        return
    where = f"the tokenizer of {seen.spec.model.path} has no chat template"
    cure = "take the instruct model, or put chat_template.jinja into the model's folder"
    for name in turned:
        yield "model", f"{where}, and prompts of domain {name!r} are conversations, whose roles it cannot say; {cure}"
    for name in moded:
        yield (
            "model",
            f"{where}, and tasks of domain {name!r} have a mode (think, no_think), which it cannot say; {cure}, or set model.modes",
        )
    if not turned and not moded:
        yield "note", f"{where}: prompts are plain text; if it is meant to be an instruct model, {cure}"


def _switches(tokenizer: Any) -> bool:
    """Whether the two modes read something else of a task."""
    think, no_think = ({"id": "", "prompt": "one and one?", "mode": mode} for mode in ("think", "no_think"))
    return encode(tokenizer, think) != encode(tokenizer, no_think)


def _context(seen: Looked, tokenizer: Any) -> int | None:
    """The longest text that the user's model reads; a vocabulary that does not hold its tokenizer's words is a mistake."""
    folder = source(seen.spec.model)
    if folder is None:
        assert seen.spec.model.init is not None
        return seen.spec.model.init.context
    config = config_of(folder)
    words = config.get("vocab_size")
    if isinstance(words, int) and words < len(tokenizer):
        seen.add(
            "model",
            f"the tokenizer of {seen.spec.model.path} has {len(tokenizer)} tokens and its model {words}; resize the model's"
            " embeddings, or take the tokenizer that belongs to it",
        )
    return context_of(config)


def _limit(seen: Looked, stage: Stage, context: int | None) -> int | None:
    """The longest prompt of an rl stage, or the longest text that a stage of another kind is trained on; `None` where nothing limits it.

    Raises:
        SpecError: no prompt at all fits.
    """
    trainer, response = stage.trainer or seen.spec.trainer, stage.rollout.max_response_tokens
    if stage.kind == "rl" and context is not None and response >= context:
        raise SpecError(
            f"stage {stage.name!r}: rollout.max_response_tokens {response} leaves no room for a prompt, the model reads"
            f" {context} tokens in all; set it well below that, or take a model with a longer context"
        )
    room = context
    if trainer == "openrlhf":
        from cascade_core.trainers.openrlhf_args import room as room_of

        room = room_of(stage, context)
    return room if room is None or stage.kind != "rl" else room - response


def _lengths(stage: Stage, rows: Sequence[tuple[int, str]], limit: int | None, context: int | None) -> Lengths:
    """Of the tokens of the stage's prompts (of an sft stage: of prompt and response) and their tasks.

    Raises:
        SpecError: some are longer than `limit`.
    """
    counted = sorted(rows, key=lambda one: one[0])
    over = [one for one in counted if limit is not None and one[0] > limit]
    if limit is not None and over:
        longest, task = over[-1]
        raise SpecError(
            f"stage {stage.name!r}: {len(over)} of the first {len(rows)} {_READ[stage.kind]} have more than the {limit} tokens"
            f" that there is room for, at most {longest} (task {task!r}); {_cure(stage, limit, longest, context)}"
        )
    sizes = [size for size, _ in counted]
    return Lengths(
        len(sizes),
        sizes[(len(sizes) - 1) // 2],
        sizes[-1],
        limit,
        _READ[stage.kind],
    )


def _cure(stage: Stage, limit: int, longest: int, context: int | None) -> str:
    """What makes room: the trainer's own bound where that is below the model's context, else what fills the context."""
    response = stage.rollout.max_response_tokens if stage.kind == "rl" else 0
    room = limit + response
    is_own = "data.max_len" in stage.trainer_args
    lower = ", or lower rollout.max_response_tokens" if stage.kind == "rl" else ""
    if context is not None and (room >= context or longest + response > context):
        return f"leave them out{lower}, or take a model with a longer context"
    if not is_own:  # that bound grows with the responses
        return f"set trainer_args.data.max_len, which is {room} where nothing is said, or leave them out"
    return f"raise trainer_args.data.max_len, or leave them out{lower}"


def _tokens(tokenizer: Any, stage: Stage, row: Row, modes: str) -> int:
    """How many the row has.

    Raises:
        SpecError: it is no text for the tokenizer.
    """
    try:
        return _counted(tokenizer, stage, row, modes)
    except TypeError as cause:  # what tokenizers says of a lone surrogate
        raise SpecError(
            f"stage {stage.name!r}: the tokenizer cannot read task {row['id']!r} of domain {row['domain']!r}: {cause}; lone"
            " surrogates (\\ud800 to \\udfff) are no text, take them out of the data"
        ) from cause


def _counted(tokenizer: Any, stage: Stage, row: Row, modes: str) -> int:
    if stage.kind == "reward_model":
        return max(len(tokens(tokenizer, row, row[side]).ids) for side in ("chosen", "rejected"))
    prompt = len(encode(tokenizer, row, modes)[0])
    return prompt if stage.kind == "rl" else prompt + len(response_ids(tokenizer, row["response"])) + 1


def _benchmarks(seen: Looked, tokenizer: Any, context: int | None) -> None:
    modes = seen.spec.model.modes
    own = seen.spec.evaluation.vllm_args.get("max_model_len")
    is_own = isinstance(own, int) and (context is None or own < context)
    limit = own if is_own else context
    what = (
        "evaluation.vllm_args.max_model_len allows; raise it, or lower the other"
        if is_own
        else "the model reads; lower it"
    )
    for exam in seen.exams:
        response = exam.sampling.max_response_tokens
        try:
            sizes = [(len(encode(tokenizer, row, modes)[0]), str(row["id"])) for row in exam.tasks[:1000]]
        except CascadeError as cause:
            seen.add("model", cause)
            continue
        longest, task = max(sizes)
        if limit is not None and longest + response > limit:
            seen.add(
                "model",
                f"benchmark {exam.name!r}: a prompt of {longest} tokens (task {task!r}) and"
                f" evaluation.sampling.max_response_tokens {response} exceed the {limit} tokens that {what}",
            )
