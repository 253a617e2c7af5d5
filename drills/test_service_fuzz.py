"""Three thousand requests that no schema would allow: none ends the reward service, is an internal error, or leaves anything behind."""

import os
import time

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from service_requests import PATHS, REQUESTS, check_answer
from serving import row, served

from cascade_core.serve.app import Limits

HALF = settings(max_examples=1_500, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(1800)
def test_three_thousand_requests_are_answered_and_nothing_is_left_of_them():
    with served(workers=1, limits=Limits(batch_seconds=1.0)) as service:

        @HALF
        @given(PATHS, REQUESTS)
        def ask(path, data):
            check_answer(*service.post(path, data))

        process = psutil.Process(os.getpid())
        ask()
        files, memory = process.num_fds(), process.memory_info().rss
        ask()
        last = time.monotonic() + 60
        while process.num_fds() > files + 2 and time.monotonic() < last:  # of connections that are being closed
            time.sleep(0.1)
        assert process.num_fds() <= files + 2
        assert process.memory_info().rss < 1.25 * memory
        assert service.post("/score", {"rows": [row("right")]})[1]["scores"][0]["value"] == 1.0
        assert service.get("/health")[1]["waiting"] == service.number("cascade_held_bytes") == 0
