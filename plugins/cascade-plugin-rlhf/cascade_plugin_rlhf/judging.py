"""Which judge, and how it is asked; and as a resource, `judge: {endpoint: {url: …, model: …}}`.

The resource is a name for what runs elsewhere: no process is started. While it runs there is a file by which all that ask on a machine keep
its rate together (`pace.py`). What asks is `judge.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from cascade_core.errors import UsageError
from cascade_core.resource import Resource
from cascade_core.secret import Secret
from cascade_plugin_rlhf.addresses import judge, why_not

SCHEME = "judge:"
PACE = "pace"
"""The key of the address under which the file of the rate is named."""


@dataclass(frozen=True)
class Judging:
    """Which judge, and how it is asked.

    Attributes:
        url: the part before `/chat/completions`.
        model: its name there.
        key: where its key is to be found.
        temperature, max_response_tokens: of its replies.
        per_minute: requests that may begin in a minute, of all processes of a run on one machine together; 0 for no limit.
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
    _files: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def misaddressed(cls, address: str) -> str:
        """A judge elsewhere is `http(s)://host[:port]/v1#MODEL`."""
        return why_not(judge, address)

    def start(self) -> str:
        """Makes the file of the rate; the address says whom to ask, where the key is to be found, and which file it is."""
        given = {one.name: getattr(self, one.name) for one in fields(Judging)}
        if self.key is not None:
            given["key"] = asdict(self.key)
        if self.per_minute:
            file, path = tempfile.mkstemp(prefix="cascade-judge-", suffix=".pace")
            os.close(file)
            self._files.append(path)
            given[PACE] = path
        return SCHEME + json.dumps(given)

    def stop(self) -> None:
        """Removes the file of the rate."""
        while self._files:
            with contextlib.suppress(OSError):
                Path(self._files.pop()).unlink()

    def describe(self) -> Mapping[str, Any]:
        """The judge's address and model."""
        return {"url": self.url, "model": self.model}
