"""A secret in the options of a plugin: `{env: NAME}` or `{file: PATH}`, never the secret itself.

A spec, and so whatever a run writes, holds the reference; `reveal` looks it up, in the process that uses it. A field that
is annotated `Secret` takes nothing else, and a refusal does not repeat what was written in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from cascade_core.errors import SpecError

_LONGEST = 65_536


@dataclass(frozen=True)
class Secret:
    """Where a secret is to be found: in an environment variable or in a file; exactly one of the two is given.

    Examples:
        >>> import os
        >>> os.environ["HOOK_TOKEN"] = "t0p"
        >>> Secret(env="HOOK_TOKEN").reveal()
        't0p'
        >>> Secret(env="HOOK_TOKEN")
        Secret(env='HOOK_TOKEN', file=None)
    """

    env: str | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if bool(self.env) == bool(self.file):
            raise SpecError("a secret is {env: NAME} or {file: PATH}")

    def reveal(self) -> str:
        """The secret; of a file, its text without white space around it.

        Raises:
            SpecError: the variable is not set, or the file cannot be read; or there is nothing in it.
        """
        if self.env:
            found, where = os.environ.get(self.env), f"environment variable {self.env!r}"
            if found is None:
                raise SpecError(f"{where}, which is to hold a secret, is not set")
        else:
            where = f"file {self.file!r}"
            try:
                with Path(str(self.file)).expanduser().open(encoding="utf-8") as handle:
                    found = handle.read(_LONGEST)
            except (OSError, ValueError) as cause:
                why = getattr(cause, "strerror", None) or "it is no text"
                raise SpecError(f"{where}, which is to hold a secret, cannot be read: {why}") from None
        if not found.strip():
            raise SpecError(f"{where}, which is to hold a secret, is empty")
        return found.strip()

    @classmethod
    def _read(cls, value: Any) -> Secret:
        """From a spec; the message names no value, since what stands there may be a secret."""
        from pydantic_core import PydanticCustomError

        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and len(value) == 1:
            (key, where), *_ = value.items()
            if key in ("env", "file") and isinstance(where, str) and where.strip() and "\0" not in where:
                return cls(**{key: where})
        raise PydanticCustomError(
            "secret", "must be {env: NAME} or {file: PATH}; a secret itself has no place in a spec"
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls._read)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }


def secrets(value: Any) -> Iterator[Secret]:
    """Every secret in typed options: in the fields, lists, mappings and dataclasses of `value`."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from secrets(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from secrets(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from secrets(getattr(value, field.name, None))
