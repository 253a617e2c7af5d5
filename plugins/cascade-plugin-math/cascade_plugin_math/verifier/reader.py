"""Text of an answer to what it may mean: one tree or a few, and its words.

Most texts have one reading. A few have two (`2e-3`, `12,34,567`): an answer is right if one of its readings is. Text that is
no mathematics has no tree and is compared by its words. Reading is bounded by `MAX_LENGTH` characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cascade_plugin_math.verifier import words
from cascade_plugin_math.verifier.characters import plain
from cascade_plugin_math.verifier.layout import unescaped
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable, walk
from cascade_plugin_math.verifier.parser import parse
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.trimming import trimmed

MAX_LENGTH = 20_000
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_LIST_OF_THREES = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){2,}")
_SIGNED_EXPONENT = re.compile(r"\d[eE][+-]\d")
_SELECTION = re.compile(
    r"(?:\\(?:mathrm|text)\s*\{\s*)?(?<![A-Za-z\\])([CA])\}?_\{?(\d{1,4})\}?\^\{?(\d{1,4})(?!\d)\}?"
)
_CHOSEN = {"C": "C", "A": "P"}
_MERIDIEM = re.compile(r"(\d)\s*(?:\\text\s*\{|\\mathrm\s*\{)?\s*([ap])\.?\s*m\.?\s*\}?\s*$", re.I)
_OPTION = re.compile(
    r"^\s*(?:\\(?:textbf|text|mathbf|mathrm)\s*\{\s*)\(?[A-J]\)?[.:]?\s*\}[\s\\,;:~]*(?=\S)|^\s*\([A-J]\)(?:\s|\\[ ,;])+(?=[-\d\\$])"
)
_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|big|Big|bigg|Bigg)(?![A-Za-z])|\\[,;:!]")
_DELIMITED = re.compile(r"(?<!\\)\$([^$]*)(?<!\\)\$")
_LOOSE_BLANK = re.compile(r"(?<!\w) | (?!\w)")
_NOTHING = frozenset(("", "?", "??", "???", "-", "--", "_", "__", "___", "...", "…", "null", "nan", "n/a"))


@dataclass(frozen=True)
class Reading:
    """One text: what was written, the trees it may mean, and whether reading it would have been too much."""

    text: str
    nodes: tuple[Node, ...] = ()
    too_much: str = ""
    list_too: Node | None = field(default=None)

    @property
    def is_mathematics(self) -> bool:
        return bool(self.nodes)


def cleaned(text: str) -> str:
    """The text in plain characters, without delimiters and final punctuation."""
    text = re.sub(r"\bper cent\b", "percent", " ".join(plain(unescaped(text)).split()))
    text = re.sub(r"^(\\text\s*\{\s*)?(?:negative|minus)\s+(?=\d)", r"\1-", text)
    text = re.sub(r"^\\[(\[](.*)\\[)\]]$", r"\1", text, flags=re.S).strip()
    if not text.endswith(("..", "\\,", "\\;", "\\:", "\\right.")):
        text = text.rstrip(".,;: ") or text
    for mark in ("**", "$$", "$", "`"):
        if (
            len(text) > 2 * len(mark)
            and text.startswith(mark)
            and text.endswith(mark)
            and not text.endswith("\\" + mark)
        ):
            text = text[len(mark) : -len(mark)].strip()
    return trimmed(text)


def is_nothing(text: str) -> bool:
    """Whether the text holds no answer: empty, a question mark, an ellipsis."""
    return words.spoken(text) in _NOTHING or not re.search(
        r"[^\W_]|\\[A-Za-z]|[{}%]", re.sub(r"\\(?:quad|qquad|text|mathrm|[,;:! ])", "", plain(text))
    )


def identity(text: str) -> str:
    """The text as far as layout does not matter: equal identities are equal answers.

    A blank between two letters or digits stays, since `2 1/4` is not `21/4`; delimiters around formulas within words go.
    """
    if text.count("$") > 1:
        text = _DELIMITED.sub(r" \1 ", text)
    text = _LAYOUT.sub(" ", re.sub(r"\\[dt](?=frac)", r"\\", text)).replace("~", " ")
    return _LOOSE_BLANK.sub("", " ".join(text.split()))


def read(text: str, policy: Policy, pointed: bool = False) -> Reading:
    """What the text may mean; a text of words has no tree. `pointed`: numbers are written 1,234.5 whatever the locale."""
    text = words.unlabelled(cleaned(text))
    if len(text) > MAX_LENGTH:
        return Reading(text, too_much="an answer of too many characters")
    said = words.phrase(text)
    nodes: list[Node] = []
    trouble = ""
    for variant in [said] if said else _variants(_clock(text)):
        try:
            node = parse(variant, comma=policy.decimal_comma and not pointed, signed_exponent=variant.endswith("\x00"))
        except Unreadable:
            continue
        except TooMuch as error:
            trouble = str(error)
            continue
        if not _is_text(node) and node not in nodes:
            nodes.append(node)
    return Reading(text, tuple(nodes), trouble, _as_list(text, policy))


def _variants(text: str) -> list[str]:
    variants = [text]
    if _INDIAN.fullmatch(text):
        variants.append(text.replace(",", ""))
    option = _OPTION.match(text)
    if option and text[option.end() :].strip():
        variants = [text[option.end() :], text]
    if _SELECTION.search(text):  # the other notation of combinations and arrangements
        variants.append(_SELECTION.sub(lambda match: rf"{{}}_{{{match[2]}}}{_CHOSEN[match[1]]}_{{{match[3]}}}", text))
    if _SIGNED_EXPONENT.search(text):
        variants.append(re.sub(r"(\d)[eE]([+-]\d+)(?![\dA-Za-z.])", r"\1*10^{\2}", text))
    return variants


def _clock(text: str) -> str:
    """`7:05 p.m.` as 19:05."""
    match = _MERIDIEM.search(text)
    hours = re.match(r"\s*(\d{1,2})(?::(\d{2}))?", text)
    if not match or not hours or match.start(1) >= hours.end() or not 1 <= int(hours[1]) <= 12:
        return text
    return f"{int(hours[1]) % 12 + (12 if match[2].lower() == 'p' else 0)}:{hours[2] or '00'}"


def _is_text(node: Node) -> bool:
    """Whether a tree holds nothing but words, so that the words should be compared instead."""
    return all(part.op in ("word", "mul", "list", "and", "or", "pow", "set") for part in walk(node)) and any(
        part.op == "word" and len(part.value) > 1 for part in walk(node)
    )


def _as_list(text: str, policy: Policy) -> Node | None:
    """`100,200,300` as three numbers, which it is only beside an answer that is surely a list."""
    if not _LIST_OF_THREES.fullmatch(text):
        return None
    return parse(text.replace(",", ", "), comma=policy.decimal_comma)
