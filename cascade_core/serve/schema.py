"""`GET /openapi.json`: what the service takes and answers, as OpenAPI 3.1.

It is made of what the service checks with: the domains that are served, the limits and field names of `wire.py` and `reward.py`, the settings
of a stage. What it cannot say (rows of one group are of one task; a `request_id` is not used twice) is refused with a sentence. That it says neither too
much nor too little is tried by requests that are generated from it (`drills/test_serve_schema.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from cascade_core.serve.groups import LARGEST_BATCH, SETTINGS
from cascade_core.serve.wire import LONGEST_NAME, MOST_ROWS, TEXTS
from cascade_core.settings import Stage

Schema = dict[str, Any]

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
_MESSAGES: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"type": "string"}, "content": {"type": "string"}},
    },
}
_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31}
_NUMBER: Schema = {"type": "number"}
_REFUSALS = {
    "400": "the body is no JSON",
    "401": "the token is missing or wrong",
    "403": "a web page or a strange host asks",
    "409": "it contradicts what was said before",
    "413": "the body is too long",
    "415": "the body is compressed",
    "422": "a field is wrong; it is named",
    "503": "too much waits, or the service is ending; ask again after Retry-After seconds",
    "504": "the batch stayed incomplete",
}


def openapi(domains: Collection[str], *, has_tasks: bool, has_stage: bool, body_mib: int) -> Schema:
    """The document.

    Args:
        has_tasks: whether prompts files are served, so that a row may leave out its prompt.
        has_stage: whether the steps of a stage are served.
        body_mib: the longest body.
    """
    row, (settings, parts) = _row(domains, has_tasks), _settings()
    paths = {
        "/score": _post("Rows to verdicts.", _object({"rows": _many(row)}), {"scores": _list(_SCORE)}),
        "/rewards": _post(
            "The responses to one task to finished advantages.", _group(row, settings), {"rows": _list(_JUDGED)}
        ),
        "/get_reward": _post("OpenRLHF's shape of a reward server.", _get_reward(), _REWARDS),
        "/domains": _get("What is served.", {"domains": {"type": "object"}}),
        "/health": _get(
            "Whether it lives.", {"status": {"enum": ["ok", "stopped"]}, "waiting": _COUNT, "slow": _COUNT}
        ),
        "/slow": _get("Rows that hang.", {"slow": {"type": "array", "items": {"type": "object"}}}),
    }
    if has_stage:
        paths |= _stage()
    about = f"A body has at most {body_mib} MiB; numbers are finite; text may hold lone surrogates."
    scheme = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "cascade serve", "version": version("cascade-rl"), "description": about},
        "paths": paths,
        "components": {"securitySchemes": scheme, "schemas": {"Refusal": _REFUSAL, **parts}},
    }


def _object(
    properties: Mapping[str, Schema], required: Collection[str] | None = None, *, closed: bool = True
) -> Schema:
    needed = list(properties) if required is None else list(required)
    return {"type": "object", "properties": dict(properties), "required": needed, "additionalProperties": not closed}


def _settings() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The settings of a stage that a request may give, from its own types, and the parts that they refer to."""
    stage = Stage.model_json_schema(ref_template="#/components/schemas/{model}")
    parts: dict[str, Schema] = stage["$defs"]
    properties = {**stage["properties"], **parts["Rollout"]["properties"]}
    return {name: properties[name] for name in SETTINGS}, parts


def _many(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": MOST_ROWS}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _row(domains: Collection[str], has_tasks: bool) -> Schema:
    """A sampled row; what is unknown in it is carried along."""
    prompt = {"anyOf": [{"type": "string"}, _MESSAGES]}
    properties = {
        "domain": {"enum": sorted(domains)},
        "id": _NAME,
        "prompt": prompt,
        "response": {"type": "string"},
        **{name: _or_null({"type": "string"}) for name in TEXTS},
        "request_id": _or_null(_NAME),
        "truncated": {"type": ["boolean", "null"]},
        "meta": {"type": ["object", "null"]},
        "turns": _or_null({**_MESSAGES, "minItems": 0}),
    }
    needed = ["id", "response", *([] if len(domains) == 1 else ["domain"]), *([] if has_tasks else ["prompt"])]
    return _object(properties, needed, closed=False)


_SCORE = _object(
    {
        "value": {"type": "number", "minimum": 0, "maximum": 1},
        "reward": _NUMBER,
        "note": {"type": "string"},
        "metrics": {"type": "object", "additionalProperties": _NUMBER},
        "error": {"type": "string", "minLength": 1},
    },
    ["value"],
)
_JUDGED = _object(
    {"score": _SCORE, "reward": _or_null(_NUMBER), "advantage": _NUMBER, "masked": {"enum": ["", "error", "overlong"]}}
)
_REWARDS = {
    "rewards": _list(_or_null(_NUMBER)),
    "scores": _list(_or_null(_NUMBER)),
    "extra_logs": {"type": "object", "additionalProperties": _list(_NUMBER)},
}
_REFUSAL = _object(
    {
        "error": {"type": "string"},
        "field": {"type": "string"},
        "found": {"type": "string"},
        "allowed": {"type": "string"},
    },
    ["error"],
)


def _group(row: Schema, found: Mapping[str, Schema]) -> Schema:
    """`found` are the settings that may be given."""
    batch = _object({"id": _NAME, "groups": {"type": "integer", "minimum": 1, "maximum": LARGEST_BATCH}})
    rows = {**row, "properties": {**row["properties"], "tokens": _COUNT}}
    settings = _object({name: found[name] for name in SETTINGS}, [])
    properties = {"rows": _many(rows), "group": _NAME, "batch": _or_null(batch), "settings": _or_null(settings)}
    return _object(properties, ["rows"])


def _get_reward() -> Schema:
    texts = _many({"type": "string"})
    properties = {"query": texts, "prompts": texts, "labels": _many({}), "request_id": _or_null(_NAME)}
    return _object(properties, ["query", "prompts", "labels"])


def _stage() -> dict[str, Schema]:
    """The endpoints of an engine that samples a stage."""
    group, place = {"group": _NAME}, {"index": _COUNT}
    response = {"response": {"type": "string"}, "truncated": {"type": "boolean"}, "tokens": _COUNT}
    turns = {**_MESSAGES, "minItems": 1}
    sampled = _object(
        {**group, **place, **response, "turns": _or_null({**turns, "minItems": 0})}, [*group, *place, *response]
    )
    sample = {"anyOf": [sampled, _object({**group, **place, "gave_up": _NAME})]}
    answer = {"reward": _NUMBER, "scores": _NUMBER, "extra_logs": {"type": "object", "additionalProperties": _NUMBER}}
    task = {
        "step": _COUNT,
        "slot": _COUNT,
        "samples": _COUNT,
        "prompt": {"type": "string"},
        "sampling": {"type": "object"},
    }
    said = {"said": {"type": ["string", "null"]}}
    after = {
        "name": "after",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": -1, "maximum": 10**9},
    }
    status = _get("Where the stage is.", {"stage": {"type": "string"}, "done": _list({"type": "object"})})
    status["get"]["parameters"] = [after]
    return {
        "/slot": _post("The task of a slot.", _object({"slot": _COUNT, **group}), task),
        "/reply": _post(
            "What the environment says in a conversation.", _object({**group, **place, "turns": turns}), said
        ),
        "/sample": _post("A sample to its advantage, once its step is judged.", sample, answer),
        "/stage": status,
    }


def _post(what: str, body: Schema, answer: Mapping[str, Schema]) -> Schema:
    content = {"application/json": {"schema": body}}
    operation = {
        "summary": what,
        "requestBody": {"required": True, "content": content},
        "responses": _responses(answer),
    }
    return {"post": {**operation, "security": [{"token": []}, {}]}}


def _get(what: str, answer: Mapping[str, Schema]) -> Schema:
    return {"get": {"summary": what, "responses": _responses(answer), "security": [{"token": []}, {}]}}


def _responses(answer: Mapping[str, Schema]) -> Schema:
    """What is told: the answer has these keys, perhaps more; each refusal is of one shape."""
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    whole = {"application/json": {"schema": _object(answer, closed=False)}}
    return {"200": {"description": "done", "content": whole}} | {
        status: {"description": why, "content": refusal} for status, why in _REFUSALS.items()
    }
