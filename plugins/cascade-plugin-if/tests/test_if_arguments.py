"""Broken instructions are errors of the task that name what is wrong; nothing passes unchecked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.verdict import calls, judge

from cascade_core.errors import TaskError

WORDS = "length_constraints:number_words"


def asked(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"instruction_id_list": [name for name, _ in pairs], "kwargs": [kwargs for _, kwargs in pairs]}


@pytest.mark.parametrize("name", [name for name, family in REGISTRY.items() if family.arguments])
def test_a_missing_argument_is_named(name: str) -> None:
    first = REGISTRY[name].arguments[0].name
    with pytest.raises(TaskError, match=f"(?s){name}.*{first}"):
        calls(asked((name, {})))


@pytest.mark.parametrize("name", [name for name, family in REGISTRY.items() if family.arguments])
def test_a_null_argument_counts_as_missing(name: str) -> None:
    nulls = {argument.name: None for argument in REGISTRY[name].arguments}
    with pytest.raises(TaskError, match="lacks its argument"):
        calls(asked((name, nulls)))


@pytest.mark.parametrize("name", sorted(REGISTRY))
@pytest.mark.parametrize("junk", [[], [[]], {"a": {}}, object(), float("nan"), b"x", -7, ""])
def test_no_junk_passes_for_an_argument(name: str, junk: Any) -> None:
    arguments = {argument.name: junk for argument in REGISTRY[name].arguments} or {"no_such": junk}
    with pytest.raises(TaskError):
        calls(asked((name, arguments)))


@pytest.mark.parametrize("unseen", ["\u200d", "\u200c\u200d", "\u0301", "\u200b \u2800", "\x00"])
def test_a_text_in_which_nothing_can_be_seen_is_no_argument(unseen: str) -> None:
    for name, argument in (("keywords:existence", "keywords"), ("startend:end_checker", "end_phrase")):
        with pytest.raises(TaskError, match="not blank"):
            calls(asked((name, {argument: unseen})))


def test_an_unknown_argument_is_named_with_what_is_allowed() -> None:
    with pytest.raises(TaskError, match="'num_word'.*'relation', 'num_words'"):
        calls(asked((WORDS, {"relation": "at least", "num_words": 3, "num_word": 4})))


def test_nulls_of_other_families_do_not_matter() -> None:
    nulls = {argument.name: None for family in REGISTRY.values() for argument in family.arguments}
    (call,) = calls(asked((WORDS, {**nulls, "relation": "at least", "num_words": 2})))
    assert call.args == {"relation": "at least", "num_words": 2}


def test_a_mistyped_id_is_answered_with_the_nearest() -> None:
    with pytest.raises(TaskError, match="keywords:existence"):
        calls(asked(("keywords:existnce", {"keywords": ["a"]})))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "x",
        {},
        {"instruction_id_list": [], "kwargs": []},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": "[{}"},
        {"instruction_id_list": "punctuation:no_comma", "kwargs": [{}]},
        {"instruction_id_list": [None], "kwargs": [{}]},
        {"instruction_id_list": [["punctuation:no_comma"]], "kwargs": [{}]},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": ["x"]},
    ],
)
def test_a_malformed_answer_is_an_error_of_the_task(answer: Any) -> None:
    with pytest.raises(TaskError):
        calls(answer)


def test_arguments_may_be_json_text() -> None:
    kwargs = [{"relation": "at least", "num_words": 2}, None]
    expected = calls(asked((WORDS, kwargs[0]), ("punctuation:no_comma", None)))
    ids = [WORDS, "punctuation:no_comma"]
    assert calls({"instruction_id_list": ids, "kwargs": json.dumps(kwargs)}) == expected
    assert calls({"instruction_id_list": json.dumps(ids), "kwargs": [json.dumps(one) for one in kwargs]}) == expected


def test_every_family_describes_itself_with_its_arguments() -> None:
    from random import Random

    from cascade_plugin_if.draws import DRAWS
    from cascade_plugin_if.prompts import Base

    base = Base("Write about rain.", "rain")
    for name, family in REGISTRY.items():
        args = family.read(DRAWS[name](Random(1), base, True))
        sentence = family.describe(args)
        assert sentence[0].isupper()
        for value in args.values():
            for part in value if isinstance(value, list) else [value]:
                assert str(part).casefold() in sentence.casefold() or name == "language:response_language"


def test_loose_forgives_a_first_line_and_asterisks_and_strict_does_not() -> None:
    json_only = calls(asked(("detectable_format:json_format", {})))
    verdict = judge(json_only, 'Here it is:\n{"a": 1}')
    assert (verdict.strict, verdict.loose) == ((False,), (True,))
    quoted = judge(calls(asked(("startend:quotation", {}))), '**"All of it."**')
    assert (quoted.strict, quoted.loose) == ((False,), (True,))


def test_loose_asks_each_instruction_of_its_own_variant() -> None:
    both = calls(asked(("detectable_format:json_format", {}), ("keywords:existence", {"keywords": ["here"]})))
    assert judge(both, 'Here it is:\n{"a": 1}').loose == (True, True)


def test_an_empty_answer_follows_nothing_even_loosely() -> None:
    no_comma = calls(asked(("punctuation:no_comma", {})))
    for text in ("", " \n", "\u200b", "\ufeff\x00", "\u2800\u3164", "<|im_end|>"):
        verdict = judge(no_comma, text)
        assert not verdict.strict[0] and not verdict.loose[0], repr(text)
