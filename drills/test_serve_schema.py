"""Ten thousand requests that are made from the service's own schema: it takes what it says, answers as it says, and ends over none."""

import os
import time

import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from serving import row, served
from test_serve_rollout import rollouts

from cascade_core.serve.app import Limits

PHASES = (Phase.explicit, Phase.generate)  # nothing is shrunk: the first failure is shown as it came
REQUESTS = {"/slot": 2_800, "/reply": 1_800, "/sample": 2_600, "/get_reward": 2_000, "/score": 400, "/rewards": 400}
"""Of each endpoint; rows are slow to make, and `test_service_fuzz.py` has more of them."""
CHECKED = (
    "status_code_conformance",  # 503 and 504 are said of themselves, 500 is nowhere
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
REFUSED = [400, 409, 413, 422, 503, 504]
"""What may become of data that the schema does not allow; 413 where there is more of it than a body may hold."""


@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ten_thousand_requests_of_its_own_schema_are_answered_as_it_says(tmp_path):
    load_all_checks()
    checks = CHECKS.get_by_names(list(CHECKED))
    asked = []
    with served(workers=1, rollouts=rollouts(tmp_path, patience=1.0), limits=Limits(batch_seconds=0.05)) as service:
        config = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
        schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json", config=config)
        operations = [found.ok() for found in schema.get_all_operations()]
        posts = [operation for operation in operations if operation.method == "post"]
        assert {operation.path for operation in posts} == set(REQUESTS)
        modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]

        def tried(operation, mode, count):
            @settings(
                max_examples=count, phases=PHASES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
            )
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case):
                asked.append(case.path)
                case.call_and_validate(checks=checks, timeout=60)

            ask()

        process = psutil.Process(os.getpid())
        for operation in posts:
            for mode in modes:
                tried(operation, mode, REQUESTS[operation.path] // 2)
        files = process.num_fds()
        for operation in operations:
            if operation.method == "get":
                tried(operation, modes[0], 20)
        assert len(asked) >= 10_000
        last = time.monotonic() + 60
        while process.num_fds() > files + 8 and time.monotonic() < last:  # of connections that are being closed
            time.sleep(0.1)
        assert process.num_fds() <= files + 8
        assert service.post("/score", {"rows": [row("right")]})[1]["scores"][0]["value"] == 1.0
        assert service.number("cascade_held_bytes") == 0
