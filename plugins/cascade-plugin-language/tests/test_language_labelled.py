"""How often the detector is right, on the labelled set: English answers with foreign words between ⟦ and ⟧, and answers that only look foreign.

A row is `tuned` on or `held_out` by a hash of its id. A word is a run of letters; it is foreign where any of its letters is
marked, and called foreign where the detector's words touch it.
"""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
import regex
from cascade_plugin_language.detector import find
from cascade_plugin_language.prompt import leave

PAGE = Path(__file__).parents[3] / "docs" / "code-switch.md"
DATA = Path(__file__).parent / "data" / "code_switch.jsonl"
PARTS = ("tuned", "held_out")
_WORD = regex.compile(r"[\p{L}\p{M}ー]++(?:['’][\p{L}\p{M}]++)*+")


@dataclass(frozen=True)
class Case:
    """One row: the text without marks, and which of its characters were marked."""

    id: str
    language: str
    kind: str
    prompt: str
    text: str
    marked: frozenset[int]

    @property
    def part(self) -> str:
        return PARTS[zlib.crc32(self.id.encode()) % 2]

    def counts(self) -> Counter[str]:
        """Words that are `right` (foreign and found), `false` (found only), `missed` (foreign only) and `clean`."""
        spans = [(word.start, word.end) for word in find(self.text, leave(self.prompt, self.prompt)).words]
        found = {place for start, end in spans for place in range(start, end)}
        names = {(True, True): "right", (False, True): "false", (True, False): "missed", (False, False): "clean"}
        return Counter(
            names[not self.marked.isdisjoint(places), not found.isdisjoint(places)]
            for places in (range(*word.span()) for word in _WORD.finditer(self.text))
        )


@functools.cache
def cases() -> tuple[Case, ...]:
    return tuple(_case(json.loads(line)) for line in DATA.read_text(encoding="utf-8").splitlines())


def _case(row: dict[str, str]) -> Case:
    kept, marked, inside = [], set(), False
    for letter in row["text"]:
        if letter in "⟦⟧":
            inside = letter == "⟦"
            continue
        if inside:
            marked.add(len(kept))
        kept.append(letter)
    return Case(row["id"], row["language"], row["kind"], row["prompt"], "".join(kept), frozenset(marked))


def figures(chosen: Iterable[Case]) -> tuple[float, float, Counter[str]]:
    """Precision and recall over words, and the counts."""
    total = sum((case.counts() for case in chosen), Counter[str]())
    right = total["right"]
    return right / max(1, right + total["false"]), right / max(1, right + total["missed"]), total


def table() -> list[str]:
    """The rows of the page's table: a language, or what a clean answer holds, its rows and words, precision and recall."""
    chosen = cases()
    groups = [("lang", name, [case for case in chosen if case.language == name]) for name in _names("language")]
    groups += [("clean", kind, [c for c in chosen if c.language == "en" and c.kind == kind]) for kind in _names("kind")]
    groups += [("part", part, [case for case in chosen if case.part == part]) for part in PARTS]
    rows = []
    for what, name, group in groups:
        precision, recall, total = figures(group)
        if what == "clean":
            rows.append(f"| clean: {name} | {len(group)} | {sum(total.values())} | {total['false']} called foreign | |")
        else:
            words = total["right"] + total["missed"]
            label = f"`{name}`" if what == "lang" else f"**{name.replace('_', ' ')}**"
            rows.append(f"| {label} | {len(group)} | {words} | {precision:.3f} | {recall:.3f} |")
    return rows


def _names(key: str) -> list[str]:
    found = Counter(getattr(case, key) for case in cases() if (case.language != "en") == (key == "language"))
    return [name for name, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def test_the_set_is_large_and_both_parts_have_every_large_language() -> None:
    assert len(cases()) >= 300
    assert len({case.id for case in cases()}) == len(cases())
    for part in PARTS:
        counts = Counter(case.language for case in cases() if case.part == part)
        assert (
            sum(counts[name] >= 3 for name in ("zh", "ja", "ko", "ru", "ar", "hi", "es", "fr", "de", "it", "pt")) >= 10
        )


@pytest.mark.parametrize("part", PARTS)
def test_words_are_right_often_enough_for_the_policies(part: str) -> None:
    precision, recall, _ = figures(case for case in cases() if case.part == part)
    assert precision >= 0.98
    assert recall >= 0.95


@pytest.mark.parametrize("part", PARTS)
def test_an_answer_as_a_whole_is_called_right_as_often(part: str) -> None:
    """A policy acts on whole answers: few clean ones are punished, few switches get through."""
    counts = [(case.counts(), bool(case.marked)) for case in cases() if case.part == part]
    punished = sum(bool(count["right"] + count["false"]) for count, switched in counts if not switched)
    through = sum(not count["right"] + count["false"] for count, switched in counts if switched)
    clean = sum(not switched for _, switched in counts)
    assert punished <= 0.02 * clean
    assert through <= 0.05 * (len(counts) - clean)


def test_the_page_has_the_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in table() if row not in page] == []
    assert len(re.findall(r"(?m)^\| (?:`\w+`|clean: [\w-]+|\*\*[\w ]+\*\*) \| \d+ \| \d+ \|", page)) == len(table())
