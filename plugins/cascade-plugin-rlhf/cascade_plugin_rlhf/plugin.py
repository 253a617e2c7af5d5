"""The entry point: what this distribution offers to cascade-rl."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cascade_core import Domain, hookimpl
from cascade_core.resource import Resource


@hookimpl
def cascade_domains() -> Iterable[type[Domain]]:
    """`rlhf`."""
    from cascade_plugin_rlhf.domain import RLHF

    return (RLHF,)


@hookimpl
def cascade_resources() -> Iterable[type[Resource]]:
    """`reward_model: server`, `reward_model: endpoint` and `judge: endpoint`."""
    from cascade_plugin_rlhf.elsewhere import RewardModelEndpoint
    from cascade_plugin_rlhf.judging import JudgeEndpoint
    from cascade_plugin_rlhf.resource import RewardModelServer

    return (RewardModelServer, RewardModelEndpoint, JudgeEndpoint)


@hookimpl
def cascade_commands() -> Mapping[str, Callable[[], object]]:
    """`cascade rm`."""

    def rm() -> object:
        from cascade_plugin_rlhf.command import app

        return app()

    return {"rm": rm}
