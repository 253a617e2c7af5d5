"""TensorBoard's files of a stage are closed soon, also where Ctrl-C came while its thread was being woken."""

import threading
import time
from pathlib import Path

from cascade_core.trainers.callbacks import Board


def test_a_wake_up_that_was_interrupted_does_not_hold_the_end_up(tmp_path: Path) -> None:
    board = Board(tmp_path, 0)
    board.write(1, {"loss": 1.0})
    queue = board._writer._get_file_writer().event_writer._async_writer._byte_queue
    end = time.monotonic() + 20
    while not queue.not_empty._waiters and time.monotonic() < end:
        time.sleep(0.01)
    stale = threading.Lock()
    stale.acquire()
    with queue.not_empty:  # what an interrupted `notify` leaves: a waiter that has woken and was not forgotten
        queue.not_empty._waiters.appendleft(stale)
    began = time.monotonic()
    board.close()
    assert time.monotonic() - began < 30
    assert any(tmp_path.iterdir())
