"""YAML files as they are met: traps, damage and attacks."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from cascade_core.document import MOST_BYTES, MOST_DEPTH, parse, read
from cascade_core.errors import SpecError


def value(text: str):
    return parse(f"a: {text}", "f").data["a"]


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "n", "On", "NO"])
def test_a_word_that_older_yaml_took_for_a_bool_is_text(word: str) -> None:
    assert value(word) == word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-4", 1e-4),
        ("3E5", 3e5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e+3", -1500.0),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("1_000", 1000),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("2024-01-31", "2024-01-31"),
        ("1:30", "1:30"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("=", "="),
        ("[1, {b: c}]", [1, {"b": "c"}]),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a: 1\nb: 2\na: 3", "f:3:1", "key 'a' is given twice, first at f:1:1"),
        ("a: {b: 1, b: 1}", "f:1:11", "key 'b' is given twice"),
        ("a: .inf", "f:1:4", "a number must be finite"),
        ("a: 1e999", "f:1:4", "a number must be finite"),
        ("a: !!python/object/apply:os.system [x]", "f:1:4", "tag !!python/object/apply:os.system is not allowed"),
        ("a: !env HOME", "f:1:4", "tag !env is not allowed"),
        ("a: !!binary aGk=", "f:1:4", "tag !!binary is not allowed"),
        ("a: !!set {b}", "f:1:4", "tag !!set is not allowed"),
        ("a: !!omap [b: 1]", "f:1:4", "tag !!omap is not allowed"),
        ("a: !!int x", "f:1:4", "'x' is no int that can be read"),
        ("a: " + "9" * 6000, "f:1:4", "is no int that can be read"),
        ("1: a", "f:1:1", "a key must be text, found 1"),
        ("~: a", "f:1:1", "a key must be text, found ~"),
        ("? [a]\n: b", "f:1:3", "a key must be text, found a collection"),
        ("a: 1\n---\nb: 2", "f:2:1", "not YAML: expected a single document"),
        ("a: [1", "f:1:6", "not YAML"),
        ("a:\n\t- 1", "f:2:1", "not YAML"),
        ("a: b: c", "f:1:5", "not YAML: mapping values are not allowed here"),
        ("a: *b", "f:1:4", "not YAML: found undefined alias 'b'"),
        ('a: "\\ud800"', "f:1:4", "half of a surrogate pair"),
        ("a: &x [*x]", "f:1:4", "an alias contains itself"),
        ("a: &x {<<: *x}", "f:1:4", "an alias contains itself"),
        ("<<: 3", "f:1:5", "'<<' merges a mapping"),
        ("%YAML 1.1\n---\na: on", "f:3:4", "'on' is no bool"),
    ],
)
def test_what_json_has_no_word_for_is_refused_with_its_place(text: str, place: str, what: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, "f")
    assert str(caught.value).startswith(f"{place}: ") and what in str(caught.value)


@pytest.mark.parametrize("text", ["a: \x00", "[" * 20_000, "- " * 5_000, "{a: " * 3_000, "&a " * 100])
def test_damage_of_any_kind_is_a_spec_error(text: str) -> None:
    with pytest.raises(SpecError, match=r"^f"):
        parse(text, "f")


def test_nesting_is_bounded() -> None:
    assert parse("[" * MOST_DEPTH + "]" * MOST_DEPTH, "f").data
    with pytest.raises(SpecError, match=f"deeper than {MOST_DEPTH} levels"):
        parse("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "f")


def bomb(item: str, width: int) -> str:
    lines = [f"a0: &a0 {item}"]
    return "\n".join(lines + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, 12)])


def merge_bomb(width: int) -> str:
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(width)) + "}"]
    return "\n".join(lines + [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * width)}]}}" for i in range(1, 5)])


@pytest.mark.parametrize("text", [bomb("[x]", 10), bomb("x", 50), merge_bomb(200)])
def test_an_alias_that_multiplies_is_refused_in_little_time(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(SpecError, match="aliases counted as often as they are used"):
        parse(text, "f")
    assert time.process_time() - begin < 10


def test_an_alias_becomes_a_copy_that_can_be_changed_alone() -> None:
    data = parse("a: &x {k: [1]}\nb: *x", "f").data
    data["a"]["k"].append(2)
    assert data["b"] == {"k": [1]}


def test_a_merge_yields_to_the_mappings_own_keys_and_to_earlier_merges() -> None:
    text = "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nall: {<<: [*one, *two], a: 0}"
    assert parse(text, "f").data["all"] == {"a": 0, "b": 1, "c": 2}


def test_places_are_lines_and_columns_from_1_of_keys_and_values() -> None:
    document = parse("a:\n  - b: 1\n    c:   two\n", "f")
    assert document.where(("a", 0, "c")) == "f:3:10"
    assert document.where(("a", 0, "c"), key=True) == "f:3:5"
    assert document.where(("a", 0, "absent")) == "f:2:5"


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(SpecError, match=r"absent\.yaml: cannot be read: no such file"):
        read(tmp_path / "absent.yaml")
    with pytest.raises(SpecError, match="cannot be read: is a directory"):
        read(tmp_path)


def test_a_file_that_is_no_utf_8_is_refused_with_its_line(tmp_path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: caf\u00e9\n".encode("latin-1"))
    with pytest.raises(SpecError, match=r"latin.yaml:2: not UTF-8 text: byte 0xe9"):
        read(path)
    path.write_bytes("a: 1".encode("utf-16"))
    with pytest.raises(SpecError, match="not UTF-8 text"):
        read(path)


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: two\r\n")
    assert read(path).data == {"a": 1, "b": "two"}


def test_a_file_beyond_the_bound_is_not_read(tmp_path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("#" * (MOST_BYTES + 1))
    with pytest.raises(SpecError, match=f"a spec of at most {MOST_BYTES} bytes"):
        read(path)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=3))
def test_json_is_read_as_json(data: dict) -> None:
    assert parse(json.dumps(data), "f").data == data


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, "f")
    except SpecError as error:
        assert str(error).startswith("f")


@given(st.text(alphabet="ab:-?[]{}&*<>!|#,'\"\n \t1.e%", max_size=40))
def test_text_that_looks_like_yaml_means_what_a_safe_loader_reads(text: str) -> None:
    try:
        ours = parse(text, "f").data
    except SpecError:
        return
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = False
    assert yaml.load(text) == ours
