"""`--set`: one value of a spec replaced from the command line, typed as in the file."""

import pytest

from cascade_core.document import parse
from cascade_core.errors import SpecError
from cascade_core.overrides import apply

TEXT = """
name: small
seed: 1
model: owner/model
domains: {toy: {size: 4, name.with.dots: 1}}
stages:
  - {name: sft, steps: 4}
  - {name: math.v2, steps: 5, rollout: {temperature: 1.0}}
  - {name: math, steps: 6}
  - {steps: 7}
  - {name: "2", steps: 8}
"""


def after(*overrides: str):
    document = parse(TEXT, "f")
    apply(document, overrides)
    return document.data


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=2", ("seed",), 2),
        ("stages.math.steps=40", ("stages", 2, "steps"), 40),
        ("stages.math.v2.steps=41", ("stages", 1, "steps"), 41),
        ("stages.1.steps=42", ("stages", 0, "steps"), 42),
        ("stages.4.steps=43", ("stages", 3, "steps"), 43),
        ("stages.2.steps=44", ("stages", 4, "steps"), 44),
        ("stages.math.v2.rollout.temperature=1e-1", ("stages", 1, "rollout", "temperature"), 0.1),
        ("stages.math.optim.lr=1e-4", ("stages", 2, "optim", "lr"), 1e-4),
        ("evaluation.sampling.top_p=0.9", ("evaluation", "sampling", "top_p"), 0.9),
        ("domains.toy.name.with.dots=2", ("domains", "toy", "name.with.dots"), 2),
        ("domains.toy.level=hard", ("domains", "toy", "level"), "hard"),
        ("domains.toy.level=a=b", ("domains", "toy", "level"), "a=b"),
        ("domains.toy={size: 5, words: [on, 1]}", ("domains", "toy"), {"size": 5, "words": ["on", 1]}),
        ("evaluation.limit=", ("evaluation", "limit"), None),
        ("evaluation.limit=null", ("evaluation", "limit"), None),
        ("stages.sft={name: one, steps: 1}", ("stages", 0), {"name": "one", "steps": 1}),
        ('name="1"', ("name",), "1"),
    ],
)
def test_a_value_is_set_where_its_path_says(override: str, path: tuple, value: object) -> None:
    found = after(override)
    for step in path:
        found = found[step]
    assert found == value and type(found) is type(value)


def test_a_name_wins_over_a_number_and_a_longer_name_over_a_shorter() -> None:
    data = after("stages.2.steps=80", "stages.math.v2.steps=50")
    assert [stage["steps"] for stage in data["stages"]] == [4, 50, 6, 7, 80]


def test_later_settings_win_and_build_on_earlier_ones() -> None:
    data = after("evaluation.limit=3", "evaluation.samples=2", "evaluation.limit=4")
    assert data["evaluation"] == {"limit": 4, "samples": 2}


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("seed", "must be path=value"),
        ("=2", "must be path=value"),
        ("a..b=2", "must be path=value"),
        (
            "stages.maht.steps=2",
            "nothing there is called 'maht', did you mean 'math' (allowed: sft, math.v2, math, 4, 2)",
        ),
        ("stages.0.steps=2", "nothing there is called '0'"),
        ("stages.99.steps=2", "nothing there is called '99'"),
        ("stages.²=2", "nothing there is called '²'"),
        ("stages.99999999999999999999=2", "nothing there is called"),
        ("model.path=x", "model is text and has no key 'path'; set it as a whole"),
        ("seed.x=1", "seed is int and has no key 'x'"),
        ("seed=[1", "--set seed=[1:1:3: not YAML"),
        ("seed=!!python/name:os 1", "tag !!python/name:os is not allowed"),
        ("seed=a: 1: 2", "not YAML"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(override: str, what: str) -> None:
    with pytest.raises(SpecError) as caught:
        after(override)
    assert str(caught.value).startswith(f"--set {override}:") and what in str(caught.value)


def test_the_place_of_a_set_value_is_the_setting_itself() -> None:
    document = parse(TEXT, "f")
    apply(document, ["stages.math={name: math, stesp: 1}"])
    assert document.where(("stages", 2, "stesp"), key=True) == "--set stages.math={name: math, stesp: 1}"
