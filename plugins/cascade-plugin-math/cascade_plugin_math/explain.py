"""Why a verdict of this domain is what it is: what was taken as the answer, and what it and the label were read as.

It asks the verifier the same questions as `score` and adds nothing to them. Trees are shown as operations before their
arguments (`(add x 1/2)`), long ones cut.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cascade_plugin_math.verifier import choices, reader
from cascade_plugin_math.verifier.node import Node
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.verdict import judge, label_text

_LONGEST = 600  # characters of a text or a tree that are shown
_LARGEST = 256  # bits of a number that is written out


def explained(answer: str | None, label: Any, *, problem: str, policy: Policy, mode: str) -> dict[str, Any]:
    """The verdict's rule, the texts and their readings.

    Args:
        answer: the text after the thought, `None` where there is none.
        mode: `boxed` or `stated`, as the domain's option `answer`.

    Raises:
        TaskError: as `judge`.
    """
    verdict = judge(answer, label, problem=problem, policy=policy, answer=mode)
    text = label_text(label)
    found: dict[str, Any] = {
        "rule": verdict.note,
        "looked for": "a complete box" if mode == "boxed" else "a complete box, else a stated answer",
        "extracted": None if verdict.answer is None else _cut(verdict.answer),
        "label": _cut(text),
    }
    if policy.answer_type == "choice" or (policy.answer_type == "auto" and choices.is_choice(text, problem)):
        found["compared as"] = "letters of a choice"
    else:
        found["compared as"] = "words" if policy.answer_type == "text" else "mathematics, else words"
        found["label read as"] = readings(text, policy)
        found["answer read as"] = [] if verdict.answer is None else readings(verdict.answer, policy)
    usual = asdict(Policy())
    found["policy"] = {key: value for key, value in asdict(policy).items() if value != usual[key]}
    return found


def readings(text: str, policy: Policy) -> list[str]:
    """What a text may mean: its trees, or the words it is compared by."""
    reading = reader.read(text, policy)
    if reading.too_much and not reading.nodes:
        return [f"too much to read: {reading.too_much}"]
    return [_cut(tree(node)) for node in reading.nodes] or [f"words: {_cut(reading.text)}"]


def tree(node: Node) -> str:
    """A tree as one line."""
    if node.op == "num":
        return _number(node.value.numerator, node.value.denominator)
    if not node.args:
        return str(node.value) if node.value is not None else node.op
    name = node.op if node.value is None else f"{node.op}[{_value(node.value)}]"
    parts, length = [name], len(name)
    for arg in node.args:
        if length > _LONGEST:
            parts.append("…")
            break
        parts.append(tree(arg))
        length += len(parts[-1]) + 1
    return f"({' '.join(parts)})"


def _value(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _number(above: int, below: int) -> str:
    if max(above.bit_length(), below.bit_length()) > _LARGEST:
        return f"<a number of {max(above.bit_length(), below.bit_length())} bits>"
    return str(above) if below == 1 else f"{above}/{below}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
