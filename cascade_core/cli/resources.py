"""`--resource`: what provides what the domains of a command need, said as in a spec."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cascade_core.domain import Domain
    from cascade_core.provision import Provision, Running

Resource = Annotated[
    list[str] | None,
    typer.Option(
        "--resource",
        metavar="NEED=CHOICE",
        help="What provides what the domain needs, such as sandbox=process, or an address; repeatable.",
    ),
]


def provided(domains: Iterable[Domain | type[Domain]], given: list[str] | None) -> dict[str, Provision]:
    """What provides each need of the domains, as chosen on the command line; `provision.chosen` says what is raised."""
    from cascade_core.provision import chosen
    from cascade_core.spec import read_options

    return chosen(domains, read_options(given or (), "--resource"))


def running(domains: Iterable[Domain | type[Domain]], given: list[str] | None) -> AbstractContextManager[Running]:
    """The same, started for as long as the context lasts."""
    from cascade_core.provision import running as started

    return started(provided(domains, given).values())
