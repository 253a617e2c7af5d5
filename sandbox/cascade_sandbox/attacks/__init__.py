"""The attacks of `check_sandbox`, as data: `PROPERTIES`, `ATTACKS` on them, and the programs that follow each.

`limits.py`, `leftovers.py` and `reach.py` have the hostile programs, `secrets.py` the two that `private` takes.
"""

from __future__ import annotations

from cascade_sandbox.attacks import leftovers, limits, reach
from cascade_sandbox.attacks.attack import HONEST, PROPERTIES, Attack
from cascade_sandbox.attacks.leftovers import REMAINS
from cascade_sandbox.attacks.secrets import KEEPER, SEEKER

__all__ = ["ATTACKS", "HONEST", "KEEPER", "PROPERTIES", "REMAINS", "SEEKER", "Attack"]

ATTACKS: tuple[Attack, ...] = (*limits.ATTACKS, *leftovers.ATTACKS, *reach.ATTACKS)
"""In the order in which they are tried."""
