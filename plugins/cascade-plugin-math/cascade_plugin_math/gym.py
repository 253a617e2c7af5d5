"""Problems of reasoning-gym, the embedded source: its generators whose answers are numbers or expressions.

The generator's own settings are passed through. The training split is an endless stream drawn from the seed, the test
split a fixed number of distinct held-out problems, always the same ones. reasoning-gym is imported when the first problem is asked for.
"""

from __future__ import annotations

import difflib
import itertools
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from cascade_core.errors import UsageError
from cascade_core.sources import digest, is_held_out
from cascade_plugin_math.problems import Problem

TEST_TASKS = 500
_PATIENCE = 2_000
# Problems of one data set of reasoning-gym; some generators hold a list of that size. The stream goes on with the next seed.
_PART = 4096
# Generators whose label alone decides: one number or expression is right, and equal values are equally right.
NAMES = (
    "advanced_geometry", "basic_arithmetic", "bitwise_arithmetic", "calendar_arithmetic", "chain_sum", "coin_flip",
    "complex_arithmetic", "count_bits", "count_primes", "decimal_arithmetic", "decimal_chain_sum", "dice",
    "fraction_simplification", "gcd", "gsm_symbolic", "intermediate_integration", "lcm", "leg_counting",
    "letter_counting", "number_format", "number_sequence", "polynomial_equations", "polynomial_multiplication",
    "products", "rectangle_count", "simple_equations", "simple_geometry", "simple_integration", "time_intervals",
)  # fmt: skip


class Gym:
    """One generator with its settings.

    Raises:
        UsageError: the generator is not one of `NAMES`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.name = str(options.get("name", ""))
        self.test_tasks = int(options.get("test_tasks", TEST_TASKS))
        self.settings = {key: value for key, value in options.items() if key not in ("name", "test_tasks")}
        if self.name not in NAMES:
            near = difflib.get_close_matches(self.name, ("arithmetic", *NAMES), 1)
            hint = f", did you mean {near[0]!r}" if near else ""
            raise UsageError(
                f"domain 'math': no generator {self.name!r}{hint}; allowed are arithmetic, {', '.join(NAMES)}"
            )

    def problems(self, split: str, seed: int) -> Iterator[Problem]:
        """The problems of the split, each text once for `test`.

        Raises:
            UsageError: reasoning-gym refuses the settings, or they leave no problem for this split.
        """
        seen: set[str] = set()
        fruitless = 0
        for entry in self._entries(0 if split == "test" else 1 + zlib.crc32(f"{self.name} {seed}".encode()) % 2**30):
            text = entry["question"]
            fruitless += 1
            if fruitless > _PATIENCE:
                if split != "test" or not seen:
                    raise UsageError(
                        f"generator {self.name!r} has no problem for the split {split!r} with these settings"
                    )
                return
            if is_held_out(text) != (split == "test") or text in seen:
                continue
            fruitless = 0
            if split == "test":
                seen.add(text)
            answer = {"label": str(entry["answer"]).strip(), "form": "evaluated"}
            yield Problem(digest(text), text, answer, self.name)
            if len(seen) >= self.test_tasks:
                return

    def _entries(self, seed: int) -> Iterator[Mapping[str, Any]]:
        """reasoning-gym's entries without end, part after part."""
        for part in itertools.count():
            source = self._dataset(seed + part * _PART)  # entry i of a data set is drawn from its seed + i
            yield from (source[index] for index in range(_PART))

    def _dataset(self, seed: int) -> Any:
        import reasoning_gym  # type: ignore[import-untyped]

        try:
            return reasoning_gym.create_dataset(self.name, size=_PART, seed=seed, **self.settings)
        except (TypeError, ValueError, AssertionError) as cause:
            raise UsageError(f"generator {self.name!r} refuses its settings: {cause}") from cause
