"""`Policy`: what one task, or a whole domain, says about how its answers are to be judged.

A task gives it as keys of its answer (`{"label": "33.3", "rel_tol": 0.01}`) or as `meta["policy"]`; a domain gives
defaults. Keys that speak to whoever runs the verifier (`max_seconds`, …) are accepted and mean nothing here: the limits are
the core's, and this package bounds its own work by size.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_math.verifier.tables import spaced

ANSWER_TYPES = ("auto", "expression", "text", "choice")
_FOR_THE_RUNNER = frozenset({"answer_scope", "max_seconds", "max_rss_mb", "must_not_exist"})
_DECIMAL_COMMA = spaced("de fr es it pt nl ru pl tr sv da nb no fi cs id vi el hu ro uk")


@dataclass(frozen=True)
class Policy:
    """How to judge.

    `answer_type` is `auto`, `expression`, `text` or `choice`. `choices` are the letters of a choice (`A-D` or `ABCD`);
    `multi` allows several at once. `ordered` makes lists ordered and `multiset` counts repetitions. `rel_tol` and
    `abs_tol` allow numbers to differ. `decimals` is `exact`, `rounded` (a decimal answer may be the label rounded to the digits
    shown, at least three significant ones), or a number of decimal places to which both are rounded. `locale` decides
    what a comma in a number means. `form` is `any`, or `evaluated`: the answer must be a plain number, not a sum of two.
    """

    answer_type: str = "auto"
    choices: str = ""
    multi: bool = False
    ordered: bool = False
    multiset: bool = False
    rel_tol: float = 0.0
    abs_tol: float = 0.0
    decimals: str | int = "exact"
    locale: str = "en"
    form: str = "any"

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written 1.234,5."""
        return self.locale.replace("_", "-").split("-")[0].lower() in _DECIMAL_COMMA

    @property
    def is_loose(self) -> bool:
        """Whether numbers may differ from the label's."""
        return bool(self.rel_tol or self.abs_tol or self.decimals != "exact")

    @property
    def letters(self) -> str:
        """The letters that may be chosen, in upper case."""
        spec = self.choices.upper().replace(" ", "").replace(",", "") or "A-J"
        if len(spec) == 3 and spec[1] == "-":
            return "".join(map(chr, range(ord(spec[0]), ord(spec[2]) + 1)))
        return spec

    def changed(self, options: Mapping[str, Any]) -> Policy:
        """This policy with some of it replaced.

        Raises:
            TaskError: an unknown key, or a value of the wrong kind.
        """
        values = {key: value for key, value in options.items() if key not in _FOR_THE_RUNNER and value is not None}
        known = {field.name for field in fields(self)}
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f", did you mean {near[0]!r}" if near else ""
                raise TaskError(f"the policy key {key!r} is unknown{hint}; allowed are {', '.join(sorted(known))}")
        return replace(self, **{key: _checked(key, value) for key, value in values.items()})


def _checked(key: str, value: Any) -> Any:
    if key in ("multi", "ordered", "multiset"):
        if not isinstance(value, bool):
            raise TaskError(f"the policy {key!r} must be true or false, found {value!r}")
        return value
    if key in ("rel_tol", "abs_tol"):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise TaskError(f"the policy {key!r} must be a number from 0 up, found {value!r}")
        return float(value)
    if key == "decimals":
        return _decimals(value)
    if key == "choices" and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "".join(value)
    if not isinstance(value, str):
        raise TaskError(f"the policy {key!r} must be a text, found {value!r}")
    allowed = {"answer_type": ANSWER_TYPES, "form": ("any", "evaluated")}.get(key)
    if allowed and value not in allowed:
        raise TaskError(f"the policy {key!r} must be one of {', '.join(allowed)}, found {value!r}")
    return value


def _decimals(value: Any) -> str | int:
    """A number of places, `exact`, `rounded`, or a sentence that says `rounded to the digits shown`."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100:
        return value
    if isinstance(value, str) and value == "exact":
        return value
    if isinstance(value, str) and "rounded" in value:
        return "rounded"
    raise TaskError(f"the policy 'decimals' must be exact, rounded or a number of places, found {value!r}")
