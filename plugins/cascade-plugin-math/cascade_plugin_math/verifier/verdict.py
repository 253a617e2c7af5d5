"""The verdict: is the answer of a response the label of its task?

    extraction    the box, or where that is allowed the stated answer
    identity      the label's own text is right, whatever it means
    reading       text to trees (`reader`), or to words (`words`)
    matching      trees by what they are (`match`), under what the question says (`question`)

Nothing of the response is ever evaluated as code, and no text makes these functions raise: a response is right or wrong.
Only a broken task raises `TaskError`. Work is bounded by sizes, never by a clock, so that a verdict is the same everywhere; an answer
beyond the bounds is wrong, with a note that begins with `limit`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_math.verifier import bases, choices, question, reader, repeats, words
from cascade_plugin_math.verifier.asking import value_of
from cascade_plugin_math.verifier.extraction import boxed, is_boxing, is_cut_off
from cascade_plugin_math.verifier.match import Asked, Matcher
from cascade_plugin_math.verifier.names import is_plain_number, reduce
from cascade_plugin_math.verifier.node import Node, TooMuch, make
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.reader import Reading
from cascade_plugin_math.verifier.statement import finished, stated, whole

OWN_TEXT = "right: the label's own text"
MODES = ("boxed", "stated")
_LAYOUT_SIGNS = "$*_` \t\n"
_POINTED = re.compile(r"-?\d{1,3}\.\d{3}")  # a data set's decimal point, or a locale's thousands
_LABELS = (
    256  # are kept as they were read: the samples of a task come close together, and a read label takes some 10 KiB
)
_LONGEST_KEPT = 2_000  # characters
_MISSING = ("None", "Null", "NULL", "NaN", "NAN")  # how other programs write that there is no label


@dataclass(frozen=True)
class Verdict:
    """Right or wrong, why in one line, and what was taken as the answer (`None`: nothing was)."""

    right: bool
    note: str
    answer: str | None = None


def judge(
    response: str | None, label: Any, *, problem: str = "", policy: Policy | None = None, answer: str = "boxed"
) -> Verdict:
    """The verdict on a response.

    Args:
        response: the text after the thought (`Response.answer`); `None` where there is none.
        label: the right answer, in LaTeX or plain text.
        problem: the question, for the rules that need it.
        policy: how to judge.
        answer: `boxed` takes the last complete box only; `stated` also a stated final answer.

    Raises:
        TaskError: the label is missing, empty, or no answer that can be read.
    """
    policy = policy or Policy()
    text = label_text(label)
    if answer == "stated" and response is not None and (said := _label_said(response, text)) is not None:
        labelled(text, policy)  # a label that cannot be read stays an error of the task
        return Verdict(True, OWN_TEXT, said)
    if policy.answer_type == "choice" or (policy.answer_type == "auto" and choices.is_choice(text, problem)):
        return _choice(response, text, policy, answer)
    wanted = labelled(text, policy)
    if response is None:
        return Verdict(False, "no answer after the thought")
    given, objection = extract(response, answer)
    if given is None:
        return Verdict(False, "no boxed answer" if answer == "boxed" else "no stated answer")
    if objection:
        return Verdict(False, objection, given)
    if reader.is_nothing(given):
        return Verdict(False, "the answer is empty", given)
    try:
        right, note = _compare(wanted, given, problem, policy)
        if right and (offered := _offered(response)):
            right, note = (
                (right, note)
                if _compare(wanted, offered, problem, policy)[0]
                else (False, "several alternatives are offered")
            )
    except TooMuch as error:
        return Verdict(False, f"limit: {error}", given)
    except RecursionError:  # trees are low; only a caller that is deep in its own stack gets here
        return Verdict(False, "limit: nested too deeply", given)
    return Verdict(right, note, given)


def label_text(label: Any) -> str:
    """The label as text.

    Raises:
        TaskError: it is missing, empty, or of no kind that a label can be.
    """
    if isinstance(label, bool):
        return "yes" if label else "no"
    if isinstance(label, int | float):
        label = repr(label)
    if not isinstance(label, str):
        raise TaskError(f"the label is missing: expected a text or a number, found {type(label).__name__}")
    box = boxed(label)
    text = (box.text if box else label).strip()
    if reader.is_nothing(text) or text in _MISSING:
        raise TaskError(f"the label {label[:60]!r} is empty")
    return text


def labelled(text: str, policy: Policy) -> Reading:
    """The label as it is read; the last few are kept.

    Raises:
        TaskError: it is neither mathematics nor words: an unbalanced bracket, a dangling sign.
    """
    return _kept(text, policy) if len(text) <= _LONGEST_KEPT else _labelled(text, policy)


@lru_cache(maxsize=_LABELS)
def _kept(text: str, policy: Policy) -> Reading:
    return _labelled(text, policy)


def _labelled(text: str, policy: Policy) -> Reading:
    reading = reader.read(text, policy)
    if policy.decimal_comma and _POINTED.fullmatch(text):
        pointed = reader.read(text, policy, pointed=True)
        reading = replace(reading, nodes=tuple(dict.fromkeys((*reading.nodes, *pointed.nodes))))
    if policy.answer_type == "text":
        return reading
    if not reading.is_mathematics and not reading.too_much and not words.is_wordy(text):
        raise TaskError(
            f"the label {text[:60]!r} cannot be read: a bracket is not closed or a sign has nothing beside it"
        )
    return reading


def extract(response: str, answer: str) -> tuple[str | None, str]:
    """The answer that a response gives, and an objection to it if the response itself takes it back."""
    box = boxed(response)
    if box is not None:
        return box.text, "the box is disowned" if box.disowned else ""
    return (stated(response) if answer == "stated" and not is_cut_off(response) else None), ""


def _label_said(response: str, label: str) -> str | None:
    """The label as a response says it that says nothing else, whatever it means; `None` where it does not."""
    if len(response) > 2 * len(label) + 160 or is_boxing(response) or response.count("~") != label.count("~"):
        return None
    said = whole(response)
    if _begins(said) != _begins(label):  # most responses, at once
        return None
    said = reader.cleaned(finished(said))
    return said if reader.identity(said) == reader.identity(reader.cleaned(label)) else None


def _begins(text: str) -> str:
    """The letter or digit that a text begins with behind signs of layout; `""` before anything else."""
    first = text.lstrip(_LAYOUT_SIGNS)[:1]
    return first if first.isascii() and first.isalnum() else ""


def _offered(response: str) -> str:
    box = boxed(response)
    return box.alternative if box else ""


def _choice(response: str | None, label: str, policy: Policy, answer: str) -> Verdict:
    wanted = choices.labelled(label, policy)
    if response is None:
        return Verdict(False, "no answer after the thought")
    letters = choices.chosen(response, policy, answer == "boxed")
    shown = ",".join(sorted(letters))
    return Verdict(letters == wanted, "right" if letters == wanted else f"chose {shown or 'no option'}", shown or None)


def _compare(wanted: Reading, given: str, problem: str, policy: Policy) -> tuple[bool, str]:
    """Right or not, and why."""
    if len(given) > reader.MAX_LENGTH:
        if reader.identity(given) == reader.identity(wanted.text):
            return True, OWN_TEXT
        raise TooMuch("an answer of too many characters")
    text = words.unlabelled(reader.cleaned(given))
    if reader.identity(text) == reader.identity(wanted.text):
        return True, OWN_TEXT
    asked = question.asked(problem) if problem else Asked()
    if asked.base is not None and asked.base > 10 and (numeral := bases.bare(wanted.text, asked.base)) is not None:
        other = bases.bare(text, asked.base)
        if other is not None:  # letters are digits here, no variables
            return other == numeral, "a numeral of the base that is asked for"
    if policy.answer_type == "text":
        return _spoken(wanted, reader.read(text, policy))
    reading = reader.read(value_of(text, problem), policy)
    if reading.too_much and not reading.is_mathematics:
        raise TooMuch(reading.too_much)
    if wanted.too_much and not wanted.is_mathematics:
        return False, "wrong"
    if not reading.is_mathematics or not wanted.is_mathematics:
        return _spoken(wanted, reading)
    matcher = Matcher(question.context(problem, policy), asked)
    for node in reading.nodes:
        if any(matcher.same(label, node) for label in _labels(wanted, node)):
            return _unless_unfinished(wanted, reading, node, problem, matcher)
    return False, "wrong"


def _labels(wanted: Reading, node: Node) -> list[Node]:
    """The readings of the label; a grouped number is also a list beside an answer that is one."""
    return (
        [*wanted.nodes, wanted.list_too]
        if wanted.list_too is not None and node.op in ("list", "set", "and")
        else list(wanted.nodes)
    )


def _spoken(wanted: Reading, reading: Reading) -> tuple[bool, str]:
    if wanted.is_mathematics and not reading.is_mathematics and not words.is_wordy(reading.text):
        return False, "wrong: no mathematics that can be read"
    if words.same(wanted.text, reading.text):
        return True, "right: in words"
    if wanted.is_mathematics and reading.is_mathematics:
        empty = make("set")
        return (
            (True, "right: no solution")
            if wanted.nodes[0] == empty == reading.nodes[0]
            else (wanted.nodes == reading.nodes, "in words")
        )
    return False, "wrong: not the label's words"


def _unless_unfinished(
    wanted: Reading, reading: Reading, node: Node, problem: str, matcher: Matcher
) -> tuple[bool, str]:
    """Right, unless the answer leaves undone what the question asks for."""
    _, value = reduce(node, matcher.context)
    if matcher.context.policy.form == "evaluated" and is_plain_number(wanted.nodes[0]) and not is_plain_number(value):
        return False, "not evaluated"
    if (
        problem
        and node not in wanted.nodes
        and not is_plain_number(node)
        and (
            repeats.repeats(node, problem)
            or repeats.repeats(value, problem)
            or repeats.written_in(reading.text, problem)
        )
    ):
        return False, "repeats the question"
    return True, "right"
