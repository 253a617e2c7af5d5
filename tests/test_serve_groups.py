"""`/rewards`: finished advantages of a group, alone or with its batch."""

import threading

import pytest
from serving import row, served

from cascade_core.advantages import advantages
from cascade_core.serve.app import Limits


@pytest.fixture(scope="module")
def shared():
    with served() as found:
        yield found


def group(*responses, domain="faulty", **more):
    return {"rows": [row(text, domain=domain) for text in responses], **more}


def together(shared, *requests):
    """The answers to requests that are sent at once."""
    found = [None] * len(requests)

    def ask(number):
        found[number] = shared.post("/rewards", requests[number])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_a_group_gets_the_advantages_of_training(shared):
    _, told = shared.post("/rewards", group("right", "wrong", "task", "shown"))
    assert [one["reward"] for one in told["rows"]] == [1.0, 0.0, None, 2.5]
    assert [one["advantage"] for one in told["rows"]] == advantages([1.0, 0.0, None, 2.5])
    assert [one["masked"] for one in told["rows"]] == ["", "", "error", ""]


def test_a_domains_own_rewards_see_the_group(shared):
    _, told = shared.post("/rewards", group("right", "wrong", domain="grouped"))
    assert [one["reward"] for one in told["rows"]] == [2.0, 0.0]


def test_settings_are_those_of_a_stage(shared):
    data = group("right", "wrong", settings={"advantage": {"std": "none"}, "overlong": "mask"})
    data["rows"][1]["truncated"] = True
    _, told = shared.post("/rewards", data)
    assert [one["masked"] for one in told["rows"]] == ["", "overlong"]
    soft = {"overlong": {"soft": {"buffer": 200, "factor": 1.0}}, "max_response_tokens": 1000}
    data = group("right", settings=soft)
    data["rows"][0]["tokens"] = 900
    assert shared.post("/rewards", data)[1]["rows"][0]["reward"] == 0.5


@pytest.mark.parametrize(
    ("settings", "field", "allowed"),
    [
        ({"steps": 3}, "body.settings.steps", "absent (known: "),
        ({"advantage": {"std": "huge"}}, "body.settings.advantage.std", "'sample', 'population' or 'none'"),
        ({"advantage": {"st": "none"}}, "body.settings.advantage.st", "absent (known: std, epsilon, shaping)"),
        ({"overlong": "perhaps"}, "body.settings.overlong", "'mask', 'zero' or 'keep'"),
        ({"overlong": {"soft": {}}}, "body.settings.overlong.soft", "an object with 'buffer'"),
        ({"overlong": {"soft": {"buffer": 9000}}}, "body.settings.overlong.soft.buffer", "at most max_response_tokens"),
        ({"max_response_tokens": 0}, "body.settings.max_response_tokens", "above 0"),
        ([], "body.settings", "an object"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(shared, settings, field, allowed):
    status, told = shared.post("/rewards", group("right", settings=settings))
    assert (status, told["field"], told["allowed"][: len(allowed)]) == (422, field, allowed)


def test_a_group_is_of_one_task(shared):
    data = {"rows": [row("right", "a"), row("right", "b")]}
    assert shared.post("/rewards", data)[1]["field"] == "body.rows[1].id"


def test_a_domain_that_needs_its_batch_is_refused_without_one(shared):
    status, told = shared.post("/rewards", group("right", "wrong", domain="batchwise"))
    assert (status, told["field"]) == (422, "body.batch")


def test_groups_of_a_batch_wait_for_each_other_and_share_its_statistics(shared):
    batch = {"id": "b1", "groups": 2}
    first = group("right", "wrong", domain="batchwise", group="a", batch=batch)
    second = group("wrong", "shown", domain="batchwise", group="b", batch=batch)
    told = together(shared, first, second)
    assert [[one["reward"] for one in each["rows"]] for _, each in told] == [[1.0, -10.0], [-10.0, 2.5]]
    assert shared.post("/rewards", second) == told[1]  # sent again it is the same one


def test_a_batch_that_stays_incomplete_is_given_up():
    data = group("right", "wrong", group="a", batch={"id": "b2", "groups": 3})
    with served(limits=Limits(batch_seconds=0.5)) as hasty:
        status, told = hasty.post("/rewards", data)
    assert status == 504 and "1 of 3 groups" in told["error"]


def test_what_contradicts_its_batch_is_refused(shared):
    batch = {"id": "b3", "groups": 1}
    assert shared.post("/rewards", group("right", "wrong", group="a", batch=batch))[0] == 200
    for other, status in (
        (group("right", "right", group="a", batch=batch), 409),
        (group("right", "wrong", group="b", batch=batch), 422),
        (group("right", "wrong", group="a", batch={**batch, "groups": 2}), 409),
        (group("right", "wrong", group="a", batch={"id": "b3"}), 422),
        (group("right", "wrong", group="a", batch=batch, settings={"overlong": "keep"}), 409),
    ):
        assert shared.post("/rewards", other)[0] == status
