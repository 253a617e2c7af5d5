"""One engine and one pool of containers for all tests of the sandbox that need them."""

from collections.abc import Iterator

import pytest
from cascade_sandbox.client import DockerSandbox, docker_sandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.testing import require_engine


@pytest.fixture(scope="session")
def docker_engine() -> Engine:
    """The engine; tests that ask for it are skipped where there is none, except in CI."""
    return require_engine()


@pytest.fixture(scope="session")
def pool(docker_engine: Engine) -> Iterator[DockerSandbox]:
    """A pool of two places that no test may break on purpose."""
    with docker_sandbox(slots=2) as sandbox:
        yield sandbox
