"""The domain keeps its contract, with a reward model that is really served."""

from pathlib import Path

import pytest
import tiny_reward_models as models
from cascade_plugin_rlhf.domain import RLHF

from cascade_core.testing import check_domain


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_domain_keeps_its_contract(tmp_path: Path) -> None:
    folder = models.qwen(tmp_path, 1)
    server = {"server": {"model": str(folder), "device": "cpu", "threads": 1}}
    findings = check_domain(RLHF(reward="sigmoid_z"), tasks=6, resources={"reward_model": server})
    assert {finding.check for finding in findings} >= {
        "hostile answers are judged, and not right",
        "the same answer gets the same score",
        "tasks of other domains are judged",
    }
