"""The body of a server's answer to a `Reply`: chat and plain completions as OpenAI's API and its imitators write them.

What is thought apart (`reasoning_content`, or `reasoning`) is put back before the text as `<think>…</think>`, so that
a verifier sees what a model with its own template would have generated. Anything of another shape is `Garbage`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BROKEN_OFF = ("abort", "error")


class Garbage(Exception):
    """No answer this time; `wait_seconds` is what the server asked to wait for, 0 if nothing."""

    def __init__(self, told: str, wait_seconds: float = 0.0) -> None:
        super().__init__(told)
        self.wait_seconds = wait_seconds


class Refused(Exception):
    """No answer, however often the same is asked."""


@dataclass(frozen=True)
class Reply:
    """One response, or in `error` why there is none: `refused`, however often it were asked, or not answered.

    Token counts are the server's, `None` where it gives none.
    """

    text: str = ""
    truncated: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str = ""
    refused: bool = False


def read_reply(content: bytes, api: str) -> Reply:
    """The reply in the body of a good answer; `api` is `chat` or `completions`.

    Raises:
        Garbage: the body is no answer of that kind, or the server broke off.
        Refused: a filter of the server withheld the response.
    """
    body = json_object(content)
    if body.get("error"):
        error = body["error"]
        raise Garbage(
            f"an error in place of an answer: {error.get('message') if isinstance(error, Mapping) else error}"
        )
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise Garbage(f"no choices in the answer, found {', '.join(map(repr, body))[:120] or 'an empty object'}")
    choice = choices[0]
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise Refused("the server's content filter withheld the response")
    if finish in _BROKEN_OFF:
        raise Garbage(f"the server broke off: finish_reason {finish!r}")
    text = _chat_text(choice.get("message"), finish == "length") if api == "chat" else choice.get("text")
    if not isinstance(text, str):
        raise Garbage(f"the text of the answer is a {type(text).__name__}")
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Reply(text, finish == "length", _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def json_object(content: bytes) -> Mapping[str, Any]:
    """The JSON object of a body; numbers that JSON has not (NaN) are floats.

    Raises:
        Garbage: it is none.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as cause:
        shown = " ".join(content[:120].decode("utf-8", "replace").split())
        raise Garbage(f"the answer is no JSON: {shown or 'it is empty'}") from cause
    if not isinstance(body, Mapping):
        raise Garbage(f"the answer is a JSON {type(body).__name__}, not an object")
    return body


def _chat_text(message: Any, cut: bool) -> Any:
    """The text of a message, its thought put back; a thought that was cut stays open."""
    if not isinstance(message, Mapping):
        raise Garbage(f"the choice has no message, found a {type(message).__name__}")
    text = message.get("content")
    if text is None:
        text = message.get("refusal") or ""
    thought = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(thought, str) or not isinstance(text, str):
        return text
    return f"<think>{thought}" if cut and not text else f"<think>{thought}</think>{text}"


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    count = usage.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
