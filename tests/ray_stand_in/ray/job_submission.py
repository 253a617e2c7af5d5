import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def _reached() -> Path:
    """The cluster's folder.

    Raises:
        ConnectionError: nobody is there, as long as its file `cut` is.
    """
    folder = Path(os.environ["FAKE_RAY"])
    if (folder / "cut").exists():
        raise ConnectionError("Failed to connect to Ray")
    return folder


class JobSubmissionClient:
    """As Ray's, for jobs that are folders."""

    def __init__(self, address: str) -> None:
        _reached()

    def _job(self, name: str) -> Path:
        place = _reached() / name
        if not (place / "submit.json").exists():
            raise RuntimeError(f"Request failed with status code 404: Job {name} does not exist.")
        return place

    def submit_job(self, *, entrypoint: str, submission_id: str, runtime_env: Any, entrypoint_num_gpus: Any) -> str:
        place = _reached() / submission_id
        if place.exists():
            raise RuntimeError(f"Job with submission_id {submission_id} already exists.")
        place.mkdir()
        told = {"entrypoint": entrypoint, "runtime_env": runtime_env, "gpus": entrypoint_num_gpus}
        (place / "submit.part").write_text(json.dumps(told))
        (place / "submit.part").rename(place / "submit.json")
        if (place.parent / "deaf").exists():
            (place.parent / "deaf").unlink()
            raise ConnectionError("the answer was lost")
        return submission_id

    def get_job_status(self, name: str) -> Any:
        status = self._job(name) / "status"
        return SimpleNamespace(value=status.read_text() if status.exists() else "PENDING")

    def get_job_info(self, name: str) -> Any:
        self._job(name)
        return SimpleNamespace(message="Job entrypoint command failed, last available logs (truncated): …")

    def get_job_logs(self, name: str) -> str:
        log = self._job(name) / "log"
        return log.read_text() if log.exists() else ""

    def stop_job(self, name: str) -> bool:
        (self._job(name) / "stop").touch()
        return True

    async def tail_job_logs(self, name: str) -> AsyncIterator[str]:
        seen = 0
        while True:
            text, status = self.get_job_logs(name), self.get_job_status(name).value
            if len(text) > seen:
                yield text[seen : seen + 40]
                seen += min(40, len(text) - seen)
            elif status in ("SUCCEEDED", "FAILED", "STOPPED"):
                return
            await asyncio.sleep(0.02)
