"""The settings: strict, frozen, documented, with the recipe's defaults, and each of its keys told in the reference."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from cascade_core.reference import markdown
from cascade_core.settings import Advantage, Model, Optim, Rollout, Scoring, Settings, Soft, Spec, Stage


def classes(model: type[BaseModel]) -> set[type[BaseModel]]:
    """The settings class and all that its fields hold."""

    def inside(annotation: Any) -> set[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return classes(annotation)
        return {found for part in get_args(annotation) for found in inside(part)}

    return {model}.union(*(inside(field.annotation) for field in model.model_fields.values()))


ALL = sorted(classes(Spec), key=lambda cls: cls.__name__)


def test_all_settings_are_found() -> None:
    assert {Stage, Rollout, Optim, Advantage, Soft} <= set(ALL)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_settings_are_strict_frozen_and_every_key_is_explained(cls: type[BaseModel]) -> None:
    assert issubclass(cls, Settings) and cls.__doc__
    assert cls.model_config["extra"] == "forbid" and cls.model_config["frozen"] and cls.model_config["strict"]
    assert [name for name, field in cls.model_fields.items() if not field.description] == []


def test_the_defaults_of_rl_are_those_of_the_recipe() -> None:
    stage = Stage.model_validate({"name": "a", "domains": "x", "steps": 1})
    assert (stage.optim.lr, stage.optim.betas) == (2e-6, (0.9, 0.95))
    assert (stage.rollout.prompts_per_step, stage.rollout.samples_per_prompt) == (128, 8)
    assert (stage.kl, stage.entropy, stage.loss) == (0.0, 0.0, "token")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1"])
def test_a_number_is_finite_and_no_text_or_bool(value: object) -> None:
    with pytest.raises(ValidationError):
        Optim.model_validate({"lr": value})


@pytest.mark.parametrize(
    ("cls", "beyond"),
    [
        (Rollout, {"prompts_per_step": 10**20}),
        (Scoring, {"memory_mib": 10**23}),  # no limit of the operating system holds these
        (Scoring, {"cpu_seconds": 1e300}),
        (Scoring, {"wall_seconds": 1e300}),
        (Scoring, {"workers": 1_000_000}),
    ],
)
def test_a_size_beyond_any_machine_is_refused(cls: type[Settings], beyond: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="less than"):
        cls.model_validate(beyond)


def test_a_whole_number_may_stand_for_a_fraction() -> None:
    assert Rollout.model_validate({"temperature": 1}).temperature == 1.0
    stage = Stage.model_validate({"name": "a", "domains": {"x": 2}, "steps": 1})
    assert stage.domains == {"x": 2.0}


def test_the_reference_tells_every_key_and_every_choice() -> None:
    text = markdown()
    for cls in ALL:
        for name in cls.model_fields:
            assert f"| `{name}` |" in text
    for word in ("permuted-rewards", "token-group", "population", "cosine"):
        assert f"`{word}`" in text


def test_a_model_path_may_begin_with_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Model(path="~/model").path == f"{tmp_path}/model"
