"""One call of a function of the solution: typed arguments on standard input, a typed outcome on standard output.

The outcome is `{"value": …}`, `{"raised": "ValueError: …"}`, `{"unplain": "an object of type …"}` or `{"unloadable": "…"}`.
Nothing else is written there, and the process ends at once, so that nothing of the solution runs afterwards. The solution
could write an outcome of its own; it would be a value like any other, and the comparison is elsewhere.
"""

from __future__ import annotations

import os

from cascade_plugin_code.harness.loading import Unloadable, found, load, private_streams, told
from cascade_plugin_code.harness.typed import Unplain, dumps, loads


def outcome(request: bytes) -> bytes:
    """What became of the call, as typed bytes."""
    asked = loads(request)
    try:
        function = found(load(), asked["entry_point"])
    except Unloadable as error:
        return dumps({"unloadable": str(error)})
    try:
        value = function(*asked["args"], **asked["kwargs"])
    except BaseException as error:  # noqa: BLE001 - SystemExit is no value either
        return dumps({"raised": told(error)})
    try:
        return dumps({"value": value})
    except BaseException as error:  # noqa: BLE001 - the value's own methods may raise anything
        return dumps({"unplain": str(error) if type(error) is Unplain else told(error)})


def main() -> None:
    """Reads the request, answers it, and ends."""
    reading, writing = private_streams()
    writing.write(outcome(reading.read()))
    writing.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
