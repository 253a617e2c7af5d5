"""The base of all settings: strict and frozen. What a spec may say is `settings/`'s; this module knows no setting."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Strict and frozen: a key that is not listed is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
