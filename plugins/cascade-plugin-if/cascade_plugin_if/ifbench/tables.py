"""The group `custom`, tables: three prompts for comma- or tab-delimited rows under given column names (RFC 4180)."""

from __future__ import annotations

import re

import regex

from cascade_plugin_if.instructions.base import Args, Instruction
from cascade_plugin_if.reading import Reading

_FENCED = regex.compile(r"(?P<mark>`{3,}+|~{3,}+)[^\n`]*+\n(?P<body>.*?)\n?(?P=mark)\s*", regex.DOTALL)
_SPECIAL = regex.compile(r"[^\p{L}\p{N}\s_]")
# Of `re`, not of `regex`, which looks for the mark in all the rest of the text before it tries to match: once a field.
_QUOTED = re.compile(r'[ ]*+"(?P<value>(?:[^"]|"")*+)"[ ]*+')
_BARE = {",": re.compile(r'[^",\n]*+'), "\t": re.compile(r'[^"\t\n]*+')}

Field = tuple[str, bool]
"""A field's value, and whether it stands in double quotation marks."""


def rows(text: str, delimiter: str) -> list[list[Field]] | None:
    """The rows of a table, which may stand in one fence; `None` if a quotation mark is out of place."""
    fence = _FENCED.fullmatch(text)
    found: list[list[Field]] = [[]]
    body, at = (fence["body"] if fence else text).strip("\n"), 0
    while True:
        quoted = _QUOTED.match(body, at)
        match = quoted or _BARE[delimiter].match(body, at)
        if match is None:
            return None
        found[-1].append((quoted["value"].replace('""', '"') if quoted else match.group().strip(), quoted is not None))
        at = match.end()
        if at >= len(body):
            return found
        if body[at] == "\n":
            found.append([])
        elif body[at] != delimiter:
            return None
        at += 1


def _table(text: str, columns: tuple[str, ...], count: int, delimiter: str = ",") -> list[list[Field]]:
    """The rows below the column names, or none if the table is not as asked."""
    found = rows(text, delimiter)
    if not found or tuple(value for value, _ in found[0]) != columns or len(found) != count + 1:
        return []
    is_full = all(len(row) == len(columns) and all(value for value, _ in row) for row in found)
    return found[1:] if is_full else []


CITY = ("ID", "Country", "City", "Year", "Count")
PRODUCT = ("ProductID", "Category", "Brand", "Price", "Stock")
STUDENT = ("StudentID", "Subject", "Grade", "Semester", "Score")


def _cities(reading: Reading, args: Args) -> bool:
    return bool(_table(reading.text, CITY, 7))


def _products(reading: Reading, args: Args) -> bool:
    fields = [field for row in _table(reading.text, PRODUCT, 14) for field in row]
    return any(is_quoted and _SPECIAL.search(value) for value, is_quoted in fields)


def _students(reading: Reading, args: Args) -> bool:
    """The column names stand in quotation marks too: every single field does."""
    body = _table(reading.text, STUDENT, 3, "\t")
    return bool(body) and all(is_quoted for row in rows(reading.text, "\t") or [] for _, is_quoted in row)


def _asks(columns: tuple[str, ...], count: int, rest: str) -> str:
    return f"Write CSV data with the columns {', '.join(columns)} and {count} rows below them, {rest}"


FAMILIES = (
    Instruction("custom:csv_city", (), _cities, lambda args: _asks(CITY, 7, "with commas between the fields.")),
    Instruction(
        "custom:csv_special_character",
        (),
        _products,
        lambda args: _asks(
            PRODUCT,
            14,
            "with commas between the fields; one field holds a special character and stands in double quotation marks.",
        ),
    ),
    Instruction(
        "custom:csv_quotes",
        (),
        _students,
        lambda args: _asks(STUDENT, 3, "with tabs between the fields and double quotation marks around every one."),
    ),
)
