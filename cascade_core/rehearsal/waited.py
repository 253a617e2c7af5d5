"""Resources of a rehearsal that are made of a stage's checkpoint (`stage:NAME`): started as soon as that stage was tried.

As in a run (`cascade_core.waiting`), with the small checkpoints. What needs one is judged from then on, the answers that could not
be judged before it among them; where its stage failed, stages and benchmarks that need it are left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cascade_core import waiting
from cascade_core.domain import Domain
from cascade_core.errors import CascadeError
from cascade_core.plugins import Registry
from cascade_core.provision import Provision, Running
from cascade_core.settings import Spec, Stage


class Waited:
    """What is still to be started; `running` is what runs, `failed` names what could not be started."""

    def __init__(
        self,
        spec: Spec,
        domains: Mapping[str, Domain],
        chosen: Mapping[str, Provision],
        running: Running,
        found: Registry,
    ) -> None:
        self._spec, self._domains, self._running, self._found = spec, domains, running, found
        self._left = {need: one for need, one in chosen.items() if waiting.stages_of(one)}
        self.failed: set[str] = set()

    @property
    def domains(self) -> list[str]:
        """The domains that cannot be judged yet."""
        return [name for name, domain in self._domains.items() if self._lacks([domain])]

    def why(self, domain: str) -> str:
        """What a domain that cannot be judged waits for."""
        (need, *_) = self._lacks([self._domains[domain]])
        made = " and ".join(map(repr, waiting.stages_of(self._left[need])))
        return f"what provides {need!r} is made of stage {made}"

    def lacking(self, stage: Stage) -> str:
        """Why a stage cannot be tried, because what it judges by was never made; `""` where it can."""
        judges = [*stage.domains, *(stage.reward.names if stage.reward else ())] if stage.kind == "rl" else []
        unjudged = [name for name in judges if name in self.domains]
        return self.why(unjudged[0]) if unjudged else ""

    def start(self, made: Mapping[str, Path]) -> tuple[list[str], list[CascadeError]]:
        """Starts what can be by now; the domains that can be judged since, and what could not be started.

        Args:
            made: the stages that were tried, and their checkpoints.
        """
        before, failed = self.domains, []
        ready = {need for need, one in self._left.items() if set(waiting.stages_of(one)) <= set(made)}
        for need in sorted(ready - self.failed):
            try:
                self._running.start(waiting.located(self._left[need], made), self._found)
            except CascadeError as cause:
                failed.append(cause)
                self.failed.add(need)
                continue
            del self._left[need]
        return [name for name in before if name not in self.domains], failed

    def _lacks(self, domains: Iterable[Domain]) -> list[str]:
        return [need for domain in domains for need in domain.needs if need in self._left]
