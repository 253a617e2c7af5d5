"""One row of a preference data set to a `Preference`; which format it has is told by its columns.

| format | columns |
|---|---|
| HelpSteer2, its file of preferences (nvidia/HelpSteer2) | `prompt`, `response_1`, `response_2`, `preference_strength` |
| HelpSteer3 (nvidia/HelpSteer3) | `context`, `response1`, `response2`, `overall_preference` |
| UltraFeedback binarized, TRL (HuggingFaceH4/ultrafeedback_binarized) | `prompt`, `chosen`, `rejected`: texts or chats; `score_chosen`, `score_rejected` |
| HH-RLHF (Anthropic/hh-rlhf) | `chosen`, `rejected`: whole dialogues as text |
| TRL without a prompt (trl-lib/ultrafeedback_binarized) | `chosen`, `rejected`: whole chats; `score_chosen`, `score_rejected` |
| RewardBench (allenai/reward-bench) | `prompt`, `chosen`, `rejected`, `subset` |

The strength of both HelpSteer sets runs from -3 to 3; below 0 the first answer is better, above it the second, 0 is a tie
(arXiv 2410.01257, section 3; arXiv 2505.11475, section 3). Equal scores of UltraFeedback are a tie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import UsageError
from cascade_core.nearest import hint
from cascade_plugin_rlhf.pairs import Preference

FORMATS: dict[str, tuple[str, ...]] = {
    "HelpSteer2": ("prompt", "response_1", "response_2", "preference_strength"),
    "HelpSteer3": ("context", "response1", "response2", "overall_preference"),
    "pairs": ("prompt", "chosen", "rejected"),
    "HH-RLHF": ("chosen", "rejected"),
}
"""Columns that a row of each format must have; the first format that fits is taken."""

_TURN = re.compile(r"\n\n(Human|Assistant): ?")
_HELPSTEER_TURN = re.compile(r"<extra_id_1>(User|Assistant)\n")
_ROLES = {"Human": "user", "User": "user", "Assistant": "assistant"}


def preference(row: Mapping[str, Any], where: str) -> Preference:
    """The preference in a row; `where` is its place, for refusals.

    Raises:
        UsageError: the row has the columns of no format (the nearest names are told), or a column holds something else.
    """
    columns = {name for name, value in row.items() if value is not None}
    for name, needed in FORMATS.items():
        if columns.issuperset(needed):
            return {"HelpSteer2": _helpsteer, "HelpSteer3": _helpsteer, "pairs": _pair, "HH-RLHF": _dialogue}[name](
                row, where
            )
    name, needed = max(FORMATS.items(), key=lambda one: _nearness(one[1], columns))
    missing = [column for column in needed if column not in columns]
    near = "".join(f"{column!r}{_found_near(column, columns - set(needed))}; " for column in missing)
    raise UsageError(
        f"{where}: no preference: {name} lacks {near}found {', '.join(sorted(map(repr, columns)))[:160] or 'nothing'}"
    )


def _nearness(needed: Sequence[str], columns: set[str]) -> float:
    return sum(1.0 if name in columns else 0.5 * bool(hint(name, columns - set(needed))) for name in needed) / len(
        needed
    )


def _found_near(column: str, columns: set[str]) -> str:
    near = hint(column, sorted(columns))
    return f" ({near.removeprefix(', did you mean ')} is near)" if near else ""


def _helpsteer(row: Mapping[str, Any], where: str) -> Preference:
    second_format = "preference_strength" in row and row["preference_strength"] is not None
    names = FORMATS["HelpSteer2" if second_format else "HelpSteer3"]
    strength = row[names[3]]
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not -3 <= strength <= 3:
        raise UsageError(f"{where}: {names[3]!r} must be a number from -3 to 3, found {strength!r:.60}")
    first, second = (_answer(row[name], name, where) for name in names[1:3])
    prompt = row[names[0]]
    if isinstance(prompt, str) and _HELPSTEER_TURN.search(prompt):
        turns = _turns(f"<extra_id_1>User\n{prompt}", _HELPSTEER_TURN, where)
        prompt = turns[:-1] if turns[-1]["role"] == "assistant" and not turns[-1]["content"] else turns
    better, worse = (first, second) if strength < 0 else (second, first)
    return Preference(as_prompt(prompt, names[0], where), better, worse, tie=strength == 0, id=_id(row))


def _pair(row: Mapping[str, Any], where: str) -> Preference:
    scores = [row.get(name) for name in ("score_chosen", "score_rejected")]
    prompt: Any = row["prompt"]
    earlier = row["chosen"][:-1] if isinstance(row["chosen"], Sequence) and not isinstance(row["chosen"], str) else []
    if len(earlier) > 1 and isinstance(prompt, str):  # the chat has more turns than the prompt's column, its last
        prompt = list(earlier)
    chosen, rejected = (_answer(row[name], name, where) for name in ("chosen", "rejected"))
    tie = scores[0] is not None and scores[0] == scores[1]
    subset = row.get("subset")
    return Preference(
        as_prompt(prompt, "prompt", where), chosen, rejected, tie, _id(row), subset if isinstance(subset, str) else ""
    )


def _dialogue(row: Mapping[str, Any], where: str) -> Preference:
    """Two dialogues that differ in the assistant's last turn, as HH-RLHF's texts or as chats; the turns that both have are the prompt."""
    both = []
    for name in ("chosen", "rejected"):
        turns = _said(row[name], name, where)
        if turns[-1]["role"] != "assistant":
            raise UsageError(f"{where}: {name!r} must end with a turn of the assistant, found {turns[-1]!r:.60}")
        both.append(turns)
    if both[0][:-1] != both[1][:-1]:
        raise UsageError(
            f"{where}: the two dialogues differ before their last turn, so their answers are to two prompts"
        )
    chosen, rejected = (turns[-1]["content"] for turns in both)
    prompt = as_prompt(both[0][:-1], "chosen", where)
    return _pair({**row, "prompt": prompt, "chosen": chosen, "rejected": rejected}, where)


def _said(found: Any, name: str, where: str) -> list[Message]:
    """The turns of a dialogue, at least one."""
    if isinstance(found, str):
        return _turns(found, _TURN, where)
    if isinstance(found, Sequence) and found and all(map(_is_turn, found)):
        return [Message(role=turn["role"], content=turn["content"]) for turn in found]
    raise UsageError(f"{where}: {name!r} must be a dialogue, as text or as a chat, found {found!r:.60}")


def _turns(text: str, mark: re.Pattern[str], where: str) -> list[Message]:
    before, *rest = mark.split(text)
    if before.strip() or not rest:
        raise UsageError(f"{where}: no dialogue of turns, found {text[:60]!r}")
    return [Message(role=_ROLES[rest[i]], content=rest[i + 1].strip()) for i in range(0, len(rest), 2)]


def _answer(found: Any, name: str, where: str) -> str:
    """An answer: text, or the last turn of a chat."""
    if isinstance(found, Sequence) and not isinstance(found, str) and found and isinstance(found[-1], Mapping):
        last = found[-1]
        found = last.get("content") if last.get("role") == "assistant" else None
    if not isinstance(found, str):
        raise UsageError(
            f"{where}: {name!r} must be a text, or a chat that ends with the assistant, found {found!r:.60}"
        )
    return found


def as_prompt(found: Any, name: str, where: str) -> str | list[Message]:
    """A prompt: text, or a chat that ends with the user.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(found, str) and found.strip():
        return found
    if isinstance(found, Sequence) and not isinstance(found, str) and found and all(map(_is_turn, found)):
        turns = [Message(role=turn["role"], content=turn["content"]) for turn in found]
        if turns[-1]["role"] == "user":
            return turns
    raise UsageError(f"{where}: {name!r} must be a text or a chat that ends with the user, found {found!r:.60}")


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)


def _id(row: Mapping[str, Any]) -> str:
    found = next((row[name] for name in ("id", "prompt_id") if row.get(name) is not None), "")
    return str(found)
