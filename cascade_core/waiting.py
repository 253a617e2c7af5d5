"""Which resources wait for a stage, and so which domains: `stage:NAME` in a resource's options is that stage's checkpoint.

Such a resource is started as soon as that checkpoint is there, and a reward model's own benchmarks are measured; it runs until the
end. What waited for it is measured in the same stage, of the policy as it then stands, so that the next stage has a value to start
from. Until then a domain that needs it is neither trained with rewards nor measured; a spec that would train it before is refused.
Stages are counted from 1, as their folders are, and the starting model is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cascade_core.domain import Domain
from cascade_core.provision import Provision
from cascade_core.resource import STAGE, stages_in
from cascade_core.settings import Spec

Domains = Mapping[str, Domain]
Provisions = Mapping[str, Provision]


def stages_of(provision: Provision) -> list[str]:
    """The stages whose checkpoints a resource is made of, each once."""
    return list(dict.fromkeys(name for _, name in stages_in(dict(provision.options))))


def last_stage(spec: Spec, provision: Provision) -> int:
    """The number of the last stage that a resource waits for, 0 where it waits for none."""
    numbers = {stage.name: number for number, stage in enumerate(spec.stages, 1)}
    return max((numbers[name] for name in stages_of(provision) if name in numbers), default=0)


def located(provision: Provision, checkpoints: Mapping[str, Path]) -> Provision:
    """The same resource with the folders of checkpoints in place of `stage:NAME`."""
    return replace(provision, options={key: _located(value, checkpoints) for key, value in provision.options.items()})


def _located(value: Any, checkpoints: Mapping[str, Path]) -> Any:
    if isinstance(value, str) and value.startswith(STAGE):
        return str(checkpoints[value.removeprefix(STAGE)].absolute())
    if isinstance(value, Mapping):
        return {key: _located(inside, checkpoints) for key, inside in value.items()}
    return [_located(inside, checkpoints) for inside in value] if isinstance(value, list) else value


def first_measured(spec: Spec, domain: Domain, provisions: Provisions) -> int:
    """The first stage after which a domain can be judged: all that it needs runs by then."""
    return max((last_stage(spec, provisions[need]) for need in domain.needs if need in provisions), default=0)


def is_measured(spec: Spec, index: int, first: int) -> bool:
    """Whether a policy is measured after stage `index` on what can be judged from stage `first` on.

    A reward model leaves the policy as it was: only what waited for that very stage is measured there.
    """
    is_policy = not index or spec.stages[index - 1].kind != "reward_model"
    return index >= first if is_policy else index == first


def too_early(spec: Spec, domains: Domains, provisions: Provisions) -> Iterator[tuple[int, str, str]]:
    """Stages (from 0) with a domain that is to be judged before what it needs is made; the third says why."""
    for index, stage in enumerate(spec.stages):
        judges = [*stage.domains, *(stage.reward.names if stage.reward else ())]
        for name in dict.fromkeys(judges) if stage.kind == "rl" else ():
            for need in domains[name].needs if name in domains else ():
                last = last_stage(spec, provisions[need]) if need in provisions else 0
                if last > index:
                    made = spec.stages[last - 1].name
                    yield (
                        index,
                        name,
                        f"domain {name!r} needs {need!r}, which is made of the checkpoint of stage {made!r}; put stage"
                        f" {stage.name!r} after it",
                    )


def policy_before(spec: Spec, index: int) -> int:
    """The number of the last stage before stage `index` whose checkpoint is a policy: the one that the next policy starts from."""
    return max((n for n, stage in enumerate(spec.stages[: index - 1], 1) if stage.kind != "reward_model"), default=0)
