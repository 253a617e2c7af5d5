"""A cluster for tests: runs what the stand-in of Ray submits, each job in a session of its own, from a thread of the test."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path

STAND_IN = Path(__file__).with_name("ray_stand_in")


class RayCluster(threading.Thread):
    """Jobs are folders in `folder`; `most` is how many ran at once, `hidden` a variable that they do not get: as if on other machines.

    While it `is_full`, none is begun that asks for GPUs itself.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.most, self.hidden, self.is_full = folder, 0, "", False
        self._running: dict[Path, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        folder.mkdir()

    def jobs(self, *, sweeps: bool = False) -> list[Path]:
        """The folders of all jobs, in the order of their submission."""
        found = [path.parent for path in self.folder.glob("*/submit.json") if ("-sweep-" in path.parent.name) == sweeps]
        return sorted(found, key=lambda path: (path / "submit.json").stat().st_mtime_ns)

    def statuses(self) -> list[str]:
        """What became of each job."""
        return [(job / "status").read_text() for job in self.jobs()]

    def run(self) -> None:
        while not self._over.wait(0.02):
            for told in self.folder.glob("*/submit.json"):
                self._look(told.parent)
            self.most = max(self.most, sum("-sweep-" not in job.name for job in self._running))
        for process in self._running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _look(self, job: Path) -> None:
        told = json.loads((job / "submit.json").read_text())
        may_begin = not (self.is_full and told["gpus"])
        if job not in self._running and may_begin and not (job / "status").exists():
            env = {**os.environ, **told["runtime_env"].get("env_vars", {})}
            env.pop(self.hidden, None)
            with (job / "log").open("ab") as log:
                words = shlex.split(told["entrypoint"])
                self._running[job] = subprocess.Popen(words, env=env, stdout=log, stderr=log, start_new_session=True)
            self._say(job, "RUNNING")
        if (process := self._running.get(job)) is None:
            return
        is_stopped = (job / "stop").exists()
        if is_stopped and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.poll() is not None:
            del self._running[job]
            self._say(job, "STOPPED" if is_stopped else "FAILED" if process.returncode else "SUCCEEDED")

    def _say(self, job: Path, status: str) -> None:
        (job / "status.part").write_text(status)
        (job / "status.part").rename(job / "status")

    def end(self) -> None:
        """Ends the cluster and what runs on it."""
        self._over.set()
        self.join()
