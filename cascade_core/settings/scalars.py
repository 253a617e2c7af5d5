"""Plain values that several settings have: whole numbers in their ranges, and names."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Positive = Annotated[int, Field(gt=0, lt=2**31)]
NonNegative = Annotated[int, Field(ge=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
