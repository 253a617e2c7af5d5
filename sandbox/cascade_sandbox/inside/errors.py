"""What goes wrong inside that no program caused."""

from __future__ import annotations


class Trouble(Exception):
    """The supervisor could not run it: told to the client, and never a verdict."""


class Broken(Trouble):
    """Something of a run could not be removed: told to the client, and then the supervisor ends, because nothing may follow."""


class Gone(Exception):
    """The client hung up, or sends nothing any more."""


class Abandoned(Exception):
    """Nobody owns this supervisor any more."""
