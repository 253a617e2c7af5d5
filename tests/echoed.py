"""The extension of `tests/echo_extension`: a domain that waits for a server, which is a resource."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cascade_core.plugins import registry

EXTENSION = Path(__file__).parent / "echo_extension"
NEED = "echo-server"


@contextmanager
def installed() -> Iterator[None]:
    """It is installed for this process and those that it starts meanwhile."""
    sys.path.insert(0, str(EXTENSION))
    registry.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(EXTENSION))
        registry.cache_clear()


@pytest.fixture
def echo() -> Iterator[None]:
    """It is installed for one test."""
    with installed():
        yield


def rows(*responses: str) -> list[dict[str, Any]]:
    """A row of the domain for each response, no two of which are one sample."""
    return [
        {"domain": "echo", "id": f"t{i}", "prompt": f"say {i}", "answer": "right", "response": text}
        for i, text in enumerate(responses)
    ]


def events(log: Path) -> list[str]:
    """What the servers told so far: `start` and `stop`."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def pids(log: Path) -> list[int]:
    """The processes of the servers that started."""
    return [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("start")]


def is_running(pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], Any], seconds: float = 30.0) -> None:
    """Waits for it, and fails where it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{true} in {os.getpid()}"
        time.sleep(0.02)
