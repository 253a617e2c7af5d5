"""JSON of strangers: bytes to values, values to rows, and a refusal that names the field, what was found, what is allowed.

What RFC 8259 does not have (NaN, infinities) is refused, and so are numbers that no float holds, keys that stand twice in an object and
values nested deeper than `DEEPEST`. Lone surrogates are text that a model may well have sampled: they are taken, and answers are ASCII.
Whether a label makes sense is the domain's to say: that is a verdict's `error`, not a refusal.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from cascade_core.rows import Row
from cascade_core.serve.index import Index

DEEPEST = 64
"""Levels of lists and objects in a request."""
MOST_ROWS = 4096
"""Rows in one request."""
LONGEST_NUMBER = 4300
"""Digits of a whole number."""
LONGEST_NAME = 512
"""Characters of a name."""
TEXTS = ("mode", "source", "prefill", "request_id")
"""Fields of a row that are text, or null."""


class Refused(Exception):
    """A request that is not done: its HTTP status and what is told as JSON; `again` are seconds after which it may be repeated."""

    def __init__(
        self, message: str, *, status: int = 422, field: str = "", found: Any = None, allowed: str = "", again: int = 0
    ) -> None:
        self.status, self.again = status, again
        self.told: dict[str, Any] = {"error": message}
        if field:
            self.told |= {"field": field, "found": shown(found), "allowed": allowed}
        super().__init__(message)


def wrong(field: str, found: Any, allowed: str) -> Refused:
    """The refusal of one field."""
    return Refused(f"{field} must be {allowed}, found {shown(found)}", field=field, found=found, allowed=allowed)


def shown(value: Any) -> str:
    """A value of a stranger in a few words."""
    if isinstance(value, Mapping | list):
        return f"a{'n object' if isinstance(value, Mapping) else ' list'} of {len(value)}"
    return f"{value!r:.80}" if not isinstance(value, str) else repr(value[:80]) + ("…" if len(value) > 80 else "")


def parse(body: bytes) -> Any:
    """The value of a request's body.

    Raises:
        Refused: it is no JSON value that is taken; status 400.
    """
    try:
        value = json.loads(
            body, parse_constant=_no_number, parse_float=_finite, parse_int=_whole, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as cause:
        what = f"the body is no JSON: {str(cause).splitlines()[0][:200]}"
        raise Refused(what, status=400, field="body", found=body[:40].decode("latin-1"), allowed="JSON") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _is_deeper(value):
        raise Refused(
            f"the body is nested deeper than {DEEPEST} levels",
            status=400,
            field="body",
            found="deeper",
            allowed=f"{DEEPEST} levels",
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that stands twice nobody knows which value is meant (RFC 8259, section 4): a response could stand behind the one that was sent."""
    found = dict(pairs)
    if len(found) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key[:80]!r} stands twice in an object")
    return found


def _whole(text: str) -> int:
    if len(digits := text.removeprefix("-")) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits (allowed: {LONGEST_NUMBER})")
    return int(text)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _is_deeper(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def dump(value: Any) -> bytes:
    """An answer's body: ASCII, and never NaN."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def an_object(value: Any, allowed: Collection[str], where: str = "body") -> dict[str, Any]:
    """An object that has no other keys.

    Raises:
        Refused: it is none, or has.
    """
    if not isinstance(value, dict):
        raise wrong(where, value, f"an object with {', '.join(sorted(allowed))}")
    for key in value:
        if key not in allowed:
            raise wrong(f"{where}.{key[:80]}", value[key], f"absent (known: {', '.join(sorted(allowed))})")
    return value


def a_list(value: Any, where: str) -> list[Any]:
    """A list of 1 … `MOST_ROWS`.

    Raises:
        Refused: it is none.
    """
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_ROWS:
        raise wrong(where, value, f"a list of 1 … {MOST_ROWS}")
    return value


def a_name(value: Any, where: str) -> str:
    """A short text that is not empty.

    Raises:
        Refused: it is none.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise wrong(where, value, f"a text of 1 … {LONGEST_NAME} characters")
    return value


def a_number(value: Any, where: str, least: int, most: int) -> int:
    """A whole number of that range.

    Raises:
        Refused: it is none.
    """
    if type(value) is not int or not least <= value <= most:
        raise wrong(where, value, f"a whole number from {least} to {most}")
    return value


def a_row(value: Any, where: str, domains: Collection[str], index: Index) -> Row:
    """A sampled row, completed from the index.

    Raises:
        Refused: it is none; names the field.
    """
    row: Row = value if isinstance(value, dict) else {}
    if not isinstance(value, dict):
        raise wrong(where, value, "a row, an object with domain, id, prompt, answer, response")
    domain = row.get("domain", next(iter(domains)) if len(domains) == 1 else None)
    if not isinstance(domain, str) or domain not in domains:
        raise wrong(f"{where}.domain", domain, f"one of {', '.join(sorted(domains))}")
    row = {**row, "domain": domain, "id": a_name(row.get("id"), f"{where}.id")}
    row = index.completed(row)
    if not isinstance(row.get("response"), str):
        raise wrong(f"{where}.response", row.get("response"), "a text")
    if "prompt" not in row:
        known = f"; no prompts file here has task {row['id'][:80]!r} of {domain!r}" if index.tasks else ""
        raise wrong(f"{where}.prompt", None, f"a text or a list of messages{known}")
    if not isinstance(row["prompt"], str) and not is_conversation(row["prompt"]):
        raise wrong(f"{where}.prompt", row["prompt"], "a text or a list of messages with text role and content")
    _check_rest(row, where)
    return row


def is_conversation(prompt: Any) -> bool:
    """Whether a value is a list of messages, one at least."""
    return (
        isinstance(prompt, list)
        and bool(prompt)
        and all(isinstance(m, dict) and all(isinstance(m.get(k), str) for k in ("role", "content")) for m in prompt)
    )


def _check_rest(row: Row, where: str) -> None:
    for name in TEXTS:
        if row.get(name) is not None and not isinstance(row[name], str):
            raise wrong(f"{where}.{name}", row[name], "a text")
    if row.get("request_id") is not None:
        a_name(row["request_id"], f"{where}.request_id")
    if row.get("truncated") is not None and not isinstance(row["truncated"], bool):
        raise wrong(f"{where}.truncated", row["truncated"], "true or false")
    if row.get("turns") is not None and row["turns"] != [] and not is_conversation(row["turns"]):
        raise wrong(f"{where}.turns", row["turns"], "a list of messages with text role and content")
    if row.get("meta") is not None and not isinstance(row["meta"], dict):
        raise wrong(f"{where}.meta", row["meta"], "an object")
