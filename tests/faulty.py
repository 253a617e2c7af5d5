"""Scorers of the faulty domains in `tests/extension`, a real extension package that is installed for them alone."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade_core.domain import DomainRef
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

EXTENSION = Path(__file__).parent / "extension"


@contextmanager
def importable() -> Iterator[None]:
    """`cascade_plugin_faulty` is installed for what is made meanwhile."""
    sys.path.insert(0, str(EXTENSION))
    registry.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(EXTENSION))
        registry.cache_clear()


def ref(name: str = "faulty", **options: Any) -> DomainRef:
    """What stands for a faulty domain in another process."""
    return DomainRef(name, options, "cascade-plugin-faulty", "0.1.0")


@contextmanager
def faulty_scorer(**limits: Any) -> Iterator[Scorer]:
    """A scorer that knows faulty domains under their own names; `log` is the file that they write events to."""
    options = {"log": str(limits.pop("log", ""))}
    resources = limits.pop("resources", {})
    more = limits.pop("domains", {})
    refs = {name: ref(name, **options) for name in ("faulty", "grouped", "batchwise")}
    with importable():
        scorer = Scorer({**refs, **more}, Scoring(**{"workers": 2, "memory_mib": 256, **limits}), resources)
    with scorer:
        yield scorer
