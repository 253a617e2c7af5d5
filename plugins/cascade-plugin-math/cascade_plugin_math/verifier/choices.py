"""Multiple choice: which letters did the response choose?

A letter counts where it stands for an option: alone in the box, in front of its text (`(B) 42`), after a phrase that
announces the answer or a verb of choosing. Articles, pronouns, symbols of formulas and letters inside words do not.
"""

from __future__ import annotations

import re

from cascade_core.errors import TaskError
from cascade_plugin_math.verifier.extraction import boxed
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.statement import announcement, tagged

_WRAP = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|bf|rm|boxed|emph|underline)\b\s*|\\[,;:! ]|[{}$*_`~\"“”<>]|(?<![A-Za-z])['‘’]|['‘’](?![A-Za-z])|\\[()\[\]]|\\(?:quad|left|right)\b"
)
_LEAD = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer|letter)s?\s*(?:is|are|:)?\s*", re.I)
_ONE = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\]]?")
_SEVERAL = re.compile(r"[(\[]?([A-Z])[)\]]?(?:\s*(?:,|;|/|and|&|or|\s)\s*(?:and\s+|or\s+)?[(\[]?([A-Z])[)\]]?)*", re.I)
_PICK = re.compile(
    r"\b(?:pick|choose|chose|select|go with|going with|vote for|opt for|settle on)\s+(?:option\s+|choice\s+|answer\s+)?[*(\[]*([A-Z])\b|"
    r"\b(?:option|choice|letter)\s*(?:is|:)\s*[*(\[]*([A-Z])\b|"
    r"\b(?i:option|choice)\s+[*(\[]*([A-Z])[)\]*]*\s+(?:is|must be|fits)\b(?!\s+(?:not|wrong|incorrect|false))|"
    r"(?<![A-Za-z])([A-Z])[)\]*]*\s+(?:is|must be)\s+(?:the\s+|my\s+)?(?:only\s+|final\s+)?(?:correct|right|best|answer)\b|"
    r"\b(?i:so|thus|therefore|hence)\s*,?\s*(?:it(?:'s|\s+is)\s+)?\(?([A-HJ-Z])\)?\s*[.!]?\s*$|"
    r"\b[Ii]t(?:'s|\s+is|\s+must\s+be)\s+\(?([A-HJ-Z])\)?\s*[.!]?\s*$"
)
_DENIED = re.compile(r"\b(?:not|isn't|never|neither)\s*$|\b(?:not|isn't)\s+\w+\s*$", re.I)
_ASKED = re.compile(r"[\s)\]*]*\?")
_DOUBT = re.compile(
    r"\?|n['’]t\b|\b(?:or|but|no|not|nor|never|cannot|wrong|incorrect|false|maybe|perhaps|possibly|rather|instead|actually|wait|hmm+|unsure)\b",
    re.I,
)
_LONGEST = 400  # characters of a box that are looked at for letters
_ONLY = re.compile(r"\s*[*(\[]*([A-Za-z])[)\]*]*\s*[.:]?\s*")
_OPTIONS = re.compile(r"(?:^|[\s(\\{])\(?([A-E])[).:}]", re.M)


def chosen(text: str, policy: Policy, box_only: bool) -> frozenset[str]:
    """The letters chosen, in upper case; empty if none was."""
    box = boxed(text)
    if box is not None:
        letters = _in_box(box.text, policy)
        if letters or box_only:
            return letters
    if box_only:
        return frozenset()
    letters = _stated(text[-16_000:], policy)
    if letters:
        return letters
    only = _ONLY.fullmatch(text[:200])
    if only:
        return _valid((only[1],), policy)
    return _option(_plain(text), policy) if len(text) < 200 and "\n" not in text.strip() else frozenset()


def labelled(label: str, policy: Policy) -> frozenset[str]:
    """The letters of the label.

    Raises:
        TaskError: it names no letter, or one that cannot be chosen.
    """
    text = _plain(label)
    letters = {letter.upper() for letter in re.findall(r"[A-Za-z]", text)}
    if not letters or (re.search(r"[A-Za-z]{2,}", text.replace("and", "")) and not text.isupper()):
        raise TaskError(f"the label {label[:60]!r} names no option")
    if not letters <= set(policy.letters):
        raise TaskError(f"the label {label[:60]!r} is none of the options {policy.letters}")
    return frozenset(letters)


def is_choice(label: str, problem: str) -> bool:
    """Whether the label is one letter and the question lists options with such letters."""
    text = _plain(label).strip("() ")
    if len(text) != 1 or not "A" <= text <= "J":
        return False
    options = set(_OPTIONS.findall(problem))
    return text in options and len(options) >= 2 and {"A", "B"} <= options


def _plain(text: str) -> str:
    return _WRAP.sub(" ", text).strip()


def _valid(letters: tuple[str, ...] | list[str], policy: Policy) -> frozenset[str]:
    upper = {letter.upper() for letter in letters}
    return frozenset(upper) if upper <= set(policy.letters) else frozenset()


def _in_box(content: str, policy: Policy) -> frozenset[str]:
    text = _LEAD.sub("", " ".join(_plain(content[:_LONGEST]).split()), count=1).strip().rstrip(".")
    one = _ONE.fullmatch(text)
    if one:
        return _valid((one[1],), policy)
    if _SEVERAL.fullmatch(text):
        return _valid([letter for letter in re.findall(r"[A-Za-z]+", text) if len(letter) == 1], policy)
    if policy.multi and text.isupper() and text.isalpha() and len(text) <= len(policy.letters):
        return _valid(list(text), policy)
    return _leading(text, policy)


def _leading(text: str, policy: Policy) -> frozenset[str]:
    """`(B) 42`, `B. forty-two`: an option's letter before its text."""
    match = re.match(r"\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Z])\s*[).:]", text)
    if match is None:
        return frozenset()
    rest = text[match.end() :]
    if re.search(r"\b(?:or|and)\s*[(\[]?[A-J][)\].:]?(?:\s|$)|[(\[][A-J][)\]]|\b[A-J][).]\s", rest):
        return frozenset()
    return _valid([next(part for part in match.groups() if part)], policy)


def _option(text: str, policy: Policy) -> frozenset[str]:
    """The letter of a response that is nothing but one option with its text: no doubt, and no other letter by itself."""
    letters = _leading(text, policy)
    alone = frozenset(
        letter.upper() for letter in re.findall(r"(?<![A-Za-z])(?:[A-Z](?![A-Za-z])|[a-z](?=\)))", text)
    ) & set(policy.letters)
    return frozenset() if alone - letters or _DOUBT.search(text) else letters


def _stated(text: str, policy: Policy) -> frozenset[str]:
    picks = [
        match
        for match in _PICK.finditer(text)
        if not _DENIED.search(text, max(0, match.start() - 30), match.start()) and not _ASKED.match(text, match.end())
    ]
    said = tagged(text) or announcement(text)
    if said is not None:
        letters = _announced(_plain(said), policy)
        if letters:
            return letters
    if picks:
        last = picks[-1]
        return _valid([next(part for part in last.groups() if part)], policy)
    return frozenset()


def _announced(said: str, policy: Policy) -> frozenset[str]:
    said = _LEAD.sub("", said, count=1)
    several = re.match(
        r"[(\[]?[A-Z][)\]]?(?:\s*(?:,|;|/|\band\b|&|\bor\b)\s*(?:and\s+|or\s+)?[(\[]?[A-Z][)\]]?(?![A-Za-z]))+", said
    )
    if several:
        return _valid(re.findall(r"\b[A-Z]\b", several[0]), policy)
    row = re.match(r"\(?[A-J]\)?(?:\s+\(?[A-HJ]\)?(?![A-Za-z'’]))+", said)
    if row:
        return _valid(re.findall(r"[A-J]", row[0]), policy)
    one = re.match(r"(?:\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Z]))(?![A-Za-z'’]|\s*[|?])", said) or re.fullmatch(
        r"()()([a-z])", said
    )
    return _valid([next(part for part in one.groups() if part)], policy) if one else frozenset()
