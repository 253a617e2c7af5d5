"""Load does not change verdicts: programs near their limit, on an idle machine and on one whose cores are all busy."""

import concurrent.futures
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cascade_sandbox import Input, Limits, Program, docker_sandbox
from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.testing import require_engine

BUSY = Program("import time\nuntil = float(input())\nwhile time.process_time() < until: pass\nprint('done')")
LIMITS = Limits(cpu_seconds=0.2)
SHARES = [0.7, 0.75, 0.8, 0.85, 1.15, 1.2, 1.25, 1.3] * 25
"""Of the limit, which each of the 200 programs uses. On the idle machine it is the first forty."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    require_engine()
    with docker_sandbox(slots=2) as running:
        yield running


def verdicts(sandbox: DockerSandbox, shares: list[float]) -> list[str]:
    """Of programs that use these shares, two at a time."""

    def one(share: float) -> str:
        return sandbox.run(BUSY, [Input(b"%f\n" % (share * LIMITS.cpu_seconds))], LIMITS)[0].verdict

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        return list(threads.map(one, shares))


@pytest.mark.timeout(1200)
def test_200_programs_near_their_limit_get_the_same_verdicts_on_a_busy_machine(sandbox: DockerSandbox) -> None:
    expected = ["ok" if share < 1 else "timeout" for share in SHARES]
    assert verdicts(sandbox, SHARES[:40]) == expected[:40]
    burning = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        assert verdicts(sandbox, SHARES) == expected
    finally:
        for process in burning:
            process.kill()
            process.wait()
