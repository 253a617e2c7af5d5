"""What is common to real stages of one pass over their rows: a kill behind a checkpoint."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from cascade_core.trainers.openrlhf import OpenRlhfTrainer


def kill(run: subprocess.Popen[bytes], stage: Path, step: int, steps: int, out: Path) -> None:
    """Kills a run as the kernel would when the stage has a checkpoint of that step, and insists that it was not done by then."""
    end = time.monotonic() + 600
    while run.poll() is None and OpenRlhfTrainer().resume_step(stage) < step and time.monotonic() < end:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL, out.read_text("utf-8", "replace")[-2000:]
    assert step <= OpenRlhfTrainer().resume_step(stage) < steps
