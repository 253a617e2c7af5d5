"""What one run may use, as it arrives from the client."""

from __future__ import annotations

from typing import Any, NamedTuple

from .errors import Trouble

FILE_BYTES = 256 << 20
"""Bytes that one file of a run may have; what all of them may have is the size of the file system they lie on."""

OPEN_FILES = 256


class Bounds(NamedTuple):
    """Limits of one run; the names are those of `cascade_sandbox.Limits`, and `stack_bytes` is the language's."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int
    processes: int
    stack_bytes: int

    @classmethod
    def read(cls, given: dict[str, Any], stack_bytes: int) -> Bounds:
        """The limits of a request.

        Raises:
            Trouble: one of them is missing or not above 0.
        """
        values: dict[str, Any] = {}
        for name in cls._fields[:-1]:
            value = given.get(name) if isinstance(given, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1 << 53:
                raise Trouble(f"limit {name} must be a number above 0, found {value!r}")
            values[name] = value if name.endswith("_seconds") else int(value)
        return cls(**values, stack_bytes=stack_bytes)


COMPILING = Bounds(
    cpu_seconds=30.0, wall_seconds=90.0, memory_bytes=2 << 30, output_bytes=1 << 20, processes=32, stack_bytes=64 << 20
)
"""A compiler's limits; it is confined like a program, because whoever wrote the source drives it."""
