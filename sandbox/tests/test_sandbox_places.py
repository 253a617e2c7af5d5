"""The waiting line of a pool: who gets which container, and when waiting ends. No engine needed."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest
from cascade_sandbox import places as line
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.places import Places, Warm
from hypothesis import given
from hypothesis import strategies as st


class Clock:
    """A clock that goes on by hand."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The one that places look at."""
    made = Clock()
    monkeypatch.setattr(line, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def within(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await body()

    asyncio.run(bounded())


def test_a_thousand_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    async def body() -> None:
        places = Places(patience=60)
        waiting = [places.lease() for _ in range(1000)]
        warm = Warm("s")
        places.add(warm)
        for number, waiter in enumerate(waiting):
            assert await waiter is warm
            assert not any(later.done() for later in waiting[number + 1 :])
            places.give(warm)

    within(body)


def test_the_turn_of_one_who_left_goes_to_the_next() -> None:
    async def body() -> None:
        places = Places(patience=60)
        first, second = places.lease(), places.lease()
        first.cancel()
        places.add(Warm("s"))
        assert (await second).socket == "s"

    within(body)


def test_a_container_that_is_over_is_handed_to_nobody() -> None:
    async def body() -> None:
        places = Places(patience=60)
        dead, alive = Warm("dead"), Warm("alive")
        places.add(dead)
        dead.end("gone")
        waiter = places.lease()
        places.give(dead)
        assert not waiter.done()
        places.add(alive)
        assert await waiter is alive

    within(body)


def test_waiting_ends_with_the_reason_when_no_container_lives_for_too_long(clock: Clock) -> None:
    async def body() -> None:
        places = Places(patience=5)
        places.trouble = "the engine is down"
        waiter = places.lease()
        clock.now += 4.9
        places.look()
        assert not waiter.done()
        clock.now += 0.2
        places.look()
        with pytest.raises(SandboxError, match="alive for 5 seconds: the engine is down"):
            await waiter

    within(body)


def test_while_a_container_lives_waiting_has_no_limit(clock: Clock) -> None:
    async def body() -> None:
        places = Places(patience=5)
        warm = Warm("s")
        places.add(warm)
        assert await places.lease() is warm
        waiter = places.lease()
        clock.now += 1000
        places.look()
        assert not waiter.done()
        places.give(warm)
        assert await waiter is warm

    within(body)


def test_the_patience_begins_anew_when_the_last_container_dies(clock: Clock) -> None:
    async def body() -> None:
        places = Places(patience=5)
        warm = Warm("s")
        places.add(warm)
        await places.lease()
        waiter = places.lease()
        clock.now += 6
        warm.end("gone")
        places.drop(warm, "gone")
        clock.now += 4.9
        places.look()
        assert not waiter.done()
        clock.now += 0.2
        places.look()
        assert isinstance(waiter.exception(), SandboxError)

    within(body)


@given(st.lists(st.sampled_from(["lease", "leave", "add", "give", "kill"]), max_size=60))
def test_no_container_is_ever_held_by_two_and_none_is_lost(steps: list[str]) -> None:
    async def body() -> None:
        places = Places(patience=60)
        waiting: list[asyncio.Future[Warm]] = []
        alive: list[Warm] = []
        for step in steps:
            held = [waiter.result() for waiter in waiting if waiter.done()]
            assert len(set(map(id, held))) == len(held)
            if step == "lease":
                waiting.append(places.lease())
            elif step == "leave" and any(not waiter.done() for waiter in waiting):
                left = next(waiter for waiter in waiting if not waiter.done())
                left.cancel()
                waiting.remove(left)
            elif step == "add":
                alive.append(Warm(str(len(alive))))
                places.add(alive[-1])
            elif step == "give" and held:
                back = next(waiter for waiter in waiting if waiter.done())
                waiting.remove(back)
                places.give(back.result())
            elif step == "kill" and alive:
                warm = alive.pop(0)
                warm.end("gone")
                places.drop(warm, "gone")
                waiting = [waiter for waiter in waiting if not waiter.done() or waiter.result() is not warm]
        held = sum(waiter.done() for waiter in waiting)
        assert places.counts["alive"] == len(alive)
        assert places.counts["idle"] + held == len(alive)
        assert places.counts["idle"] == 0 or held == len(waiting)

    within(body)
