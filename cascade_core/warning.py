"""What domains want a person to look at after a stage: asked of each, from what the run has stored, so that a resumed run says the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cascade_core.domain import Domain, Estimate, Figures
from cascade_core.errors import PluginBroken

_NAMED = ("metric", "correlation")


def warned(
    domains: Mapping[str, Domain],
    steps: Sequence[Mapping[str, Any]],
    now: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str]]:
    """The names of domains, and what each warns of.

    Args:
        steps: the events of the stage's steps.
        now, before: the `benchmarks` of this stage's `metrics.json`, and of the one before.

    Raises:
        PluginBroken: a domain fails at it, or says anything but text.
    """
    for name, domain in domains.items():
        seen = [found for step in steps if (found := _own(name, step))]
        for line in _asked(name, domain, seen, _figures(name, now), _figures(name, before)):
            yield name, line


def _asked(
    name: str,
    domain: Domain,
    steps: Sequence[Mapping[str, float]],
    now: Mapping[str, Figures],
    before: Mapping[str, Figures],
) -> list[str]:
    try:
        lines = list(domain.warnings(steps, now, before))
    except Exception as cause:
        raise PluginBroken(f"domain {name!r} cannot say what to look at: {type(cause).__name__}: {cause}") from cause
    if not all(isinstance(line, str) for line in lines):
        raise PluginBroken(f"domain {name!r} must warn with lines of text, found {lines!r:.80}")
    return [" ".join(line.split()) for line in lines]


def _own(name: str, step: Mapping[str, Any]) -> dict[str, float]:
    """What a step's event says of one domain, by plain names."""
    found: dict[str, float] = {}
    for kind in _NAMED:
        prefix = f"{kind}/{name}/"
        found |= {f"{kind}/{key.removeprefix(prefix)}": step[key] for key in step if key.startswith(prefix)}
    return found | ({"value": step[f"value/{name}"]} if f"value/{name}" in step else {})


def _figures(name: str, benchmarks: Mapping[str, Mapping[str, Any]]) -> dict[str, Figures]:
    return {
        str(one["benchmark"]): dict(_estimates(one["estimates"].items()))
        for one in benchmarks.values()
        if one["domain"] == name
    }


def _estimates(found: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Estimate]]:
    for name, one in found:
        yield name, Estimate(one["value"], one["stderr"], one["n"])
