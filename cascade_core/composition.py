"""Several scorers to one reward: the stage's `reward:` and `code_switch:`, between the scorers' own rewards and the length rule.

`Composition` says which rows are judged beside a sample's own (the same task and response under the name of another scorer),
and makes one reward of all that was said (`Reward`, `CodeSwitch` in `rule.py` say how). The verdict of the sample's own domain,
its *value*, is never touched: what evaluation and "all responses were right" go by stays that domain's alone. A sample of
which a scorer that is needed gave no verdict has no reward, and is masked. `named`, `judging`, `measured` and
`misfits` are what a spec's scorers are, which a stage asks, which are benchmarks, and what does not fit together. Nothing is judged here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cascade_core.advantages import LARGEST_REWARD
from cascade_core.domain import Domain
from cascade_core.errors import RowError
from cascade_core.opinion import Opinion, statistics
from cascade_core.plugins import Registry
from cascade_core.rows import Row, row_response
from cascade_core.rule import CODE_SWITCH, CodeSwitch, Reward
from cascade_core.settings import Spec, Stage


@dataclass
class Sample(Opinion):
    """One row and its own domain's word on it, with those of the scorers `beside`; `reward` ends as what is trained on.

    `components` is what is stored of them, by name.
    """

    beside: dict[str, Opinion] = field(default_factory=dict)
    components: dict[str, Row] = field(default_factory=dict)
    masked: str = ""
    advantage: float = 0.0

    @property
    def trained(self) -> float | None:
        """The reward, where the sample has a part in the step."""
        return None if self.masked else self.reward


class Composition:
    """What one stage makes of its scorers."""

    def __init__(self, stage: Stage) -> None:
        self._rule, self._switch = stage.reward, stage.code_switch

    def beside(self, row: Mapping[str, Any]) -> dict[str, Row]:
        """The rows that are judged beside `row`, by the names of their scorers.

        A verdict of the row's own domain is a component like any other, and not asked for twice.
        """
        names = self._rule.names if self._rule else []
        found = {name: {**row, "domain": name} for name in names if name != row.get("domain")}
        if self._switch:
            found[CODE_SWITCH] = {**_looked_at(row, self._switch), "domain": CODE_SWITCH}
        return found

    def apply(self, samples: Sequence[Sample]) -> None:
        """The reward of every sample; those of the scorers are settled (`opinion.settle`)."""
        if self._rule:
            for sample in samples:
                _compose(self._rule, sample)
        if self._switch:
            _punish(self._switch, samples)

    def metrics(self, samples: Sequence[Sample]) -> dict[str, float]:
        """`component/NAME/…`, means over the samples that have it and how many could not be judged; `code_switch_rate`."""
        found: dict[str, float] = {}
        for name in dict.fromkeys(name for sample in samples for name in sample.components):
            own = [sample.components[name] for sample in samples if name in sample.components]
            for key in ("value", "raw", "weighted", "trained"):
                numbers = [part[key] for part in own if key in part]
                if numbers:
                    found[f"component/{name}/{key}_mean"] = math.fsum(numbers) / len(numbers)
            found[f"component/{name}/failed"] = sum("error" in part for part in own)
        if self._switch:
            values = [one.score.value for one in _switches(samples) if one.reward is not None]
            found |= {"code_switch_rate": sum(value < 1 for value in values) / len(values)} if values else {}
        return found


def _looked_at(row: Mapping[str, Any], switch: CodeSwitch) -> Row:
    """The row as the detector is to see it: an unfinished thought has no answer, and is looked at whole."""
    if switch.parts == "all":
        return dict(row)
    try:
        answer = row_response(row).answer
    except RowError:  # the scorer itself says what is wrong with it
        answer = None
    return dict(row) if answer is None else {**row, "response": answer, "prefill": "", "mode": "", "turns": []}


def _compose(rule: Reward, sample: Sample) -> None:
    own = {name: sample if name == sample.domain else sample.beside[name] for name in rule.names}
    sample.components |= {
        name: _component(one, rule.weight(name) if name in rule.terms else None) for name, one in own.items()
    }
    if sample.reward is None:
        return
    values = {name: None if one.reward is None else one.score.value for name, one in own.items()}
    sample.reward = combined(rule, values, {name: one.reward for name, one in own.items()})
    if sample.reward is not None and abs(sample.reward) > LARGEST_REWARD:
        sample.fail(f"composed reward {sample.reward:g} is out of range (allowed: up to 1e100 in size)")


def combined(rule: Reward, values: Mapping[str, float | None], rewards: Mapping[str, float | None]) -> float | None:
    """The reward of one sample; `None` where a scorer that is needed gave no verdict (`None` in both).

    A gate that is shut settles it, whatever else could not be judged: the reward is 0 either way.

    >>> combined(Reward(gate=["if"], sum=["if", "rm"]), {"if": 1.0, "rm": 0.3}, {"if": 1.0, "rm": 0.75})
    1.75
    """
    gates = [values[name] for name in rule.gate]
    if any(value is not None and value != 1 for value in gates):
        return 0.0
    terms = [None if (reward := rewards[name]) is None else rule.weight(name) * reward for name in rule.terms]
    known = [term for term in terms if term is not None]
    if None in gates or len(known) < len(terms):
        return None
    return math.fsum(known) if rule.sum else min(known)


def _punish(switch: CodeSwitch, samples: Sequence[Sample]) -> None:
    """Offenders get what the stage says; the smallest reward is that of the domain's whole step, before anybody was punished."""
    for domain in dict.fromkeys(sample.domain for sample in samples):
        own = [sample for sample in samples if sample.domain == domain]
        rewards = [sample.reward for sample in own if sample.reward is not None]
        penalty = switch.assign
        if penalty is None and rewards:
            penalty = statistics(rewards).min - (switch.below_batch or 0.0)
        for sample in own:
            found = sample.beside[CODE_SWITCH]
            sample.components[CODE_SWITCH] = _component(found, None)
            if sample.reward is not None and found.reward is None:
                sample.reward = None
            elif sample.reward is not None and found.score.value < 1:
                sample.reward = penalty


def _switches(samples: Iterable[Sample]) -> Iterator[Opinion]:
    return (sample.beside[CODE_SWITCH] for sample in samples)


def _component(one: Opinion, weight: float | None) -> Row:
    """What is stored of a scorer's word: `raw` as it judged this sample alone, `trained` after its `rewards`, times its weight."""
    if one.reward is None:
        return {"error": one.score.error}
    found: Row = {"value": one.score.value, "raw": one.score.trained, "trained": one.reward}
    if weight is not None:
        found["weighted"] = weight * one.reward
    if one.score.note:
        found["note"] = one.score.note
    return {**found, "metrics": dict(one.score.metrics)} if one.score.metrics else found


def named(spec: Spec) -> dict[str, Mapping[str, Any]]:
    """Every scorer that a run needs, by name, with its options: the spec's domains, and the detector that a stage asks for."""
    found: dict[str, Mapping[str, Any]] = dict(spec.domains)
    if any(stage.code_switch for stage in spec.stages):
        found.setdefault(CODE_SWITCH, {})
    return found


def judging(stage: Stage) -> list[str]:
    """The names of all scorers that a stage asks, its own domains first, each once."""
    beside = [*(stage.reward.names if stage.reward else ()), *([CODE_SWITCH] if stage.code_switch else ())]
    return list(dict.fromkeys([*stage.domains, *beside]))


def measured(spec: Spec, known: Registry) -> list[str]:
    """The spec's domains that are measured after every stage: all but those that only judge for others.

    That is a domain under a name of its own (`Registry.meant`) that a stage's `reward` names, that no stage trains, and of which
    the spec names no benchmark.
    """
    judging = {name for stage in spec.stages if stage.reward for name in stage.reward.names}
    wanted = {name for stage in spec.stages for name in stage.domains}
    wanted |= {name.partition("/")[0] for name in spec.evaluation.benchmarks or ()}
    return [
        name
        for name, options in spec.domains.items()
        if name not in judging or name in wanted or known.meant(name, options)[0] == name
    ]


def misfits(spec: Spec, domains: Mapping[str, Domain]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path of keys, what is wrong): scorers that cannot judge what a stage trains, gates that never open, and ranges of rewards that it cannot
    put together."""
    for index, stage in enumerate(spec.stages):
        for where, what in _strangers(stage, domains):
            yield ("stages", index, *where), what
        rule = stage.reward
        for place, name in enumerate(rule.gate if rule else ()):
            if not domains[name].passes:
                what = f"{name!r} is no gate: its value is hardly ever exactly 1, so the reward would be 0 for every answer"
                yield ("stages", index, "reward", "gate", place), f"{what}; put it under sum or min"
        for name in rule.terms if rule else ():
            if not _is_range(domains[name].reward_range):
                what = f"{name!r} declares the range {domains[name].reward_range!r:.80} of its rewards"
                yield (
                    ("stages", index, "reward"),
                    f"{what}, which must be two finite numbers, the smaller first, or None",
                )
                break
        else:
            if rule and (what := _range_trouble(rule, domains)):
                yield ("stages", index, "reward", "sum" if rule.sum else "min"), what


def _strangers(stage: Stage, domains: Mapping[str, Domain]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Scorers that are asked about tasks of a domain that they know nothing of."""
    able = [name for name in domains if domains[name].judges_any]
    rule = stage.reward
    asked: list[tuple[tuple[str | int, ...], str]] = [
        (("reward", key, place), name)
        for key, names in ((("gate", rule.gate), ("sum", rule.sum), ("min", rule.min)) if rule else ())
        for place, name in enumerate(names)
    ]
    asked += [(("code_switch",), CODE_SWITCH)] if stage.code_switch else []
    for where, name in asked:
        foreign = [own for own in stage.domains if not _judges(domains[name], domains[own])]
        if foreign:
            yield (
                where,
                f"{name!r} judges tasks of its own domain alone, and this stage trains {foreign[0]!r}"
                f" (scorers of any task: {', '.join(able) or 'none in this spec'})",
            )


def _judges(scorer: Domain, trained: Domain) -> bool:
    """Whether a scorer is for tasks of a domain: for any, or since it is of its class, under another name perhaps."""
    return bool(scorer.judges_any) or isinstance(scorer, type(trained))


def _range_trouble(rule: Reward, domains: Mapping[str, Domain]) -> str:
    """Why the rewards of the terms cannot be put together as the rule says; `""` where they can."""
    boundless = [name for name in rule.terms if domains[name].reward_range is None]
    if boundless and (rule.min or rule.gate):
        option = domains[boundless[0]].bounded_by
        cure = f"bound them{f' with its option {option}' if option else ''}"
        what = f"the rewards of {boundless[0]!r} have no bounds"
        if rule.min:
            return f"{what}, so the smallest of several says nothing; {cure}, or sum"
        return f"{what} and may lie below the 0 of a shut gate, so that passing it could cost; {cure}, or leave the gate out"
    # Of a scorer that is a gate too, an open gate means that it said 1: the upper end.
    ends = [_ends(rule, name, domains)[name in rule.gate] for name in rule.terms]
    if rule.gate and (least := math.fsum(ends) if rule.sum else min(ends)) < 0:
        return f"the reward of an open gate may be {least:g}, below the 0 of a shut one, so that passing it could cost"
    return ""


def told(stage: Stage, domains: Mapping[str, Domain]) -> str:
    """What a stage's reward is, in one line for people; `""` where it is the domain's own.

    >>> from types import SimpleNamespace as Of
    >>> rule = Reward(gate=["if"], sum=["if", "rm"], weights={"rm": 0.5})
    >>> told(Of(reward=rule, code_switch=CodeSwitch(assign=-1)), dict.fromkeys(("if", "rm"), Of(reward_range=(0, 1))))
    '[if is 1] × (if + 0.5 rm), from 0 to 1.5; mixed languages (all): -1'
    """
    parts = []
    if rule := stage.reward:
        terms = [f"{rule.weight(name):g} {name}" if name in rule.weights else name for name in rule.terms]
        whole = " + ".join(terms).replace("+ -", "- ") if rule.sum else f"min({', '.join(terms)})"
        gates = " × ".join(f"[{name} is 1]" for name in rule.gate)
        ends = reach(rule, domains)
        size = f"from {ends[0]:g} to {ends[1]:g}" if ends else "without bounds"
        inner = f"({whole})" if gates and len(rule.sum) > 1 else whole
        parts.append(f"{gates}{' × ' if gates else ''}{inner}, {size}")
    if switch := stage.code_switch:
        what = (
            f"{switch.assign:g}"
            if switch.assign is not None
            else f"the batch's smallest reward - {switch.below_batch:g}"
        )
        parts.append(f"mixed languages ({switch.parts}): {what}")
    return "; ".join(parts)


def reach(rule: Reward, domains: Mapping[str, Domain]) -> tuple[float, float] | None:
    """The smallest and the largest reward that there may be; `None` without bounds."""
    if any(domains[name].reward_range is None for name in rule.terms):
        return None
    ends = [_ends(rule, name, domains) for name in rule.terms]
    put = math.fsum if rule.sum else min
    low, high = put([end[0] for end in ends]), put([end[1] for end in ends])
    return (min(low, 0.0), max(high, 0.0)) if rule.gate else (low, high)


def _ends(rule: Reward, name: str, domains: Mapping[str, Domain]) -> tuple[float, float]:
    """The weighted range of one term that has bounds."""
    low, high = sorted(rule.weight(name) * end for end in domains[name].reward_range or (0.0, 0.0))
    return low, high


def _is_range(given: object) -> bool:
    """Whether it is what `Domain.reward_range` may be."""
    if given is None:
        return True
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    numbers = [
        end for end in given if isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end)
    ]
    return len(numbers) == 2 and numbers[0] <= numbers[1]
