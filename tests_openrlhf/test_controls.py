"""A run whose engines never get the trained weights: what passes for the real cascade must not pass for it."""

import pytest
from openrlhf_checks import assert_rewards_follow_the_answers, assert_weights_are_synced
from openrlhf_runs import Cascade, finished
from ruamel.yaml import YAML


@pytest.fixture(scope="module")
def unsynced(cascade, tmp_path_factory) -> Cascade:
    """The first steps of the stage `math`, without the hook that carries weights from DeepSpeed to vLLM. It ends as if all were well.

    Steps are three times as large as the stage's own, so that some responses of the first are right by all chances.
    """
    place = tmp_path_factory.mktemp("unsynced")
    yaml = YAML(typ="safe")
    spec = yaml.load((cascade.folder / "spec.yaml").read_text("utf-8"))
    spec["model"] = str(cascade.stage("sft") / "checkpoint")
    (stage,) = (stage for stage in spec["stages"] if stage["name"] == "math")
    stage["rollout"]["prompts_per_step"] *= 3
    spec["stages"] = [{**stage, "steps": 3, "save_every": 0}]
    spec["evaluation"] |= {"limit": 1}
    with (place / "spec.yaml").open("w", encoding="utf-8") as out:
        yaml.dump(spec, out)
    return finished(place / "spec.yaml", place / "run", CASCADE_OPENRLHF_WITHOUT="openrlhf.utils.distributed_util")


def test_without_the_transfer_of_weights_the_check_of_the_synced_ones_fails(cascade, unsynced):
    assert len(unsynced.steps("math")) == 3
    assert_weights_are_synced(cascade.steps("math"))
    with pytest.raises(AssertionError, match="vllm_kl"):
        assert_weights_are_synced(unsynced.steps("math"))


def test_without_the_transfer_of_weights_rewards_end_after_the_first_step(unsynced):
    """The first is sampled with the weights that the engine read from the checkpoint by itself."""
    rows = unsynced.rollouts("math")
    assert any(row["score"]["value"] for row in rows if row["step"] == 0)
    with pytest.raises(AssertionError, match="are right"):
        assert_rewards_follow_the_answers([row for row in rows if row["step"] > 0])
