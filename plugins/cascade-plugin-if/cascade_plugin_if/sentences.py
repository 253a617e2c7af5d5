"""Sentences as a reader counts them: English rules, and the full stops of other scripts.

A stop ends a sentence where white space, a closing mark, the number of a note or the end follows. It does not after an abbreviation, an
initial or the number of a list item; inside a number or a name; inside a quotation or bracket after which the sentence
goes on; in an ellipsis that goes on in lower case. Stops without words are no sentences. List items and headings are
sentences only if they have a stop; the last sentence of a paragraph need not have one.

Limits: without a dictionary an unknown abbreviation before a capital ends a sentence, and Thai, which writes no stops,
is one sentence a paragraph. Linear in the length of the text.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import regex

from cascade_plugin_if import markdown
from cascade_plugin_if.words import has_word, listed

# fmt: off
_NEVER_LAST = listed("""
mr mrs ms dr prof rev gen sen rep gov capt cpt lt col sgt maj cmdr adm hon messrs mme mlle mt e.g i.e eg ie cf vs viz
approx dept est min max tel incl excl resp bzw ggf evtl inkl z.b d.h
""")
_MAYBE_LAST = listed("st ave blvd rd inc ltd co corp bros jr sr sra srta ph.d m.d al ed eds usw tbsp tsp oz lb lbs ft hr hrs yr yrs")
_LAST_BEFORE_CAPITAL = listed("etc a.m p.m am pm")
_BEFORE_NUMBER = listed("""
no nos nr fig figs vol pp ch sec eq art jan feb mar apr jun jul aug sep sept oct nov dec approx ca circa
""")
_STARTERS = listed("""
the a an this that these those he she it we they i you there here then when if but and or so as in on at to for my his
her its our their your what who where why how no yes not however after before while once one some many most all
everyone nobody please let now also still even only both each every another other such
""")
_AFTER_ORDINAL = listed("januar februar märz april mai juni juli august september oktober november dezember jahrhundert")
_AFTER_TIME = listed("""
monday tuesday wednesday thursday friday saturday sunday est edt pst pdt cst cdt gmt utc cet bst
""")
# fmt: on
_WIDE = frozenset("。！？｡।॥؟۔։።᙮")
_QUOTES = frozenset("\"'”’»")
_STOP = regex.compile(
    rf"[.!?…‼⁇⁈⁉{''.join(sorted(_WIDE))}]++(?P<closers>[\"'”’»)\]*_`]*+(?:\[\d{{1,3}}\]|[¹²³⁰⁴-⁹]++)*+)"
)
_TOKEN_BEFORE = regex.compile(r"(?r)[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}.]{0,24}$")
_NEXT_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]++")
_SPAN = regex.compile(r"[\"“”()]")


def count(lines: list[str]) -> int:
    """How many sentences stand in these lines (prose: fenced code is left out by the caller)."""
    return sum(len(spans) for _, spans in blocks(lines))


Spans = list[tuple[int, int]]
Known = dict[tuple[str, bool, bool], Spans]
"""Blocks that were cut before, as in another reading of the same answer: their spans by the block and how it is read."""


def split(lines: list[str], known: Known | None = None) -> list[str]:
    """The sentences in these lines, each with its stop.

    >>> split(["It rains, e.g. in May. Take care!"])
    ['It rains, e.g. in May.', 'Take care!']
    """
    return [text[start:end].strip() for text, spans in blocks(lines, known) for start, end in spans]


def blocks(lines: list[str], known: Known | None = None) -> Iterator[tuple[str, Spans]]:
    """Paragraphs, list items and headings, each as one line of text and where its sentences begin and end."""
    known = {} if known is None else known
    text = "\n".join(lines)
    is_upper = text.isupper() if text.isascii() else text.upper() == text
    mixed = not is_upper and text.lower() != text
    for block, is_list in _blocks(lines):
        spans = known.get((block, is_list, mixed))
        if spans is None:
            spans = known[block, is_list, mixed] = _in_block(block, is_list, mixed)
        yield block, spans


def _blocks(lines: list[str]) -> list[tuple[str, bool]]:
    """Paragraphs, list items and headings, each as one line of text; whether it is an item or heading."""
    blocks: list[tuple[list[str], bool]] = []
    fresh = True
    for line in lines:
        is_plain = line[:1].isalpha()  # no mark of Markdown: most lines
        if not is_plain and (not line.strip() or markdown.is_rule(line)):
            fresh = True
        elif not is_plain and (markdown.is_item(line) or markdown.is_heading(line)):
            blocks.append(([markdown.LEADING_MARKS.sub("", line)], True))
            fresh = markdown.is_heading(line)
        elif fresh:
            blocks.append(([line], False))
            fresh = False
        else:
            blocks[-1][0].append(line)
    return [(" ".join(part.strip() for part in parts), is_list) for parts, is_list in blocks]


def _in_block(text: str, is_list: bool, mixed: bool) -> Spans:
    if _STOP.search(text) is None:
        return [(0, len(text))] if not is_list and _is_rest(text) else []
    inner = _Spans(text, mixed) if '"' in text or "(" in text or "“" in text or "”" in text else None
    found: Spans = []
    start, looked, has_words = 0, 0, False
    for stop in _STOP.finditer(text):
        has_words = has_words or has_word(text[looked : stop.start()])
        looked = stop.end()
        if has_words and not (inner and inner.holds(stop.start())) and _ends(text, stop, mixed):
            found.append((start, looked))
            start, has_words = looked, False
    if (found or not is_list) and _is_rest(text[start:]):
        found.append((start, len(text)))
    return found


def _is_rest(text: str) -> bool:
    """Whether what stands behind the last stop is a sentence that lacks its own; a line of address is none."""
    rest = text.strip(" \t*_~`\"'”’»)]")
    return has_word(rest) and not rest.endswith(",")


class _Spans:
    """Quotations and brackets after which the sentence goes on: no stop inside them ends it."""

    def __init__(self, text: str, mixed: bool) -> None:
        found: list[tuple[int, int]] = []
        opened: dict[str, int] = {}
        for match in _SPAN.finditer(text):
            mark, at = match.group(), match.start()
            kind = "(" if mark in "()" else '"'
            closes = mark in ")”" or (mark == '"' and kind in opened)
            if not closes:
                opened[kind] = at
            elif kind in opened:
                start = opened.pop(kind)
                if _goes_on_after(text, start, at, mixed):
                    found.append((start, at))
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(found):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def holds(self, at: int) -> bool:
        """Whether position `at` lies inside one of them."""
        place = bisect.bisect(self._starts, at) - 1
        return place >= 0 and at < self._ends[place]


def _goes_on_after(text: str, start: int, end: int, mixed: bool) -> bool:
    """Whether the sentence goes on after the mark at `end`; `start` is where the quotation or bracket opened."""
    after = text[end + 1 : end + 40].lstrip(" *_`")[:1]
    before = text[max(0, start - 4) : start].rstrip()
    return after in {",", ";", ":"} or (after.islower() and (mixed or before.endswith((",", ":"))))


def _ends(text: str, stop: regex.Match[str], mixed: bool) -> bool:
    """Whether this run of stops ends a sentence."""
    run = text[stop.start() : stop.start("closers")]
    rest = stop.end()
    if rest >= len(text) or not _WIDE.isdisjoint(run):
        return True
    if not text[rest].isspace():
        return _is_missing_space(text, stop, run)
    following = _NEXT_WORD.search(text, rest, min(len(text), rest + 80))
    next_word = following.group() if following else ""
    goes_on = next_word[:1].islower()
    if goes_on and mixed and not _QUOTES.isdisjoint(stop["closers"]):
        return False
    if run == ".":
        return _period_ends(text, stop.start(), next_word, mixed)
    return not (goes_on and not set(run) - set(".…"))


def _is_missing_space(text: str, stop: regex.Match[str], run: str) -> bool:
    """`It is late.Go home.`: two letters in lower case, a stop, a capital and a letter in lower case."""
    at = stop.start()
    if stop["closers"] or len(run) > 1 or at < 2:
        return False
    before, after = text[at - 2 : at], text[at + 1 : at + 3]
    return before.islower() and before.isalpha() and after[:1].isupper() and (after[1:].islower() or run != ".")


def _period_ends(text: str, at: int, next_word: str, mixed: bool) -> bool:
    """Whether the single period at `at`, with a space behind it, ends a sentence."""
    match = _TOKEN_BEFORE.search(text, max(0, at - 26), at)
    token = match.group() if match else ""
    low, following = token.casefold(), next_word.casefold()
    is_capital = next_word[:1].isupper()
    if low in _BEFORE_NUMBER and next_word[:1].isdigit():
        return False
    if token.isdigit() and len(token) <= 3:
        before = text[max(0, at - 16) : match.start()].rstrip() if match else ""
        is_counted = before[:-1].rpartition(" ")[2].casefold() in _BEFORE_NUMBER  # `Fig. 2.`
        return following not in _AFTER_ORDINAL and (is_counted or before[-1:] not in ("", ":", ";", ".", "!", "?", "("))
    if low in _NEVER_LAST:
        return False
    if low in _LAST_BEFORE_CAPITAL:
        return is_capital and following not in _AFTER_TIME
    is_initial = len(token) == 1 and token.isupper() and token != "I"
    is_dotted = "." in low and all(len(part) == 1 and part.isalpha() for part in low.split("."))
    if low in _MAYBE_LAST or is_initial or is_dotted:
        return is_capital and following in _STARTERS
    if len(token) == 1 and token.islower() and mixed:
        return is_capital and len(next_word) > 1
    return True
