"""A whole cascade killed ten times at seeded random moments, given again each time, ends with the same files."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_run import HERE, SPEC, child, contents

KILLS = 10


def start(spec: Path, folder: Path) -> subprocess.Popen[bytes]:
    """A run in a process of its own."""
    command = [sys.executable, str(HERE / "killed_run.py"), "none", str(spec), str(folder)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=quiet, stderr=subprocess.PIPE)


@pytest.mark.timeout(1200)
def test_ten_kills_at_random_moments_leave_the_same_files(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    began = time.monotonic()
    assert child("none", spec, tmp_path / "whole") == 0
    whole_seconds = time.monotonic() - began
    folders = (tmp_path / f"killed-{number}" for number in itertools.count())
    folder, chance, kills, is_new = next(folders), random.Random(20261130), 0, True
    while kills < KILLS:
        began = time.monotonic()
        with start(spec, folder) as process:
            try:
                # From before the first import is done to the end: most of a short run is starting up.
                process.wait(timeout=chance.uniform(0.1, 1.0) * whole_seconds)
            except subprocess.TimeoutExpired:
                kills += 1
            finally:
                process.kill()
            _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()[-3000:]
        if process.returncode == 0:  # finished: the kills that are left go to another run, which must end the same
            if is_new:  # the machine is quicker now
                whole_seconds = min(whole_seconds, time.monotonic() - began)
            assert contents(folder) == contents(tmp_path / "whole")
            folder = next(folders)
        is_new = process.returncode == 0
    assert child("none", spec, folder) == 0
    expected, found = contents(tmp_path / "whole"), contents(folder)
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
