"""What `openrlhf_submit.py` sees of Ray, without Ray: jobs are folders under `FAKE_RAY`, which the test's own cluster runs."""

from typing import Any


def init(**_: Any) -> None:
    """There is one machine, and this process is on it."""


def nodes() -> list[dict[str, Any]]:
    return [{"NodeID": "one", "Alive": True}, {"NodeID": "gone", "Alive": False}]


class _Task:
    def __init__(self, function: Any) -> None:
        self._function = function

    def options(self, **_: Any) -> "_Task":
        return self

    def remote(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def remote(**_: Any) -> Any:
    return _Task


def get(value: Any, timeout: float) -> Any:
    return value
