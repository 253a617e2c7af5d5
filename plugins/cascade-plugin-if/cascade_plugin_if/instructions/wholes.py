"""The group `detectable_format`, what the whole answer must be: JSON, or one of three fixed sentences."""

from __future__ import annotations

import json
from random import Random

import regex

from cascade_plugin_if.instructions.base import Args, Instruction
from cascade_plugin_if.jsontext import is_json
from cascade_plugin_if.reading import Reading

OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCED = regex.compile(r"(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?:json[c5l]?)?+(?P<body>.*)", regex.DOTALL | regex.IGNORECASE)
_WRAPPING = " \t\n*_`\"'“”‘’"


def _json(reading: Reading, args: Args) -> bool:
    body = _unfenced(reading.exact)
    return body is not None and is_json(body)


def _unfenced(text: str) -> str | None:
    """What stands inside the one fence around the text, or the text; `None` if a fence is not closed at the end."""
    fence = _FENCED.fullmatch(text)
    if fence is None:
        return text
    mark, body = fence["mark"], fence["body"]
    inner = body.rstrip(mark[0])
    if len(body) - len(inner) != len(mark):
        return None
    return inner.strip()


def _options(reading: Reading, args: Args) -> bool:
    """Exactly one option occurs, as a sentence of its own, and no other option is named."""
    flat = " ".join(reading.text.split())
    found = [option for option in OPTIONS if option.casefold() in flat.casefold()]
    if len(found) != 1 or flat.casefold().count(found[0].casefold()) != 1:
        return False
    before, option, after = flat.partition(found[0])
    before, after = before.strip(_WRAPPING), after.lstrip("*_`\"'“”‘’")
    starts = not before or before[-1] in ".!?…:"
    quoted_inside = bool(before) and flat[: flat.find(found[0])].rstrip("*_`")[-1:] in "\"'“‘"
    ends = not after or (after[0].isspace() and not after.lstrip()[:1].islower())
    return bool(option) and starts and not quoted_inside and ends


def _edit_json(draft: str, args: Args, rng: Random) -> str:
    return json.dumps({"answer": draft}, ensure_ascii=False)


def _edit_options(draft: str, args: Args, rng: Random) -> str:
    return rng.choice(OPTIONS)


JSON = Instruction(
    "detectable_format:json_format",
    (),
    _json,
    lambda args: "Give the whole answer as JSON; a Markdown code fence around it is allowed.",
    _edit_json,
    80,
)
CONSTRAINED = Instruction(
    "detectable_format:constrained_response",
    (),
    _options,
    lambda args: "Answer with one of these sentences: " + " / ".join(OPTIONS),
    _edit_options,
    0,
)
FAMILIES = (JSON, CONSTRAINED)
