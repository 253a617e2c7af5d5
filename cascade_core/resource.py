"""What a resource is: something that domains need running beside them, such as a sandbox, a reward model or a judge.

A resource is a class found by the hook `cascade_resources`. A domain names in `needs` what it wants; whichever installed class
`provides` that is started once for a whole run and handed to `Domain.open` by its address, the same for every process
that scores. The class starts and stops; how one talks to what it started is between it and the domain. Which class is
taken, and when, is `provision.py`'s; a server in a process of its own is `server.py`'s. This module imports only the
standard library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

STAGE = "stage:"
"""What begins with it, in an option of a resource, is the checkpoint of the stage that is named after it."""


class Resource(ABC):
    """One way to provide what a domain needs. Subclass it as a dataclass; its fields are its options in a spec.

    `provides` is the word that a domain's `needs` says, `name` the word that a spec chooses by (`sandbox: docker`). `default`
    says that it is taken where the spec names none; of all installed classes that provide one thing at most one may. `free`
    lists options that cannot change a verdict, such as how many places there are: a run may go on with others. `decisive` are the
    names of facts (`describe`) that a verdict does depend on, such as the digest of a model's files: they are kept in the run's lock when it
    starts, and a run that goes on with others is refused.

    Building one starts nothing. One instance is started once. The core's only promise is that `stop` is called when the run
    ends, is interrupted or fails; not if it is killed: what `start` started must end by itself when its parent is gone.
    """

    name: ClassVar[str]
    provides: ClassVar[str]
    default: ClassVar[bool] = False
    free: ClassVar[tuple[str, ...]] = ()
    decisive: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def misaddressed(cls, address: str) -> str:
        """Why no client can use `address`, which a spec gives in place of what this would start; `""`, the default, where one may."""
        return ""

    @abstractmethod
    def start(self) -> str:
        """Starts it and waits until it answers; the address that `Domain.open` gets, valid until `stop` for all processes here.

        Raises:
            Exception: any; it ends the command before anything is trained, its message being told. Say what to do about it.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ends all that was started; also called where `start` failed half-way, and safe to repeat."""

    def alive(self) -> bool:
        """Whether it still answers, as far as can be told within a second; asked now and then, and where verdicts fail."""
        return True

    def describe(self) -> Mapping[str, Any]:
        """Facts for people about what was started (versions, images, models), as JSON values without clocks and secrets."""
        return {}


def stages_in(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every stage that the options of a resource speak of, and where."""
    if isinstance(value, str) and value.startswith(STAGE):
        yield where, value.removeprefix(STAGE)
    elif isinstance(value, dict | list):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from stages_in(inside, (*where, key))
