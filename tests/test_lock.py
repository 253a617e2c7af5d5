"""The lock: every difference is named with both values."""

from pathlib import Path

import pytest

from cascade_core.errors import RunChanged
from cascade_core.lock import _dependencies, compare, source_hash


def test_equal_locks_are_no_change() -> None:
    compare(Path("run/lock.json"), {"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, r"a\.b was 1 and is 2"),
        ({"a": [1, 2]}, {"a": [1, 3]}, r"a\[1\] was 2 and is 3"),
        ({"a": [1]}, {"a": [1, 2]}, r"a was \[1\] and is \[1, 2\]"),
        ({"a": 1}, {}, "a was 1 and is None"),
        ({}, {"a": 1}, "a was None and is 1"),
    ],
)
def test_a_difference_is_named_with_both_values(old: object, new: object, told: str) -> None:
    with pytest.raises(RunChanged, match=told):
        compare(Path("run/lock.json"), old, new)  # type: ignore[arg-type]


def test_many_differences_are_counted() -> None:
    with pytest.raises(RunChanged, match="and 6 more"):
        compare(Path("run/lock.json"), {str(i): i for i in range(10)}, {str(i): -i - 1 for i in range(10)})


def test_the_source_hash_of_a_package_is_of_its_files_not_of_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = []
    for place in ("one", "two"):
        folder = tmp_path / place / f"hashed_{place}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("x = 1\n")
        monkeypatch.syspath_prepend(str(tmp_path / place))
        hashes.append(source_hash(f"hashed_{place}"))
    assert hashes[0] == hashes[1] != source_hash("cascade_core")


def test_the_lock_holds_what_judges_and_trains_and_no_development_tool() -> None:
    pinned = _dependencies("cascade-rl", "trl")
    assert {"torch", "trl", "transformers", "pluggy"} <= set(pinned)
    assert not {"pytest", "ruff", "mypy"} & set(pinned)
