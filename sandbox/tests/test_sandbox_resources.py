"""The sandboxes as resources of a run: found by name, started once, reached by address, and gone when they are stopped."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from cascade_sandbox import Input, Program, SandboxError, connect
from cascade_sandbox.engine import Engine
from cascade_sandbox.process import ProcessSandbox
from cascade_sandbox.resources import Docker, Process

from cascade_core.plugins import Registry

HELLO = Program("print('hello')")


def test_both_are_found_by_name_and_docker_is_the_default() -> None:
    registry = Registry()
    assert registry.find("resource", "sandbox/docker")[0] is Docker
    assert registry.find("resource", "sandbox/process")[0] is Process
    assert Docker.default and not Process.default


def test_the_command_is_found() -> None:
    assert Registry().find("command", "sandbox")[1].distribution == "cascade-rl"


def test_docker_answers_at_its_address_until_it_is_stopped(docker_engine: Engine) -> None:
    resource = Docker(slots=1)
    assert not resource.alive()
    assert resource.describe() == {}
    address = resource.start()
    try:
        assert connect(address).run(HELLO, [Input()])[0].stdout == b"hello\n"
        assert resource.alive()
        described = resource.describe()
        assert described["slots"] == 1
        assert str(described["image"]).startswith("cascade-sandbox-")
    finally:
        resource.stop()
    resource.stop()
    assert not resource.alive()
    assert not Path(address.removeprefix("unix:")).parent.exists()


def test_docker_whose_keeper_was_killed_is_not_alive(docker_engine: Engine) -> None:
    resource = Docker(slots=1)
    resource.start()
    try:
        assert resource._running is not None and resource._running._keeper is not None
        os.kill(resource._running._keeper.pid, signal.SIGKILL)
        resource._running._keeper.wait()
        assert not resource.alive()
    finally:
        folder = Path(resource._running.address.removeprefix("unix:")).parent  # type: ignore[union-attr]
        resource.stop()
        for container in docker_engine.containers(f"io.cascade-rl.sandbox={folder.name}"):
            docker_engine.remove(container.name)
        shutil.rmtree(folder)


def test_docker_that_cannot_start_says_why_and_takes_nothing_else() -> None:
    resource = Docker(engine="unix:///nowhere/docker.sock")
    with pytest.raises(SandboxError, match=r"engine at unix:///nowhere/docker\.sock"):
        resource.start()
    assert not resource.alive()
    resource.stop()


def test_the_process_sandbox_is_reached_by_its_address() -> None:
    resource = Process()
    with connect(resource.start()) as sandbox:
        assert isinstance(sandbox, ProcessSandbox)
        assert sandbox.run(HELLO, [Input()])[0].stdout == b"hello\n"
    resource.stop()
