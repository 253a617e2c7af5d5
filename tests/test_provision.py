"""What provides what domains need: chosen as the spec says, started once, ended always, never replaced by something else."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echoed import NEED, echo, events, is_running, pids, wait_until
from strangers import publish

from cascade_core.errors import PluginBroken, PluginNotFound, ResourceError, SpecError
from cascade_core.plugins import Registry, registry
from cascade_core.provision import Choice, Provision, choose, chosen, running
from cascade_core.server import reachable

__all__ = ["echo", "publish"]
STRANGER = """
    from dataclasses import dataclass
    from cascade_core import Resource, hookimpl

    @dataclass
    class Box(Resource):
        name = "box"
        provides = "echo-server"
        default = True
        size: int = 1

        def __post_init__(self):
            if self.size > 9:
                raise ValueError("size must be at most 9")

        def start(self):
            return None

        def stop(self):
            pass

    @hookimpl
    def cascade_resources():
        return [Box]
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def local(echo: None, log: Path) -> Iterator[Provision]:
    yield choice({"local": {"log": str(log)}})


def choice(said: Choice, found: Registry | None = None) -> Provision:
    return choose(NEED, {NEED: said}, found)


def test_where_nothing_is_said_the_default_is_taken(echo: None) -> None:
    (one,) = chosen([registry().domain("echo")], {}).values()
    assert (one.need, one.name, one.distribution, one.version) == (NEED, "local", "cascade-plugin-echo", "0.1.0")


def test_a_name_a_name_with_options_and_an_address_can_be_said(echo: None) -> None:
    assert choice("broken").name == "broken"
    assert choice({"local": {"slots": 2}}).options == {"slots": 2}
    assert choice({"local": None}).options == {}
    assert choice("unix:/run/x") == Provision(NEED, address="unix:/run/x", pinned={"address": "given"})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "lokal",
            "nothing that provides 'echo-server' is called 'lokal', did you mean 'local' .allowed: broken, local.",
        ),
        ({"local": {"slot": 2}}, "resource 'local': unknown option 'slot', did you mean 'slots'"),
        ({"local": {"slots": "2"}}, "option 'slots' must be a whole number"),
        ({"local": {"_folder": "x"}}, "unknown option '_folder'"),
        ({"local": 3}, "must be a name, an address or one name with its options"),
        ({"local": {}, "broken": {}}, "must be a name, an address or one name with its options"),
        ({}, "must be a name, an address or one name with its options"),
        ("", "must be a name, an address or one name with its options"),
        (None, "must be a name, an address or one name with its options"),
        (7, "must be a name, an address or one name with its options"),
        ("http://me:secret@host:80/", "must hold no user name or password"),
        ("ftp://host", "an echo is at no ftp://host"),
        ("http://[::1", "'http://\\[::1' is no address"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(echo: None, said: Any, told: str) -> None:
    with pytest.raises(SpecError, match=told) as caught:
        choice(said)
    assert "secret" not in str(caught.value)


def test_a_choice_for_what_nobody_needs_is_refused(echo: None) -> None:
    with pytest.raises(SpecError, match="no domain here needs 'echo_server', did you mean 'echo-server'"):
        chosen([registry().domain("echo")], {"echo_server": "local"})
    with pytest.raises(SpecError, match="no domain here needs 'echo-server' .allowed: none"):
        chosen([registry().domain("if")], {NEED: "local"})


def test_what_nothing_provides_is_told_with_the_nearest(echo: None) -> None:
    with pytest.raises(PluginNotFound, match="nothing installed provides 'echo-serve', did you mean 'echo-server'"):
        choose("echo-serve", {})


def test_two_defaults_are_none(echo: None, publish: Any) -> None:
    publish("cascade-plugin-box", STRANGER)
    registry.cache_clear()
    with pytest.raises(SpecError, match="box and local both claim to be the default .installed: box, broken, local."):
        choose(NEED, {})
    assert choice("box").name == "box"


def test_without_a_default_it_must_be_said(publish: Any) -> None:
    publish("cascade-plugin-box", STRANGER.replace("default = True", "default = False"))
    with pytest.raises(SpecError, match="say what provides 'echo-server': none of those installed is the default"):
        choose(NEED, {}, Registry())


def test_what_cannot_change_a_verdict_is_not_pinned(echo: None) -> None:
    assert choice({"local": {"slots": 2, "strict": False}}).pinned == {"local": {"strict": False}}


def test_it_runs_while_the_context_lasts(local: Provision, log: Path) -> None:
    with running([local]) as found:
        address = found.addresses[NEED]
        assert not reachable(address) and found.facts == {NEED: {"name": "local", "python": 3}}
        found.check()
    assert events(log) == ["start", "stop"] and not Path(address.removeprefix("unix:")).parent.exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_is_ended_when_something_is_raised(local: Provision, log: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), running([local]):
        raise error
    assert events(log) == ["start", "stop"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_is_ended_when_a_signal_comes(local: Provision, log: Path, number: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as caught, running([local]):
        os.kill(os.getpid(), number)
        wait_until(lambda: False)
    assert caught.value.code == 128 + number and events(log) == ["start", "stop"]
    assert signal.getsignal(number) is before


def test_a_handler_of_the_program_itself_is_left_alone(local: Provision) -> None:
    def mine(number: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with running([local]):
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_one_that_cannot_be_started_ends_the_others_and_is_told_in_one_line(local: Provision, log: Path) -> None:
    broken = choice("broken")
    with pytest.raises(ResourceError) as caught, running([local, broken]):
        raise AssertionError("nothing may be done")
    assert str(caught.value) == (
        "what provides 'echo-server' (broken, cascade-plugin-echo 0.1.0) cannot be started:"
        " there is no engine; `echo doctor` says how to get one"
    )
    assert events(log) == ["start", "stop"]


def test_one_that_will_not_end_is_told_and_the_others_end(echo: None, log: Path, capsys: Any) -> None:
    bad, good = (choice({"local": {"log": str(log), "fault": fault}}) for fault in ("stop", ""))
    with running([good, bad]):
        pass
    assert events(log).count("stop") == 2
    assert "could not be ended: RuntimeError: it will not end" in capsys.readouterr().err


def test_one_that_has_gone_is_told_with_what_came_of_it(local: Provision, log: Path) -> None:
    with running([local]) as found:
        found.check()
        for _ in range(2):  # the first time it is started once more
            (pid,) = (pid for pid in pids(log) if is_running(pid))
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]
            wait_until(lambda: any(map(is_running, pids(log))) or not found._started[0][1].alive())
        with pytest.raises(ResourceError, match="has gone; the same command starts it anew .* because of it: too many"):
            found.check(RuntimeError("too many"))


def test_an_address_is_tried_and_what_runs_there_is_left_running(local: Provision, log: Path, tmp_path: Path) -> None:
    with running([local]) as found:
        there = choice(found.addresses[NEED])
        with running([there]) as other:
            assert other.addresses == found.addresses and other.facts == {NEED: {"name": "address"}}
        assert not reachable(there.address) and events(log) == ["start"]
    with pytest.raises(ResourceError, match="nothing answers any more at unix:"):
        other.check()
    with pytest.raises(
        ResourceError, match="nothing answers at unix:.*which is to provide 'echo-server': no such file"
    ):
        running([there]).__enter__()


def test_a_class_that_cannot_read_an_address_is_broken(echo: None) -> None:
    with pytest.raises(PluginBroken, match="resource 'broken' of .* cannot read an address: RuntimeError: odd"):
        choice("echo:raise")


def test_a_default_that_must_be_told_something_is_asked_for_as_it_stands_in_a_spec(publish: Any) -> None:
    publish("cascade-plugin-box", STRANGER.replace("size: int = 1", "size: int"))
    with pytest.raises(SpecError) as refused:
        choose(NEED, {}, Registry())
    assert str(refused.value) == (
        "say what provides 'echo-server': `echo-server: {box: {size: …}}` under resources, or the address of what runs already"
    )


def test_an_address_that_is_none_breaks_the_plugin(publish: Any) -> None:
    publish("cascade-plugin-box", STRANGER)
    found = Registry()
    with pytest.raises(PluginBroken, match="resource 'box' must give its address when started, found None"):
        running([choice("box", found)], found).__enter__()
    with pytest.raises(SpecError, match="resource 'box' refuses its options: size must be at most 9"):
        running([choice({"box": {"size": 10}}, found)], found).__enter__()


def test_a_lane_that_is_none_breaks_the_plugin(publish: Any) -> None:
    domain = """
        from cascade_core import Domain, hookimpl

        class Slow(Domain):
            name = "slow"
            lane = "gpu"
            def tasks(self, split, seed): return []
            def score(self, task, response): return None

        @hookimpl
        def cascade_domains(): return [Slow]
    """
    publish("cascade-plugin-slow", domain)
    (plugin,) = (plugin for plugin in Registry().plugins if plugin.distribution == "cascade-plugin-slow")
    assert "the lane of domain 'slow' must be cpu or io, found 'gpu'" in plugin.error


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("return [Box]", "return Box"), "cascade_resources must return a list of resource classes"),
        (("return [Box]", "return [Box, Box]"), "cascade_resources returned two classes called 'echo-server/box'"),
        (("def stop(self)", "def end(self)"), "resource class Box is abstract: it lacks stop"),
        (('provides = "echo-server"', "provides = 3"), "must have a name of letters"),
        (('name = "box"', 'name = "a/b"'), "must have a name of letters"),
    ],
)
def test_a_resource_that_breaks_its_contract_is_a_broken_plugin(
    publish: Any, change: tuple[str, str], told: str
) -> None:
    publish("cascade-plugin-box", STRANGER.replace(*change))
    (plugin,) = (plugin for plugin in Registry().plugins if plugin.distribution == "cascade-plugin-box")
    assert told in plugin.error


def test_a_server_that_listens_on_a_port_can_be_named(echo: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = f"http://127.0.0.1:{there.getsockname()[1]}/v1"
        with running([choice(address)]) as found:
            assert found.addresses == {NEED: address}
