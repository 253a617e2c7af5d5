"""What counts as progress of a stage's job, by the clock of the stage and not the machine's."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
import tiny_stage as tiny
from echoed import wait_until
from faulty import faulty_scorer

from cascade_core.errors import TrainerError
from cascade_core.judge import Judge
from cascade_core.scoring import Scorer
from cascade_core.settings import Engine, Rollout
from cascade_core.trainers import openrlhf_stage
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_stage import OpenRlhfStage

SLOTS, SAMPLES, STALL = 2, 4, 60.0


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with faulty_scorer(workers=1) as found:
        yield found


class Slow:
    """A job, and the clock: whenever the stage looks away, 40 seconds pass, and one sample comes until `most` have."""

    def __init__(self, stage: OpenRlhfStage, address: str, most: int) -> None:
        self.stage, self.address, self.most, self.now, self.sent = stage, address, most, 0.0, 0
        self.pool, self.answers = ThreadPoolExecutor(SLOTS * SAMPLES), list[Future[int]]()
        for slot in range(SLOTS):
            self.ask("/slot", {"slot": slot, "group": f"g{slot}"})

    def ask(self, path: str, body: dict[str, Any]) -> int:
        headers = {"Authorization": "Bearer secret"}
        return httpx2.post(self.address + path, json=body, headers=headers, timeout=60).status_code

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _: float) -> None:
        self.now += 40.0
        if self.sent == self.most:
            return
        slot, index = divmod(self.sent, SAMPLES)
        body = {"group": f"g{slot}", "index": index, "response": "right", "truncated": False, "tokens": 1}
        self.answers.append(self.pool.submit(self.ask, "/sample", body))
        self.sent += 1
        if self.sent == SLOTS * SAMPLES:
            wait_until(lambda: self.stage.journal.finished)
        else:
            wait_until(lambda: self.waiting() == self.sent)

    def waiting(self) -> int:
        """Samples that the service holds."""
        assert self.stage._service is not None and self.stage._service.stage is not None
        return cast(int, self.stage._service.stage.status(-1)["waiting"]["0"]["samples"])

    def poll(self) -> int | None:
        return 0 if self.stage.journal.finished else None

    def lines(self) -> list[str]:
        return []

    def end(self) -> None:
        """There is nothing to end."""


@pytest.mark.parametrize(("most", "ends"), [(SLOTS * SAMPLES, "well"), (3, "stalled")])
def test_samples_that_come_one_by_one_are_progress_and_none_is_not(
    most: int, ends: str, tmp_path: Path, scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    folder.mkdir()
    rollout = Rollout(prompts_per_step=SLOTS, samples_per_prompt=SAMPLES, max_response_tokens=8)
    settings = tiny.stage("rl", domains="faulty", steps=1, rollout=rollout, micro_batch=4)
    rows = [{**row, "domain": "faulty"} for row in tiny.tasks(SLOTS)]
    job = tiny.job(folder, settings, Judge(scorer, settings, 7, folder, 0.02), rows=rows)
    with OpenRlhfStage(job, cast(Judge, job.judge), Engine(stall_seconds=STALL)) as stage:
        with stage._served("secret") as address:
            slow = Slow(stage, address, most)
            monkeypatch.setattr(openrlhf_stage, "time", slow)
            if ends == "well":
                assert stage._watched(cast(Running, slow)) == 0
                assert [one.result() for one in slow.answers] == [200] * most
                assert slow.now > 4 * STALL
            else:
                with pytest.raises(TrainerError, match=r"made no progress for 60 s \(engine.stall_seconds\)"):
                    stage._watched(cast(Running, slow))
                assert slow.sent == most
        slow.pool.shutdown()
