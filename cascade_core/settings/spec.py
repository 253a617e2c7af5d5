"""A whole run: its model, its domains, its stages, and where and how they are trained, judged and measured."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from cascade_core.settings.engine import Engine
from cascade_core.settings.evaluation import Evaluation
from cascade_core.settings.model import Model
from cascade_core.settings.scalars import Name, Seed
from cascade_core.settings.scoring import Scoring
from cascade_core.settings.stage import Stage
from cascade_core.strict import Settings


def _options(value: Any) -> Any:
    """`math:` with nothing after it means no options."""
    if isinstance(value, dict):
        return {name: {} if options is None else options for name, options in value.items()}
    return value


def _choice(value: Any) -> Any:
    """What provides a resource: text, or one name with its options, where `docker:` with nothing after it has none."""
    if isinstance(value, dict):
        if len(value) != 1:
            raise PydanticCustomError("one_choice", "must be one name with its options, found {n}", {"n": len(value)})
        name, options = next(iter(value.items()))
        if not isinstance(options, dict | None):
            told = {"name": name, "found": repr(options)}
            raise PydanticCustomError(
                "options", "the options of {name} must be a mapping, found {found}; a name alone is text", told
            )
        return _options(value)
    if isinstance(value, str) and value.strip():
        return value
    raise PydanticCustomError(
        "choice",
        "must be a name, an address or a mapping of one name to its options, found {shown}",
        {"shown": repr(value)},
    )


Choice = Annotated[
    str | dict[str, dict[str, Any]],
    BeforeValidator(_choice, json_schema_input_type=str | dict[str, dict[str, Any] | None]),
]


def _path(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class Spec(Settings):
    """A whole run."""

    name: Name = Field(description="the run's folder is `runs/<name>` unless told otherwise")
    seed: Seed = Field(0, description="drawing, initial weights and sampling of all stages follow from it")
    model: Annotated[Model, BeforeValidator(_path, json_schema_input_type=Model | str)] = Field(
        description="what the first stage starts from; text is short for `path`"
    )
    trainer: str = Field("trl", description="who updates weights; `cascade plugins` lists those that are installed")
    domains: Annotated[
        dict[Name, dict[str, Any]],
        Field(min_length=1),
        BeforeValidator(_options, json_schema_input_type=dict[str, dict[str, Any] | None]),
    ] = Field(description="domain name to its options; all that are listed are measured after every stage")
    resources: dict[str, Choice] = Field(
        {},
        description="what provides what domains need, such as `sandbox: docker`: a name, a name with its options, or an address; default: what is installed as the default",
    )
    stages: Annotated[list[Stage], Field(min_length=1, max_length=99)] = Field(description="in the order of training")
    trackers: Annotated[
        dict[Name, dict[str, Any]],
        BeforeValidator(_options, json_schema_input_type=dict[str, dict[str, Any] | None]),
    ] = Field({}, description="who is told what happens: tracker name to its options; of no effect on what happens")
    scoring: Scoring = Field(Scoring(), description="limits of the verifiers")
    engine: Engine = Field(Engine(), description="where a trainer runs that is a program of its own")
    evaluation: Evaluation = Field(Evaluation(), description="what is measured")

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        from cascade_core.consistency import problems

        found = list(problems(self))
        if found:
            text = "; ".join(f"{'.'.join(map(str, where))}: {what}" for where, what in found)
            raise PydanticCustomError("inconsistent", "{text}", {"text": text, "problems": found})
        return self
