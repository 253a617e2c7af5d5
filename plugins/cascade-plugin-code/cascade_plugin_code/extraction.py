"""The program in an answer: the last complete fenced block, by the rules of CommonMark's fences.

A fence opens with three or more backticks or tildes at the start of a line; after backticks the rest of the line holds no
backtick, so that code quoted within a sentence opens nothing. It closes with a line of the same character, at least as many,
and nothing behind but what begins with an end-of-turn token (`<|im_end|>`) or a closing tag (`</answer>`); one token or an opening
tag may likewise stand before the fence that opens. Indentation of the
opening line is taken off every line; a closing fence is indented by at most three columns more than that of a list item around it. A block in a quotation (`> `) ends with it.
Lines end with LF, CRLF or CR; the program's end with LF. Two slips of models are read as they are meant, where CommonMark reads text:
an opening fence behind words on its line, if its tag names Python or C++, and a closing one behind the very last line of code.

Which block, where there are several: those whose tag names the task's language come first, then those without a tag, then
those with a tag that says nothing (```` ```solution ````); of the first kind that occurs, the last block. A block tagged as
another language, a shell session, an output or data is never the program, and neither is a block without text. What is tagged
as Markdown is read as text with blocks of its own. A fence that
never closes is an unfinished block and no program; nor is text without any fence, unless `bare` allows both.

Nothing is repaired: no joining of blocks, no unescaping of HTML, no guessing at the end of a program. What this module does
not do is parse the rest of Markdown. The time is linear in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cascade_plugin_code.languages import family, is_known, is_other

_END = r"(?:<[|｜][^|｜<>\n]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>)"
_OPENS = re.compile(
    rf"(?:{_END}|<[A-Za-z][\w-]{{0,40}}>)?(?P<marks>`{{3,}}(?=[^`]*\Z)|~{{3,}})(?P<info>.*)\Z", re.DOTALL
)
_CLOSES = re.compile(rf"(?P<marks>`{{3,}}|~{{3,}})[ \t]*(?:\Z|{_END}|</[A-Za-z][\w-]{{0,40}}>)")
_OPENS_BEHIND_WORDS = re.compile(r"(?P<marks>`{3,})(?P<info>[A-Za-z0-9+.]{1,20})[ \t]*\Z")
_QUOTED = re.compile(r"[ \t]{0,3}>[ ]?")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?=`{3}|~{3})")
_LINE = re.compile(r"\r\n|\n|\r")
_TOKEN_AT_END = re.compile(rf"{_END}\Z")
_LONGEST_TOKEN = 50
_MARKDOWN = ("markdown", "md")
_TAG = re.compile(r"[^\s,:;={}()\[\]]+")


@dataclass(frozen=True)
class Block:
    """One fenced block: the first word of its info string in lower case (`""` if none), its text, and whether it was closed."""

    tag: str
    text: str
    closed: bool = True


@dataclass(frozen=True)
class Extracted:
    """The program, or `None` and the reason, in words for people."""

    program: str | None
    reason: str = ""


def program(answer: str | None, language: str = "python", *, bare: bool = False) -> Extracted:
    """The program that an answer offers.

    Args:
        answer: what follows the thought, `None` where the thought never ended.
        language: that of the task.
        bare: also take an unclosed last block, and an answer without any fence as a whole.
    """
    if answer is None:
        return Extracted(None, "no program: the thought is not finished")
    found = [inner for block in blocks(answer) for inner in _unwrapped(block)]
    complete = [block for block in found if block.closed or bare]
    chosen = _chosen(complete, language)
    if chosen is not None:
        return Extracted(chosen.text)
    if bare and not found and answer.strip():
        return Extracted("\n".join(_LINE.split(_without_tokens(answer))))
    return Extracted(None, f"no program: {_reason(found, complete)}")


def _unwrapped(block: Block) -> list[Block]:
    """The block, or the blocks in it if it is Markdown; the fence that closed it may have been meant for the last of them."""
    if block.tag not in _MARKDOWN or not block.closed:
        return [block]
    inner = list(blocks(block.text))
    if inner and not inner[-1].closed:
        inner[-1] = replace(inner[-1], closed=True)
    return inner or [block]


def _chosen(complete: list[Block], language: str) -> Block | None:
    """The last block of the best kind."""
    ranked = [(_rank(block.tag, language), block) for block in complete if block.text.strip()]
    best = max((rank for rank, _ in ranked), default=0)
    return next((block for rank, block in reversed(ranked) if rank == best), None) if best else None


def _rank(tag: str, language: str) -> int:
    if tag and family(tag) == family(language):
        return 3
    if not tag:
        return 2
    return 0 if is_other(tag, language) else 1


def _reason(found: list[Block], complete: list[Block]) -> str:
    if not found:
        return "no fenced block"
    if not complete:
        return "the fenced block is not closed"
    last = complete[-1]
    return f"the last block is tagged {last.tag[:40]!r}" if last.text.strip() else "the block is empty"


def _without_tokens(text: str) -> str:
    """The text without the end-of-turn tokens and the white space behind it."""
    end = len(text.rstrip())
    while token := _TOKEN_AT_END.search(text, max(0, end - _LONGEST_TOKEN), end):
        end = token.start()
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block in order; one that is still open at the end is the last, and not closed."""
    opened: _Open | None = None
    for line in _LINE.split(text):
        if opened is not None:
            ended = opened.take(line)
            if ended is not None:
                yield ended
                opened = None
            if ended is None or ended.closed:
                continue
        opened = _Open.at(line)
    if opened is not None:
        yield opened.last()


class _Open:
    """A block that has been opened and not closed yet."""

    def __init__(self, marks: str, info: str, indent: int, quoted: bool) -> None:
        self.tag = _tag(info)
        self._mark, self._least, self._indent, self._quoted = marks[0], len(marks), indent, quoted
        self._lines: list[str] = []

    @classmethod
    def at(cls, line: str) -> _Open | None:
        """The block that this line opens."""
        quote = _QUOTED.match(line)
        inner = line[quote.end() :] if quote else line
        item = _ITEM.match(inner)
        begin = item.end() if item else len(inner) - len(inner.lstrip(" \t"))
        match = _OPENS.match(inner, begin)
        if match is None:
            return cls._behind_words(inner)
        return cls(match["marks"], match["info"], _width(inner[:begin]), quote is not None)

    @classmethod
    def _behind_words(cls, line: str) -> _Open | None:
        begin = line.find("```")
        match = _OPENS_BEHIND_WORDS.match(line, begin) if begin > 0 else None
        return cls(match["marks"], match["info"], 0, False) if match and is_known(match["info"]) else None

    def last(self) -> Block:
        """The block where the answer ends: closed only if its last line ends in a fence."""
        while len(self._lines) > 1 and not self._lines[-1].strip():
            self._lines.pop()
        line = _without_tokens(self._lines[-1] if self._lines else "")
        code = line.rstrip(self._mark)
        if self._mark != "`" or len(line) - len(code) != self._least or not code.strip():
            return Block(self.tag, self.text, closed=False)
        return Block(self.tag, "\n".join([*self._lines[:-1], code.rstrip()]))

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def take(self, line: str) -> Block | None:
        """The finished block, where this line ends it; else the line becomes part of it."""
        if self._quoted:
            quote = _QUOTED.match(line)
            if quote is None:
                return Block(self.tag, self.text, closed=False)
            line = line[quote.end() :]
        stripped = line.lstrip(" \t")
        match = _CLOSES.match(stripped)
        if match and match["marks"][0] == self._mark and len(match["marks"]) >= self._least:
            around = self._indent if self._indent > 3 else 0
            if _width(line[: len(line) - len(stripped)]) - around < 4:
                return Block(self.tag, self.text)
        self._lines.append(_dedented(line, self._indent))
        return None


def _width(blanks: str) -> int:
    return len(blanks.expandtabs(4))


def _dedented(line: str, columns: int) -> str:
    """The line without up to so many columns of blanks at its start; a tab reaches to the next multiple of four."""
    taken = column = 0
    while taken < len(line) and line[taken] in " \t":
        column += 4 - column % 4 if line[taken] == "\t" else 1
        if column > columns:
            break
        taken += 1
    return line[taken:]


def _tag(info: str) -> str:
    """`python` of `python`, `Python3 `, `{.python}`, `{ .python .numberLines }`, `python title="x"` and `python:main.py`."""
    word = _TAG.search(info)
    return word.group().lower().strip(".`") if word else ""
