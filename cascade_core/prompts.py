"""A stage's tasks, drawn once and written to `prompts.jsonl` in training order: mixing, epochs, de-duplication, contamination.

Every step takes the domains in their shares, exactly (largest remainder, carried over from step to step). A finite
loader is gone through again, with the next seed, when it ends. No prompt comes twice in one step where the domain has
enough of them, and no prompt of a benchmark is trained on. A stage's `mode` is put into its rows here. Curriculum and filters are not here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cascade_core.determinism import derive
from cascade_core.domain import Demonstration, Domain, Pair, Task
from cascade_core.errors import SpecError
from cascade_core.pairs import pair_row, unusable
from cascade_core.rows import Row, task_row

if TYPE_CHECKING:
    from cascade_core.settings import Stage

_WHAT = {"rl": "task", "sft": "demonstration", "reward_model": "pair"}
_NONE = {
    "rl": "its data are empty, or all of them are held out to be measured",
    "sft": "it has no responses to imitate, or all of its data are held out to be measured",
    "reward_model": "it has no better and worse answers, or all of its data are held out to be measured",
}
# A loader that yields this many unusable tasks in a row has no usable ones.
PATIENCE = 10_000


def prompt_key(prompt: Any) -> str:
    """What makes two prompts the same: the text of all turns, white space folded."""
    texts = [prompt] if isinstance(prompt, str) else [turn["content"] for turn in prompt]
    return " ".join(" ".join(texts).split())


def step_size(stage: Stage) -> int:
    """Rows per step."""
    return stage.rollout.prompts_per_step if stage.kind == "rl" else stage.batch_size


def draw(
    stage: Stage,
    domains: Mapping[str, Domain],
    seed: int,
    held_out: frozenset[str],
    left_out: Counter[str] | None = None,
) -> Iterator[Row]:
    """The rows of all steps, in order; rows of an `sft` stage carry the `response` to imitate, of a `reward_model` stage
    `chosen` and `rejected`.

    Args:
        held_out: keys (`prompt_key`) of all benchmark prompts.
        left_out: gets, by reason, how many of the pairs that were come by teach nothing (`pairs.unusable`).

    Raises:
        SpecError: a domain has no task that may be trained on.
    """
    streams = {
        name: _stream(stage, name, domains[name], derive(seed, stage.name, name), held_out, left_out)
        for name in stage.domains
    }
    taken = dict.fromkeys(stage.domains, 0)
    for step in range(stage.steps):
        rows: list[Row] = []
        for name, count in _quotas(stage, taken, (step + 1) * step_size(stage)).items():
            rows += _distinct(streams[name], count)
            taken[name] += count
        random.Random(derive(seed, stage.name, step)).shuffle(rows)
        yield from _moded(stage, rows, derive(seed, stage.name, "mode", step))


def check(stage: Stage, domains: Mapping[str, Domain], seed: int, held_out: frozenset[str]) -> None:
    """Makes sure that every domain of a stage has something to train on, before hours are spent on the stages before it.

    Raises:
        SpecError: as `draw`.
    """
    for name in stage.domains:
        next(_stream(stage, name, domains[name], derive(seed, stage.name, name), held_out))


def _moded(stage: Stage, rows: Sequence[Row], seed: int) -> Sequence[Row]:
    """The rows of a step in the stage's mode. Halves are exact over the step, and to one row in every domain of it.

    Which half a row is in follows from its place after the shuffle, and so changes from epoch to epoch.
    """
    if stage.mode is None:
        return rows
    modes = ["think", "no_think"] if stage.mode == "half" else [stage.mode, stage.mode]
    random.Random(seed).shuffle(modes)
    by_domain = sorted(range(len(rows)), key=lambda place: str(rows[place]["domain"]))  # stable: shuffled within each
    mode = {place: modes[number % 2] for number, place in enumerate(by_domain)}
    return [{**row, "mode": mode[place]} for place, row in enumerate(rows)]


def _quotas(stage: Stage, taken: Mapping[str, int], total: int) -> dict[str, int]:
    """How many rows each domain gives to this step, so that after it `total` rows are shared out by the shares."""
    weight = sum(stage.domains.values())
    ideal = {name: total * share / weight for name, share in stage.domains.items()}
    floor = {name: max(int(ideal[name]), taken[name]) for name in ideal}
    rest = total - sum(floor.values())
    by_remainder = sorted(ideal, key=lambda name: (floor[name] - ideal[name], name))
    return {name: floor[name] - taken[name] + (by_remainder.index(name) < rest) for name in ideal}


def _distinct(stream: Iterator[Row], count: int) -> list[Row]:
    """`count` rows with different prompts, as far as a few hundred more draws can find them."""
    rows: dict[str, Row] = {}
    spare: list[Row] = []
    while len(rows) < count and len(spare) < 8 * count + 64:
        row = next(stream)
        key = prompt_key(row["prompt"])
        if key in rows:
            spare.append(row)
        else:
            rows[key] = row
    return [*rows.values(), *spare][:count]


def _stream(
    stage: Stage,
    name: str,
    domain: Domain,
    seed: int,
    held_out: frozenset[str],
    left_out: Counter[str] | None = None,
) -> Iterator[Row]:
    epoch = in_a_row = 0
    useless = 0  # passes, the last ones, without one usable task
    why = ""
    while True:
        useless += 1
        for item in _items(stage, domain, seed + epoch):
            row = _row(name, item)
            why = unusable(item) if isinstance(item, Pair) else ""
            if why and left_out is not None:
                left_out[why] += 1
            if not why and prompt_key(row["prompt"]) not in held_out:
                in_a_row = useless = 0
                yield row
                continue
            in_a_row += 1
            if in_a_row >= PATIENCE:
                raise SpecError(
                    f"stage {stage.name!r}: {in_a_row} {_WHAT[stage.kind]}s in a row of domain {name!r} {_unused(why)}"
                )
        epoch += 1
        if useless >= 3:
            raise SpecError(
                f"stage {stage.name!r}: domain {name!r} has no {_WHAT[stage.kind]} of the split 'train' to train on;"
                f" {f'all that it has {_unused(why)}' if in_a_row else _NONE[stage.kind]}"
            )


def _unused(why: str) -> str:
    return f"are benchmark prompts{f' or teach nothing ({why})' if why else ''}; its splits overlap"


def _items(stage: Stage, domain: Domain, seed: int) -> Iterable[Task | Demonstration | Pair]:
    if stage.kind == "reward_model":
        return domain.pairs("train", seed)
    return domain.demonstrations("train", seed) if stage.kind == "sft" else domain.tasks("train", seed)


def _row(name: str, item: Task | Demonstration | Pair) -> Row:
    if isinstance(item, Pair):
        return pair_row(name, item)
    if isinstance(item, Demonstration):
        return {**task_row(name, item.task), "response": item.response}
    return task_row(name, item)
