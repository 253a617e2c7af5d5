"""One pool of containers for the tests of this folder that run programs."""

from collections.abc import Iterator

import pytest
from cascade_sandbox.client import DockerSandbox, docker_sandbox
from cascade_sandbox.testing import require_engine


@pytest.fixture(scope="session")
def docker() -> Iterator[DockerSandbox]:
    require_engine()
    with docker_sandbox(slots=2) as sandbox:
        yield sandbox
