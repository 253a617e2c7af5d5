"""Options of a domain: the fields of its dataclass, with the types that its annotations say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pytest
from strangers import publish

from cascade_core.domain import Domain, DomainRef, Score
from cascade_core.errors import SpecError
from cascade_core.options import check_options, problems, schema, typed
from cascade_core.plugins import Registry

if TYPE_CHECKING:
    from nowhere import Absent

__all__ = ["publish"]


class Base(Domain):
    def tasks(self, split, seed):
        return ()

    def score(self, task, response):
        return Score(1.0)


@dataclass
class Inner:
    depth: int = 1


@dataclass
class Fragile:
    depth: int = 1

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise RuntimeError("too deep")
        if self.depth == 0:
            raise ValueError("depth must be above 0")


@dataclass
class Toy(Base):
    name: ClassVar[str] = "toy"
    size: int = 3
    rate: float = 0.5
    flag: bool = False
    level: Literal["easy", "hard"] = "easy"
    limit: int | None = None
    names: tuple[str, ...] = ()
    files: list[Path] = field(default_factory=list)
    table: Mapping[str, float] = field(default_factory=dict)
    either: str | int | None = None
    anything: Any = None
    inner: Inner | None = None
    fragile: Fragile = field(default_factory=Fragile)
    words: Sequence[str] = ()
    hidden: int = field(default=0, init=False)


@dataclass
class Unresolvable(Base):
    name: ClassVar[str] = "unresolvable"
    odd: "Absent | None" = None


@dataclass
class Needy(Base):
    name: ClassVar[str] = "needy"
    path: str = field()


class Plain(Base):
    name: ClassVar[str] = "plain"


@pytest.mark.parametrize(
    ("name", "given", "got"),
    [
        ("size", 4, 4),
        ("rate", 1, 1.0),
        ("limit", None, None),
        ("limit", 3, 3),
        ("names", ["a", "b"], ("a", "b")),
        ("files", ["a/b"], [Path("a/b")]),
        ("table", {"a": 1}, {"a": 1.0}),
        ("either", "x", "x"),
        ("either", 3, 3),
        ("anything", {"a": [1, None]}, {"a": [1, None]}),
        ("inner", {"depth": 2}, Inner(2)),
        ("words", ["a"], ["a"]),
        ("level", "hard", "hard"),
    ],
)
def test_a_value_arrives_as_its_annotation_says(name: str, given: object, got: object) -> None:
    found = typed(Toy, {name: given})[name]
    assert found == got and type(found) is type(got)


@pytest.mark.parametrize(
    ("name", "given", "where", "what"),
    [
        ("size", "4", ("size",), "option 'size' must be a whole number, found text '4'; leave out the quotes"),
        ("size", 4.0, ("size",), "option 'size' must be a whole number, found 4.0"),
        ("size", True, ("size",), "option 'size' must be a whole number, found true"),
        ("rate", "x", ("rate",), "option 'rate' must be a number, found text 'x'"),
        ("flag", "yes", ("flag",), "must be true or false, found text 'yes'; YAML 1.2 knows true and false only"),
        ("level", "heard", ("level",), "must be 'easy' or 'hard', found text 'heard', did you mean 'hard'"),
        ("limit", "x", ("limit",), "option 'limit' must be a whole number"),
        ("names", "a", ("names",), "option 'names' must be a list, found text 'a'"),
        ("names", ["a", 2], ("names", 1), "option 'names[1]' must be text, found 2; put it in quotes"),
        ("table", {"a": "x"}, ("table", "a"), "option 'table.a' must be a number, found text 'x'"),
        ("either", 1.5, ("either",), "option 'either' must be text or a whole number, found 1.5"),
        ("either", [1], ("either",), "option 'either'"),
        (
            "inner",
            {"depht": 2},
            ("inner", "depht"),
            "option 'inner.depht' is an unknown key, did you mean 'depth' (allowed: depth)",
        ),
        ("fragile", {"depth": -1}, ("fragile",), "option 'fragile' cannot be read: RuntimeError: too deep"),
        ("fragile", {"depth": 0}, ("fragile",), "option 'fragile' depth must be above 0"),
        ("hidden", 1, ("hidden",), "unknown option 'hidden'"),
        ("sise", 1, ("sise",), "unknown option 'sise', did you mean 'size' (allowed: size, rate, flag, level"),
        ("name", "x", ("name",), "unknown option 'name'"),
    ],
)
def test_a_value_that_the_annotation_does_not_allow_is_refused(
    name: str, given: object, where: tuple, what: str
) -> None:
    (found, *_) = problems(Toy, {name: given})
    assert found[0] == where and what in found[1]
    with pytest.raises(SpecError, match="domain 'toy': "):
        check_options(Toy, {name: given})


def test_all_that_is_wrong_is_told() -> None:
    assert len(list(problems(Toy, {"size": "x", "sise": 1, "rate": "y"}))) == 3


def test_a_domain_that_is_no_dataclass_has_no_options() -> None:
    assert typed(Plain, {}) == {}
    with pytest.raises(SpecError, match=r"unknown option 'x' \(allowed: none\)"):
        check_options(Plain, {"x": 1})


def test_an_option_without_a_default_must_be_given() -> None:
    assert [what for _, what in problems(Needy, {})] == [
        "option 'path' must be given: the domain has no default for it"
    ]
    assert typed(Needy, {"path": "x"}) == {"path": "x"}


def test_an_annotation_that_cannot_be_resolved_lets_the_value_pass() -> None:
    assert typed(Unresolvable, {"odd": {"any": 1}}) == {"odd": {"any": 1}}


def test_a_value_that_is_no_json_passes_to_the_constructor() -> None:
    marker = object()
    assert typed(Toy, {"anything": marker})["anything"] is marker


def test_the_schema_of_options_allows_what_the_fields_say() -> None:
    found = schema(Toy)
    assert found["additionalProperties"] is False and "hidden" not in found["properties"]
    assert found["properties"]["level"] == {"enum": ["easy", "hard"], "type": "string", "default": "easy"}
    assert schema(Plain)["properties"] == {}
    assert schema(Unresolvable)["properties"] == {"odd": {"default": None}}


def test_build_gives_the_domain_the_typed_values(publish) -> None:
    source = """
        from dataclasses import dataclass
        from cascade_core import Domain, Score, hookimpl

        @dataclass
        class Mine(Domain):
            name = "mine"
            words: tuple[str, ...] = ()
            def tasks(self, split, seed): return ()
            def score(self, task, response): return Score(1.0)

        @hookimpl
        def cascade_domains(): return [Mine]
    """
    publish("cascade-plugin-mine", source)
    assert Registry().build(DomainRef("mine", {"words": ["a"]})).words == ("a",)
