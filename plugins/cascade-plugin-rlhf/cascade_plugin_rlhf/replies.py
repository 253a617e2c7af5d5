"""Bodies of answers to verdicts, one for each item in order: the plain `/score`, OpenRLHF's wire, and vLLM's pooling endpoints.

A body that is no JSON object may pass, and is `Garbage`: it is asked again. One of another shape will not: `Refused` says what it has and
what was wanted. A single score that is no finite number leaves the others as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cascade_core.answer import Refused, json_object
from cascade_plugin_rlhf.verdict import Scored, Unjudged, read_score

Verdicts = list[Scored | Unjudged]


def read_scores(content: bytes, count: int) -> Verdicts:
    """The answer of `/score`.

    Raises:
        Garbage, Refused: it is none; see the module.
    """
    body = json_object(content)
    scores = _listed(body, "scores", count)
    errors = _beside(body, "errors", count, "")
    tokens, cut = _beside(body, "tokens", count, None), _beside(body, "truncated", count, False)
    return [_one(*one) for one in zip(scores, errors, tokens, cut, strict=True)]


def read_rewards(content: bytes, count: int) -> Verdicts:
    """The answer of OpenRLHF's `/get_reward`, from whichever server speaks it.

    Raises:
        Garbage, Refused: it is none; see the module.
    """
    body = json_object(content)
    rewards = _listed(body, "rewards", count)
    logs = body.get("extra_logs")
    cut = _beside(logs if isinstance(logs, Mapping) else {}, "truncated", count, False)
    errors = _beside(body, "errors", count, "")
    return [_one(score, error, None, flag == 1) for score, error, flag in zip(rewards, errors, cut, strict=True)]


def read_pooled(content: bytes, field: str) -> Scored | Unjudged:
    """vLLM's answer to one item; `field` is `probs` (`/classify`), `data` (`/pooling`) or `score` (`/score`).

    Raises:
        Garbage, Refused: it is none; see the module.
    """
    body = json_object(content)
    entry = _listed(body, "data", 1)[0]
    if not isinstance(entry, Mapping) or field not in entry:
        raise Refused(f"the answer's data has no {field!r}, found {_shown(entry)}")
    value = entry[field]
    while isinstance(value, list):
        if len(value) != 1:
            raise Refused(
                f"the answer has {len(value)} numbers for one item, allowed is one: the model is no reward model that pools"
            )
        value = value[0]
    usage = body.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return read_score(value, tokens if type(tokens) is int else None)


def _one(score: Any, error: Any, tokens: Any, cut: Any) -> Scored | Unjudged:
    if score is None and isinstance(error, str) and error:
        return Unjudged(error[:300])
    return read_score(score, tokens if type(tokens) is int else None, cut is True)


def _listed(body: Mapping[str, Any], name: str, count: int) -> list[Any]:
    if body.get(name) is None and body.get("error"):
        raise Refused(f"an error in place of an answer: {body['error']!s:.200}")
    if name not in body:
        raise Refused(f"the answer has no {name!r}, found {_shown(body)}")
    listed = body[name]
    if not isinstance(listed, list):
        raise Refused(f"{name!r} of the answer is no list, found {listed!r:.40}")
    if len(listed) != count:
        raise Refused(f"{name!r} of the answer has {len(listed)} entries for {count} items")
    return listed


def _beside(body: Mapping[str, Any], name: str, count: int, missing: Any) -> list[Any]:
    """A list that may be left out; one of another length says nothing about anything."""
    listed = body.get(name)
    return listed if isinstance(listed, list) and len(listed) == count else [missing] * count


def _shown(value: Any) -> str:
    return ", ".join(map(repr, value))[:120] or "an empty object" if isinstance(value, Mapping) else f"{value!r:.40}"
