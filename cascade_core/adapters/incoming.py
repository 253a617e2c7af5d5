"""Other people's reward functions in: whatever they return becomes one `Score` per response, or a clear error.

    scores = reward_function(their_function)(prompts, completions, answers=answers)

Elsewhere a verdict is a `Score` and nothing else. Here a list, a NumPy array or a tensor is taken, of numbers, booleans, `None`
or dictionaries with a `score`, from a plain or an `async` function. What cannot be understood is never guessed: a wrong number
of results is refused as a whole, since no result can then be given to a response; one bad result fails its own response.

Limits and processes are `scoring.py`'s: a domain whose `score` calls an adapted function has them.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import numbers
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from cascade_core.domain import Score
from cascade_core.errors import ContractError
from cascade_core.threads import started
from cascade_core.worker import told

ABSTAINED = "abstained"


def reward_function(
    function: Callable[..., Any], *, declared_range: tuple[float, float] | None = None, name: str = ""
) -> Callable[..., list[Score]]:
    """Wraps a reward function of the shape `f(prompts, completions, **columns)`, one result per completion.

    The wrapped function takes the same arguments and returns a list of scores, whatever thread or event loop it is called in.

    Args:
        declared_range: lowest and highest reward that the function may give. Outside it is an error; inside, the value
            of the score is where the reward lies between the two. Without it a reward of 0 … 1 is its own value, one
            below 0 has value 0, one above 1 has value 1; what is trained on is the reward itself in any case.
        name: for messages; default: the function's own.

    Raises:
        ContractError: when called: the function returns anything but one result per completion. `declared_range` is empty.
    """
    if declared_range is not None and not -math.inf < declared_range[0] < declared_range[1] < math.inf:
        raise ContractError(f"a declared range must be two finite numbers, the lower first, found {declared_range!r}")
    called = name or getattr(function, "__name__", type(function).__name__)

    def scores(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[Score]:
        returned = _finished(function(prompts, completions, **columns))
        return [_judged(result, declared_range, called) for result in _results(returned, len(completions), called)]

    return scores


def as_score(result: Any, declared_range: tuple[float, float] | None = None) -> Score:
    """One result of a reward function as a score.

    A number or boolean is the reward. `None` means "does not apply here": a score that could not be judged
    (`"abstained"`), so that it is masked and counted, never a 0. In a dictionary `score` is the reward and the other
    numbers are metrics. A `Score` is taken as it is.

    Raises:
        ContractError: no number, or none that is finite (text is never a number), or outside `declared_range`.
    """
    metrics: dict[str, float] = {}
    if isinstance(result, Score):
        return result
    if isinstance(result, Mapping):
        if "score" not in result:
            raise ContractError(f"a result that is a dictionary needs a 'score', found {', '.join(map(repr, result))}")
        result, metrics = result["score"], _metrics(result)
    if result is None:
        return Score.failed(ABSTAINED)
    reward = _number(result)
    if reward is None:
        raise ContractError(f"a reward must be a finite number, found {_shown(result)}")
    low, high = declared_range or (0.0, 1.0)
    if declared_range and not low <= reward <= high:
        raise ContractError(f"a reward must lie in the declared range {low:g} … {high:g}, found {reward!r}")
    value = min(max((reward - low) / (high - low), 0.0), 1.0)
    return Score(value, reward=None if reward == value else reward, metrics=metrics)


def _judged(result: Any, declared_range: tuple[float, float] | None, name: str) -> Score:
    try:
        return as_score(_finished(result), declared_range)
    except ContractError as cause:
        return Score.failed(f"reward function {name!r}: {cause}")
    except (Exception, asyncio.CancelledError) as cause:  # noqa: BLE001 - an awaitable that fails fails its own response
        return Score.failed(f"reward function {name!r}: a result raised {told(cause)}")


def _results(returned: Any, count: int, name: str) -> list[Any]:
    """One result per completion; an array is a list."""
    if isinstance(returned, Mapping):
        if "rewards" not in returned:
            raise ContractError(
                f"reward function {name!r} returned a dictionary without 'rewards', found {', '.join(map(repr, returned))}"
            )
        returned = returned["rewards"]
    if hasattr(returned, "tolist"):
        returned = returned.tolist()
    if not isinstance(returned, Sequence) or isinstance(returned, str | bytes):
        raise ContractError(f"reward function {name!r} must return a list of {count} results, found {_shown(returned)}")
    if len(returned) != count:
        raise ContractError(f"reward function {name!r} returned {len(returned)} results for {count} completions")
    return list(returned)


def _number(result: Any) -> float | None:
    if hasattr(result, "item") and not isinstance(result, numbers.Number | bool):
        try:
            result = result.item()  # a tensor or array of one number
        except (TypeError, ValueError, RuntimeError):
            return None
    # numpy.bool_ is no numbers.Real and no bool: `item` above made it one.
    if not isinstance(result, numbers.Real | Decimal):
        return None
    try:
        number = float(result)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _metrics(result: Mapping[Any, Any]) -> dict[str, float]:
    found = {str(key): _number(value) for key, value in result.items() if key != "score"}
    return {key: value for key, value in found.items() if value is not None}


def _finished(returned: Any) -> Any:
    """What an awaitable comes to; awaited in a thread of its own, since this one may already run an event loop."""
    if not inspect.isawaitable(returned):
        return returned
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((asyncio.run(_await(returned)), None))
        except BaseException as cause:  # noqa: BLE001 - raised again in the caller's thread
            outcome.append((None, cause))

    started(run, name="cascade-reward-function", daemon=False).join()
    result, cause = outcome[0]
    if cause is not None:
        raise cause
    return result


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _shown(result: Any) -> str:
    plain = result is None or isinstance(result, bool | int | float | str)
    return f"{result!r:.80}" if plain else f"a {type(result).__name__}"
