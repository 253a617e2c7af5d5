"""When the pool stops trying, and when it begins again."""

import pytest

from cascade_core import patience
from cascade_core.patience import Patience


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(patience.time, "monotonic", lambda: now[0])
    return now


def test_twenty_failures_in_a_row_end_the_second_tries_until_a_verdict():
    memory = Patience()
    for _ in range(20):
        assert memory.has_more("math")
        memory.failed("math")
    assert not memory.has_more("math")
    assert memory.has_more("if")
    memory.judged("math")
    assert memory.has_more("math")


def test_failures_between_verdicts_do_not_add_up():
    memory = Patience()
    for _ in range(100):
        memory.failed("math")
        memory.judged("math")
    assert memory.has_more("math")


def test_a_domain_that_cannot_be_opened_is_left_alone_for_a_while(clock):
    memory = Patience()
    assert memory.refusal("math") == ""
    memory.unopenable("math", "no such file")
    assert memory.refusal("math") == "no such file"
    assert memory.refusal("if") == ""
    clock[0] += 31
    assert memory.refusal("math") == ""


def test_a_machine_without_room_is_tried_again_and_given_up_in_the_end(clock):
    memory = Patience()
    assert memory.may_start()
    memory.started("too many open files")
    assert not memory.may_start()
    clock[0] += 1.5
    assert memory.may_start()
    assert memory.refusal("math") == ""
    for _ in range(31):
        clock[0] += 1.0
        memory.started("too many open files")
    assert memory.refusal("math") == "no worker can be started: too many open files"
    memory.started()
    assert memory.refusal("math") == ""
    assert memory.may_start()
