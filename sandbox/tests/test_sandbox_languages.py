"""Languages are data, travel as JSON, and are offered only when their self-test passed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

import pytest
from cascade_sandbox.contract import Dialogue, Input, Limits, Program, Result, Sandbox, Session
from cascade_sandbox.languages import LANGUAGES, Language, trouble

NAMES = list(LANGUAGES)


class Scripted(Sandbox):
    """A sandbox whose every run ends in the same way, to see what is made of it."""

    name: ClassVar[str] = "scripted"
    guarantees: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, result: Result) -> None:
        self.result = result
        self.opened: list[Program] = []
        self.given: list[Input] = []

    def languages(self) -> Sequence[str]:
        return NAMES

    def open(self, program: Program, limits: Limits = Limits(), *, private: bool = False) -> Session:
        self.opened.append(program)
        return ScriptedSession(self)

    def converse(self, judged: Program, private: Program, limits: Limits = Limits()) -> Dialogue:
        return Dialogue(self.result, self.result)

    def close(self) -> None:
        pass


class ScriptedSession(Session):
    def __init__(self, sandbox: Scripted) -> None:
        self._sandbox = sandbox

    @property
    def compiled(self) -> Result | None:
        return None

    def run(self, given: Input = Input()) -> Result:
        self._sandbox.given.append(given)
        return self._sandbox.result

    def close(self) -> None:
        pass


def test_the_languages_are_those_of_the_documentation() -> None:
    assert NAMES == ["python", "c++17", "c++20"]


@pytest.mark.parametrize("name", NAMES)
def test_a_language_travels_as_json(name: str) -> None:
    language = LANGUAGES[name]
    assert language.name == name
    found = json.loads(json.dumps(language.wire))
    assert tuple(found["run"]) == language.run and found["file"] == language.file
    assert found["compile"] is None or tuple(found["compile"]) == language.compile


@pytest.mark.parametrize("name", NAMES)
def test_a_command_uses_places_and_no_paths(name: str) -> None:
    language = LANGUAGES[name]
    for words in (language.run, language.compile or ()):
        assert not any("/" in word for word in words)
        assert all(word in ("{source}", "{program}", "{folder}") for word in words if "{" in word)
    assert ("{program}" in language.run) == (language.compile is not None)
    assert "{source}" in (language.compile or language.run)


@pytest.mark.parametrize("name", NAMES)
def test_a_self_test_that_passes_is_no_trouble(name: str) -> None:
    sandbox = Scripted(Result("ok", stdout=b"42\n"))
    assert trouble(name, sandbox) == ""
    assert sandbox.opened == [Program(LANGUAGES[name].self_test, name)] and len(sandbox.given) == 1


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result("ok", stdout=b"43\n"), "ok: 43"),
        (Result("ok"), "ok"),
        (Result("failed", 1, b"", "no module named json"), "failed: no module named json"),
        (Result("compile_error", 1, b"", "no iostream"), "compile_error: no iostream"),
        (Result("timeout", -9, b"42\n"), "timeout"),
    ],
)
def test_a_self_test_that_does_not_pass_says_why(result: Result, reason: str) -> None:
    assert reason in trouble("python", Scripted(result))


def test_a_language_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        LANGUAGES["python"] = Language("python", "x", ("x",), "")  # type: ignore[index]
    with pytest.raises(AttributeError):
        LANGUAGES["python"].file = "x"  # type: ignore[misc]


def test_the_standards_of_cpp_differ_in_nothing_else() -> None:
    seventeen, twenty = (LANGUAGES[name].compile or () for name in ("c++17", "c++20"))
    assert [pair for pair in zip(seventeen, twenty, strict=True) if len(set(pair)) == 2] == [
        ("-std=gnu++17", "-std=gnu++20")
    ]
