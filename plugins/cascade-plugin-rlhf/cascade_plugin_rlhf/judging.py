"""Which judge, and how it is asked; and as a resource, `judge: {endpoint: {url: …, model: …}}`.

The resource is only a name for what runs elsewhere: nothing is started. What asks is `judge.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from cascade_core.errors import UsageError
from cascade_core.resource import Resource
from cascade_core.secret import Secret
from cascade_plugin_rlhf.addresses import judge

SCHEME = "judge:"


@dataclass(frozen=True)
class Judging:
    """Which judge, and how it is asked.

    Attributes:
        url: the part before `/chat/completions`.
        model: its name there.
        key: where its key is to be found.
        temperature, max_response_tokens: of its replies.
        per_minute: requests that may begin in a minute; 0 for no limit.
        concurrency: requests at once.
        cache: a file of kept replies; `""` keeps them in memory.
        timeout_seconds, tries, pause_seconds: patience with one request.
    """

    url: str
    model: str
    key: Secret | None = None
    temperature: float = 0.0
    max_response_tokens: int = 1024
    per_minute: int = 0
    concurrency: int = 8
    cache: str = ""
    timeout_seconds: float = 300.0
    tries: int = 8
    pause_seconds: float = 1.0

    def __post_init__(self) -> None:
        least = {"temperature": 0, "per_minute": 0, "concurrency": 1, "max_response_tokens": 1, "tries": 1}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UsageError(f"{name} of a judge must be at least {number}, found {getattr(self, name)}")


@dataclass(frozen=True)
class JudgeEndpoint(Judging, Resource):
    """A judge that runs elsewhere, named in a spec; the options are those of `Judging`."""

    name: ClassVar[str] = "endpoint"
    provides: ClassVar[str] = "judge"
    default: ClassVar[bool] = True
    free: ClassVar[tuple[str, ...]] = (
        "per_minute", "concurrency", "cache", "timeout_seconds", "tries", "pause_seconds", "key",
    )  # fmt: skip

    @classmethod
    def misaddressed(cls, address: str) -> str:
        """A judge elsewhere is `http(s)://host[:port]/v1#MODEL`."""
        try:
            judge(address)
        except UsageError as cause:
            return str(cause)
        return ""

    def start(self) -> str:
        """Nothing to start: the address says whom to ask, and where the key is to be found."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return SCHEME + json.dumps(given)

    def stop(self) -> None:
        """Nothing to stop."""

    def describe(self) -> Mapping[str, Any]:
        """The judge's address and model."""
        return {"url": self.url, "model": self.model}
