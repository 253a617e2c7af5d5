"""Why a verdict of this domain is what it is: each instruction with its arguments and both readings of the answer.

It asks the checks the same questions as `score` and adds nothing to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_plugin_if.reading import Reading
from cascade_plugin_if.verdict import Call, judge

_LONGEST = 600  # characters of the answer that are shown


def explained(asked: Sequence[Call], answer: str | None) -> dict[str, Any]:
    """Per instruction what was asked and how the answer stands to it; what the checks looked at.

    Args:
        answer: the text after the thought, `None` where there is none.
    """
    verdict = judge(asked, answer or "")
    reading = Reading(answer or "")
    failed = [name for name, held in zip(verdict.ids, verdict.strict, strict=True) if not held]
    rule = (
        "an instruction is not followed strictly: " + ", ".join(failed) if failed else "every one is followed strictly"
    )
    shown = reading.text[:_LONGEST]
    return {
        "rule": "no answer: the thought is not finished" if answer is None else rule,
        "instructions": [
            {
                "id": call.instruction.id,
                "strict": strict,
                "loose": loose,
                "arguments": dict(call.args),
                "says": call.instruction.describe(call.args),
            }
            for call, strict, loose in zip(asked, verdict.strict, verdict.loose, strict=True)
        ],
        "read": shown if len(shown) == len(reading.text) else f"{shown}… ({len(reading.text)} characters)",
        "words": len(reading.words),
        "sentences": reading.sentence_count,
        "lines": len(reading.lines),
    }
