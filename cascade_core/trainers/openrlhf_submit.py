"""The program between a stage, or an evaluation, and the job that an existing Ray cluster runs for it: `python -P openrlhf_submit.py run|end|sweep …`.

It runs in the engine's own environment, whose Ray it speaks, and needs nothing else. `run FILE` submits the job that the file
describes, prints its log, and ends as the job does; when it is told to end (SIGTERM), it ends the job. A connection that is lost is
made again for as long as it takes: what was printed is not printed twice, and a job is never submitted twice, since its name is chosen
before. `end FILE` ends a job that an earlier start left, and what its processes left on every machine of the cluster (`sweep`,
as a job of its own).

FILE is JSON: `address` of Ray's dashboard, `id` of the job, `entrypoint`, `runtime_env`, `entrypoint_gpus`, all `gpus` that it and its
actors will ask for, `asks` (who asks for how many, by which setting), `mark` (a variable in the environment of all its processes) and `sweep` (the command that is `sweep`). No secret is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

FAILED, UNREACHED, NOT_ENDED = 1, 5, 6
_FIRST_SECONDS = 60.0  # until a Ray must have answered once
_CALL_SECONDS = 30.0
_BEGIN_SECONDS = 10.0  # of a job, until it is asked whether it waits
_SILENT_SECONDS = 20.0  # of the log, until it is asked whether the job is still there
_LONGEST_PAUSE = 15.0
_STOP_SECONDS = 4.0  # less than the guard waits before it kills
_END_SECONDS = 60.0
_SWEEP_SECONDS = 60.0
_TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")

T = TypeVar("T")


class Lost(Exception):
    """Nobody answers, or not as Ray does."""


def _ray(module: str) -> Any:
    """A module of the engine's Ray, which is not where this is checked."""
    return importlib.import_module(module)


def say(text: str) -> None:
    """A line of our own in the job's log."""
    print(f"cascade: {' '.join(text.split())}", flush=True)


class Job:
    """The job that `told` describes, by way of Ray's own client."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told, self.address, self.id = told, str(told["address"]), str(told["id"])
        self._client: Any = None

    async def call(self, what: Callable[[Any], T]) -> T:
        """One request by Ray's client, which has no time limit of its own.

        Raises:
            Lost: it failed; says how.
        """

        def asked() -> T:
            if self._client is None:
                self._client = _ray("ray.job_submission").JobSubmissionClient(self.address)
            return what(self._client)

        try:
            return await asyncio.wait_for(asyncio.to_thread(asked), _CALL_SECONDS)
        except ImportError as cause:
            raise Lost(f"the job API of Ray is not installed ({cause}); try: pip install 'ray[default]'") from cause
        except TimeoutError as cause:
            raise Lost(f"no answer for {_CALL_SECONDS:g} s") from cause
        except Exception as cause:  # Ray's client raises whatever its libraries do
            raise Lost(f"{type(cause).__name__}: {cause}") from cause

    async def status(self) -> str:
        """What Ray says of the job; `""` where it knows none of that name."""
        try:
            found = await self.call(lambda client: client.get_job_status(self.id))
        except Lost as lost:
            if "does not exist" in str(lost):
                return ""
            raise
        return str(getattr(found, "value", found))

    async def submit(self) -> None:
        """Submits it; one that is there already is not doubled."""
        told = self.told
        try:
            await self.call(
                lambda client: client.submit_job(
                    entrypoint=told["entrypoint"],
                    submission_id=self.id,
                    runtime_env=told["runtime_env"],
                    entrypoint_num_gpus=told["entrypoint_gpus"] or None,
                )
            )
        except Lost as lost:
            if "already exists" not in str(lost):
                raise

    async def end(self, seconds: float) -> str:
        """Asks Ray to end it, and waits for that; its last status."""
        last = time.monotonic() + seconds
        asked = False
        while (status := await self.status()) and status not in _TERMINAL and time.monotonic() < last:
            if not asked:
                await self.call(lambda client: client.stop_job(self.id))
                asked = True
            await asyncio.sleep(0.2)
        return status


class Follower:
    """Prints the log of a job from its beginning, whichever way it is interrupted."""

    def __init__(self, job: Job) -> None:
        self.job, self.printed, self._was_lost = job, 0, False
        self.waits = ""
        """What the job waits for, where it was said that it does and nothing came of it since."""

    async def follow(self) -> str:
        """Follows it to its end; its last status, `""` where Ray forgot it."""
        pause = 1.0
        while True:
            try:
                await self._tail()
                status = await self.job.status()
                if not status or status in _TERMINAL:
                    self._print(await self.job.call(lambda client: client.get_job_logs(self.job.id)) if status else "")
                    return status
                self._found()
                pause = 1.0
            except Lost as lost:
                with contextlib.suppress(Lost):
                    if not await self.job.status():
                        return ""
                if not self._was_lost:
                    say(f"the connection to Ray at {self.job.address} was lost ({str(lost)[:300]}); it is tried again")
                self._was_lost = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _tail(self) -> None:
        """Prints what comes, until the log ends or the connection does."""
        log = await self.job.call(lambda client: client.tail_job_logs(self.job.id))
        seen, next_one = 0, None
        try:
            while True:
                next_one = next_one or asyncio.ensure_future(anext(log, None))
                patience = _SILENT_SECONDS if self.printed else _BEGIN_SECONDS
                done, _ = await asyncio.wait([next_one], timeout=patience)
                if not done:
                    if (status := await self.job.status()) and status not in _TERMINAL:
                        self._wait(status)
                        continue
                    return
                text, next_one = next_one.result(), None
                if text is None:
                    return
                self._found()
                self._print(text, seen)
                seen += len(text)
        except Lost:
            raise
        except Exception as cause:  # aiohttp's, or RuntimeError for a connection that was cut
            raise Lost(f"{type(cause).__name__}: {cause}") from cause
        finally:
            if next_one is not None:
                next_one.cancel()
                with contextlib.suppress(BaseException):
                    await next_one
            with contextlib.suppress(Exception):
                await log.aclose()

    def _print(self, text: str, begins: int = 0) -> None:
        """Prints the part of a text that was not printed yet; `begins` is its place in the log."""
        new = text[max(0, self.printed - begins) :]
        if new:
            sys.stdout.write(new)
            sys.stdout.flush()
            self.printed, self.waits = begins + len(text), ""

    def _wait(self, status: str) -> None:
        """Says once that Ray has not begun the job, which it does when all that the job asks for is free."""
        if status != "PENDING":
            self.waits = ""
        elif not self.waits:
            count = int(self.job.told["entrypoint_gpus"])
            self.waits = f"{count} free GPU{'' if count == 1 else 's'} on one machine" if count else "its turn"
            say(f"job {self.job.id} waits for {self.waits} of the Ray at {self.job.address}")

    def _found(self) -> None:
        if self._was_lost:
            say(f"Ray at {self.job.address} answers again")
        self._was_lost = False


async def run(told: dict[str, Any]) -> int:
    """Submits the job and follows it; the status of this process."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    job = Job(told)
    try:
        if lacking := await _lacking(job):
            say(lacking)
            return FAILED
        await _patiently(job, stopped)
    except Lost as lost:
        say(f"no Ray cluster can be asked at {job.address}: {str(lost)[:300]}; see engine.ray")
        return UNREACHED
    follower = Follower(job)
    following = asyncio.ensure_future(follower.follow())
    stopping = asyncio.ensure_future(stopped.wait())
    await asyncio.wait([following, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not following.done():
        following.cancel()
        with contextlib.suppress(Lost):
            await job.end(_STOP_SECONDS)
        return 128 + signal.SIGTERM
    stopping.cancel()
    status = following.result()
    if status == "SUCCEEDED":
        return 0
    why = await _message(job) if status else f"it is not known any more, as after a restart of the Ray at {job.address}"
    says = "; ".join(filter(None, [status, why]))
    if follower.waits:
        say(f"job {job.id} waited for {follower.waits} until Ray gave it up: {says}")
    else:
        say(f"Ray says of job {job.id}: {says}")
    return FAILED


async def _patiently(job: Job, stopped: asyncio.Event) -> None:
    """Submits it, though Ray may not answer at once."""
    last = time.monotonic() + _FIRST_SECONDS
    while not stopped.is_set():
        try:
            return await job.submit()
        except Lost as lost:
            if "ModuleNotFoundError" in str(lost) or "not installed" in str(lost) or time.monotonic() > last:
                raise
        await asyncio.sleep(1.0)


async def _message(job: Job) -> str:
    with contextlib.suppress(Lost):
        told = str((await job.call(lambda client: client.get_job_info(job.id))).message or "")
        return told.partition(", last available logs")[0][:500]  # which were printed
    return ""


async def _lacking(job: Job) -> str:
    """Why the cluster cannot hold the job: OpenRLHF would wait for GPUs that there are not, for ever."""

    def nodes(_: Any) -> list[Any]:
        return list(
            _ray("ray.util.state").list_nodes(
                address=job.address, limit=10_000, timeout=20, raise_on_missing_output=False
            )
        )

    wanted, together = int(job.told["gpus"]), int(job.told["entrypoint_gpus"])
    try:
        found = await job.call(nodes)
    except Lost:
        return ""  # whoever submits will say more
    each = [int((one.resources_total or {}).get("GPU", 0)) for one in found if one.state == "ALIVE"]
    if sum(each) >= wanted and max(each, default=0) >= together:
        return ""
    shown = " + ".join(map(str, each[:16])) + (" + …" if len(each) > 16 else "")
    return (
        f"too few GPUs: {job.told['asks']}, and Ray at {job.address} has {sum(each)} on"
        f" {len(each)} machine{'' if len(each) == 1 else 's'} ({shown or 'none'})"
    )


async def end(told: dict[str, Any]) -> int:
    """Ends a job and what is left of it; 0 where nothing of it runs any more."""
    job = Job(told)
    try:
        status = await job.end(_END_SECONDS)
        if status and status not in _TERMINAL:
            say(f"job {job.id} at {job.address} does not end: {status}")
            return NOT_ENDED
        if status:
            await _swept(job)
    except Lost as lost:
        say(f"no Ray cluster can be asked at {job.address}: {str(lost)[:300]}")
        return UNREACHED
    return 0


async def _swept(job: Job) -> None:
    """Runs `sweep` on the cluster: engines that lost their parent hold GPUs for ever."""
    told = {**job.told, "id": f"{job.id}-sweep-{time.time_ns():x}", "entrypoint": job.told["sweep"]}
    sweep = Job({**told, "runtime_env": {}, "entrypoint_gpus": 0})
    await sweep.submit()
    last = time.monotonic() + _SWEEP_SECONDS
    while (status := await sweep.status()) not in _TERMINAL and time.monotonic() < last:
        await asyncio.sleep(0.5)
    if status != "SUCCEEDED":
        await sweep.end(_STOP_SECONDS)
        say(f"machines of {job.address} could not all be looked at for processes of {job.id}: {await _message(sweep)}")


def sweep(source: str, mark: str) -> int:
    """On the cluster: ends the processes with that mark on every machine; `source` is the text of `openrlhf_guard.py`."""
    ray, strategies = _ray("ray"), _ray("ray.util.scheduling_strategies")

    def clean(source: str, mark: str) -> list[int]:
        found: dict[str, Any] = {"__name__": "guard"}
        exec(source, found)
        pids: list[int] = found["leftovers"](mark)
        found["kill"](pids)
        return pids

    ray.init(log_to_driver=False)
    remote = ray.remote(num_cpus=0, max_retries=0)(clean)
    waits = []
    for node in ray.nodes():
        if node["Alive"]:
            there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            waits.append(remote.options(scheduling_strategy=there).remote(source, mark))
    ended = [ray.get(wait, timeout=_CALL_SECONDS) for wait in waits]
    say(f"{sum(map(len, ended))} processes ended on {len(ended)} machines, {socket.gethostname()} asked")
    return 0


def main(words: list[str]) -> int:
    """The status of the process."""
    what, path, *rest = words
    if what == "sweep":
        return sweep(Path(path).read_text("utf-8"), rest[0])
    told = json.loads(Path(path).read_text("utf-8"))
    return asyncio.run(run(told) if what == "run" else end(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
