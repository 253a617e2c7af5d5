"""Whoever judges in a rehearsal: the run's own scoring processes, and which answers are left for them.

They are started anew when a resource comes that was waited for: the address of it is theirs from their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from cascade_core.domain import DomainRef
from cascade_core.provision import Running
from cascade_core.rehearsal.checks import Looked
from cascade_core.rehearsal.findings import DomainTried
from cascade_core.rehearsal.verdicts import Advance, judge
from cascade_core.rehearsal.waited import Waited
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.settings import Spec


class Bench:
    """The scoring processes of the small `spec`, while the body runs; `rows` are answers still to be judged, by domain."""

    def __init__(
        self, seen: Looked, refs: Mapping[str, DomainRef], spec: Spec, running: Running, waited: Waited
    ) -> None:
        self.seen, self.spec, self.running, self.waited = seen, spec, running, waited
        self._refs = refs
        self.rows: dict[str, list[Row]] = {}
        self.tried: list[DomainTried] = []
        self.scorer = self._hired()

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.scorer.close()

    @property
    def left(self) -> int:
        """Answers that can be judged by now."""
        return sum(len(rows) for name, rows in self.rows.items() if name not in self.waited.domains)

    def judge(self, advance: Advance) -> Sequence[DomainTried]:
        """Judges them; mistakes go to `seen`."""
        ready = {name: self.rows.pop(name) for name in list(self.rows) if name not in self.waited.domains}
        told = judge(self.seen, ready, self.scorer, advance)
        self.tried += told
        return told

    def provide(self, made: Mapping[str, Path], say: Callable[[str], None]) -> None:
        """Starts what was waited for and can be made of these checkpoints, and judges what was left for it."""
        ready, failed = self.waited.start(made)
        for cause in failed:
            self.seen.add("stages", cause)
        if ready:
            self.scorer.close()
            self.scorer = self._hired()
            for domain in self.judge(lambda done: None):
                say(str(domain))

    def _hired(self) -> Scorer:
        return Scorer(self._refs, self.spec.scoring, self.running.addresses)
