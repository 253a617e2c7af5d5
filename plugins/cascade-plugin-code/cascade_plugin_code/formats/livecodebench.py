"""LiveCodeBench: `question_content`, `public_test_cases` and `private_test_cases`, `metadata`, `starter_code`.

Test cases are JSON text of a list of `{input, output, testtype}`. Private ones are published as base64 of zlib of a pickle of that
text. A pickle can run code when it is loaded, so none ever is: `pickled_text` reads this one shape, a single text, by its
instructions, and refuses every other.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.formats import answers, fields
from cascade_plugin_code.problems import Omitted, Problem

LARGEST = 512 << 20
"""Bytes that the private tests of one problem may have when they are unpacked."""
_TEXTS = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_AROUND = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})
_META = ("platform", "contest_id", "contest_date", "difficulty")


def problem(row: Mapping[str, Any], source: str) -> Problem | Omitted:
    """The problem of a row; it is tested by its public and its private test cases.

    Raises:
        TaskError, ValueError: it is none.
    """
    text = fields.statement(row, ("question_content", "question", "problem"))
    cases = [*_cases(row, "public_test_cases"), *_cases(row, "private_test_cases")]
    answer = answer_of(cases, row)
    omitted = fields.omitted(row, text)
    if omitted is not None:
        return omitted
    known = fields.solutions(row)
    return Problem(
        id=fields.identity(row, ("question_id", "id"), text),
        text=fields.with_starter(text, row),
        answer=answer,
        source=source,
        solution=known[0] if known else "",
        others=known[1:],
        meta={name: str(row[name]) for name in _META if row.get(name)},
    )


def answer_of(cases: list[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a list of `{input, output, testtype}`.

    Raises:
        TaskError: there are none, they are of several kinds, or one cannot be read.
    """
    if not cases:
        raise TaskError("there are no tests, so nothing would be checked")
    for case in cases:
        if not isinstance(case, Mapping) or "input" not in case or "output" not in case:
            raise TaskError(f"a test case must be an object with 'input' and 'output', found {reading.shown(case)}")
    kinds = {str(case.get("testtype") or case.get("type") or "stdin") for case in cases}
    pairs = [(case["input"], case["output"]) for case in cases]
    if kinds <= {"stdin", "stdin_stdout"}:
        return answers.talks(pairs, row.get("checker"))
    name = _function(row, cases[0])
    if kinds == {"functional"}:
        texts = [(reading.text(given, "an input"), reading.text(wanted, "an output")) for given, wanted in pairs]
        outputs = [_one(wanted) for _, wanted in texts]
        arguments = [answers.lines_of_json(given) for given, _ in texts]
        return answers.called(name, arguments, outputs, row.get("starter_code"))
    if kinds == {"function_call"}:
        return answers.calls(name, pairs, row.get("starter_code"))
    raise TaskError(f"test cases must be all of one type, 'stdin' or 'functional', found {', '.join(sorted(kinds))}")


def _function(row: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    for holder in (case, case.get("metadata"), fields.decoded(row.get("metadata") or {}, "metadata")):
        if isinstance(holder, Mapping):
            name = holder.get("func_name") or holder.get("fn_name")
            if isinstance(name, str) and name:
                return name
    raise TaskError("test cases that are calls need 'func_name' in 'metadata'")


def _one(text: str) -> Any:
    values = answers.lines_of_json(text)
    if len(values) != 1:
        raise TaskError(f"an output must be one JSON value, found {text[:60]!r}")
    return values[0]


def _cases(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    if value in (None, ""):
        return []
    if isinstance(value, str) and not value.lstrip().startswith(("[", "{")):
        value = unpacked(value, name)
    found = fields.decoded(value, name)
    if not isinstance(found, list):
        raise TaskError(f"{name!r} must be a list of test cases, found {reading.shown(found)}")
    return found


def unpacked(packed: str, name: str) -> str:
    """The JSON text in base64 of zlib of a pickle of it.

    Raises:
        TaskError: it is anything else, or larger than `LARGEST`.
    """
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(packed, validate=True), LARGEST)
    except (binascii.Error, zlib.error, ValueError) as cause:
        raise TaskError(f"{name!r} is neither JSON nor packed test cases: {cause}") from cause
    if stream.unconsumed_tail:
        raise TaskError(f"{name!r} is larger than {LARGEST >> 20} MB when it is unpacked")
    if not stream.eof:
        raise TaskError(f"{name!r} is cut off")
    return pickled_text(content, name)


def pickled_text(content: bytes, name: str) -> str:
    """The text of a pickle that holds one text and nothing else; nothing of it is executed.

    Raises:
        TaskError: it holds anything else.
    """
    texts: list[str] = []
    end = 0
    try:
        for instruction, argument, place in pickletools.genops(content):
            if instruction.name in _TEXTS:
                texts.append(str(argument))
            elif instruction.name not in _AROUND:
                raise TaskError(f"{name!r} is a pickle of more than a text ({instruction.name}), which is not loaded")
            end = (place or 0) + 1
    except TaskError:
        raise
    except Exception as cause:  # pickletools raises what its input leads it to
        raise TaskError(f"{name!r} is no pickle of a text: {cause}") from cause
    if len(texts) != 1 or end != len(content):
        raise TaskError(
            f"{name!r} must be a pickle of one text, found {len(texts)} and {len(content) - end} bytes more"
        )
    return texts[0]


def as_published(cases: list[dict[str, Any]]) -> str:
    """Test cases as private ones are published; the inverse of `unpacked`."""
    import pickle

    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()
