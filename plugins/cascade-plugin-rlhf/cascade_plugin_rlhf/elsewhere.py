"""`reward_model: {endpoint: {url: …, key: {env: …}}}`: a reward model that runs elsewhere, behind a token or as one of several.

A name for what runs already: no process is started. An address alone says the same where neither token nor name is needed. What the token is stands in no
file of a run: who asks looks it up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from cascade_core.errors import ResourceError
from cascade_core.resource import Resource
from cascade_core.secret import Secret
from cascade_core.server import reachable
from cascade_plugin_rlhf.addresses import REWARD_MODEL, reward_model, why_not


@dataclass(frozen=True)
class RewardModelEndpoint(Resource):
    """A reward model that runs elsewhere, named in a spec.

    Attributes:
        url: its address, as it would stand alone: `http://host:5001`, or vLLM's with `vllm:` before it.
        model: its name there, where it is one of several; `""` leaves it to the server.
        key: where the token is to be found that its server wants.

    Raises:
        UsageError: the address is none, or holds a password.
    """

    name: ClassVar[str] = "endpoint"
    provides: ClassVar[str] = "reward_model"
    free: ClassVar[tuple[str, ...]] = ("key",)

    url: str
    model: str = ""
    key: Secret | None = None

    def __post_init__(self) -> None:
        from cascade_core.endpoint import Endpoint  # pydantic, which listing the plugins must not cost

        Endpoint(reward_model(self.url)[1], self.model)

    @classmethod
    def misaddressed(cls, address: str) -> str:
        """As of a server that a run starts."""
        return why_not(reward_model, address)

    def start(self) -> str:
        """Starts nothing; the address says whom to ask, and where the token is to be found.

        Raises:
            SpecError: the token is not there.
            ResourceError: nobody answers.
        """
        if self.key is not None:
            self.key.reveal()
        if why := self._silence():
            raise ResourceError(f"nothing answers at {self.url}: {why}")
        return REWARD_MODEL + json.dumps(asdict(self))

    def stop(self) -> None:
        """Nothing was started."""

    def alive(self) -> bool:
        """Whether somebody answers there."""
        return not self._silence()

    def describe(self) -> Mapping[str, Any]:
        """The model's address, and its name there."""
        return {"url": self.url, "model": self.model}

    def _silence(self) -> str:
        return reachable(reward_model(self.url)[1])
