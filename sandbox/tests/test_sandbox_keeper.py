"""The keeper with a real engine: what dies is replaced, nothing is left behind, and no fault becomes a verdict."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox import Input, Limits, Program, SandboxError, images
from cascade_sandbox.client import DockerSandbox, docker_sandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.inside.wire import send
from cascade_sandbox.lease import Lease, Lines
from cascade_sandbox.owner import POOL_LABEL

DOUBLE = Program("print(2 * int(input()))")
SLOW = Program("import time\ntime.sleep(2)\nprint(2 * int(input()))")
PARENT = """
import sys, time
from cascade_sandbox import docker_sandbox
sandbox = docker_sandbox(slots=1)
print(sandbox.address, flush=True)
time.sleep(600)
"""


@pytest.fixture
def client(docker_engine: Engine) -> Iterator[Any]:
    """The SDK's client, for faults that the engine's own class does not offer."""
    import docker

    made = docker.DockerClient(base_url=docker_engine.address)
    yield made
    made.close()


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.05)


def double(sandbox: DockerSandbox, program: Program = DOUBLE) -> tuple[str, bytes]:
    result = sandbox.run(program, [Input(b"21\n")], Limits(cpu_seconds=10))[0]
    return result.verdict, result.stdout


def containers(client: Any, pool: str) -> list[Any]:
    return list(client.containers.list(all=True, ignore_removed=True, filters={"label": f"{POOL_LABEL}={pool}"}))


def running(client: Any, pool: str) -> Any:
    """The container in which a program runs, as soon as there is one."""
    found: list[Any] = []

    def look() -> bool:
        found.extend(one for one in containers(client, pool) if "main.py" in str(one.top()["Processes"]))
        return bool(found)

    until(look)
    return found[0]


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except SandboxError as error:
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    return thread, found


def test_a_container_that_is_killed_in_a_run_costs_one_retry(client: Any, docker_engine: Engine) -> None:
    with docker_sandbox(slots=2) as sandbox:
        pool = sandbox.status()["pool"]
        until(lambda: sandbox.status()["alive"] == 2)
        assert double(sandbox) == ("ok", b"42\n")
        thread, found = in_background(lambda: double(sandbox, SLOW))
        running(client, pool).kill()
        thread.join(60)
        assert found == [("ok", b"42\n")]
        until(lambda: sum(sandbox.status()["recreated"].values()) == 1 and sandbox.status()["idle"] == 2)
        assert double(sandbox) == ("ok", b"42\n")


def test_containers_that_all_die_at_once_cost_one_retry(client: Any, docker_engine: Engine) -> None:
    with docker_sandbox(slots=2) as sandbox:
        pool = sandbox.status()["pool"]
        until(lambda: sandbox.status()["alive"] == 2)
        assert double(sandbox) == ("ok", b"42\n")
        thread, found = in_background(lambda: double(sandbox, SLOW))
        running(client, pool)
        pids = [client.api.inspect_container(one.id)["State"]["Pid"] for one in containers(client, pool)]
        assert len(pids) == 2 and all(pid > 1 for pid in pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        thread.join(60)
        assert found == [("ok", b"42\n")]
        until(lambda: sum(sandbox.status()["recreated"].values()) == 2 and sandbox.status()["idle"] == 2)


def test_a_supervisor_that_is_killed_between_two_runs_costs_one_retry(client: Any, docker_engine: Engine) -> None:
    with docker_sandbox(slots=1) as sandbox:
        (container,) = containers(client, sandbox.status()["pool"])
        pid = client.api.inspect_container(container.id)["State"]["Pid"]
        with sandbox.open(DOUBLE) as session:
            os.kill(pid, signal.SIGKILL)
            assert session.run(Input(b"21\n")).stdout == b"42\n"
        assert sum(sandbox.status()["recreated"].values()) == 1


def test_a_container_is_replaced_after_so_many_runs(docker_engine: Engine) -> None:
    with docker_sandbox(slots=1, recycle_after=3) as sandbox:
        for _ in range(7):
            assert double(sandbox) == ("ok", b"42\n")
        until(lambda: sandbox.status()["idle"] == 1)
        assert sandbox.status()["recreated"] == {"recycled": 2}


def test_a_client_that_hangs_up_in_a_run_leaves_its_place_usable(pool: DockerSandbox) -> None:
    before = pool.status()["recreated"]
    leases = [Lease(Lines(pool.address), "judged") for _ in range(2)]
    for lease in leases:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(lease.socket)
        send(
            sock,
            {"op": "open", "language": {"file": "m.py", "run": ["python3", "{source}"]}, "limits": {}, "files": []},
            [b"1"],
        )
        sock.close()
        lease._sock.close()  # as the kernel does for a client that is killed
    assert double(pool) == ("ok", b"42\n")
    until(lambda: pool.status()["roles"]["judged"]["idle"] == 2)
    assert pool.status()["recreated"] == before


def test_the_image_deleted_under_a_pool_is_noticed_when_it_is_needed_and_mended(
    client: Any, docker_engine: Engine
) -> None:
    name = "cascade-sandbox-test:deleted"
    client.images.get(images.choose(docker_engine)).tag(*name.split(":"))
    try:
        with docker_sandbox(slots=1, image=name, patience=2) as sandbox:
            docker_engine.remove_image(name)
            assert double(sandbox) == ("ok", b"42\n")
            containers(client, sandbox.status()["pool"])[0].kill()
            with pytest.raises(SandboxError, match=f"{name} is missing here.*cascade sandbox build"):
                double(sandbox)
            client.images.get(images.choose(docker_engine)).tag(*name.split(":"))
            until(lambda: sandbox.status()["idle"] == 1)
            assert double(sandbox) == ("ok", b"42\n")
    finally:
        docker_engine.remove_image(name)


def test_a_program_that_fills_the_disk_leaves_room_for_the_next(pool: DockerSandbox) -> None:
    fills = Program(
        "import os, sys\n"
        "try:\n"
        "    for n in range(1000): open(f'f{n}', 'wb').write(bytes(10_000_000))\n"
        "except OSError as error: print(error.errno)\n"
    )
    before = pool.status()["recreated"]
    result = pool.run(fills, [Input()], Limits(cpu_seconds=10))[0]
    assert (result.verdict, result.stdout) == ("ok", b"28\n")
    for _ in range(4):
        assert double(pool) == ("ok", b"42\n")
    assert pool.status()["recreated"] == before


def test_a_source_for_which_there_is_no_room_is_an_error_of_the_sandbox(docker_engine: Engine) -> None:
    with docker_sandbox(slots=1, work_mb=16) as sandbox:
        with pytest.raises(SandboxError, match="No space left"):
            sandbox.run(Program("#" * (20 << 20) + "\nprint(1)"), [Input()])
        assert double(sandbox) == ("ok", b"42\n")


def test_two_pools_at_once_know_nothing_of_each_other(pool: DockerSandbox, docker_engine: Engine) -> None:
    with docker_sandbox(slots=1) as other:
        assert other.status()["pool"] != pool.status()["pool"]
        assert double(other) == double(pool) == ("ok", b"42\n")
    assert double(pool) == ("ok", b"42\n")


def test_a_closed_pool_leaves_nothing(client: Any, docker_engine: Engine) -> None:
    sandbox = docker_sandbox(slots=2)
    pool = sandbox.status()["pool"]
    folder = Path(sandbox.address.removeprefix("unix:")).parent
    assert folder.is_dir()
    sandbox.close()
    sandbox.close()
    assert not folder.exists()
    assert containers(client, pool) == []
    with pytest.raises(SandboxError, match="no sandbox answers"):
        sandbox.open(DOUBLE)


def test_of_a_run_that_is_killed_nothing_is_left(client: Any, docker_engine: Engine) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().strip().removeprefix("unix:")).parent
        assert len(containers(client, folder.name)) == 1
        parent.kill()
    until(lambda: not containers(client, folder.name) and not folder.exists(), 60)


def test_the_socket_of_a_pool_is_for_its_user_alone(pool: DockerSandbox) -> None:
    folder = Path(pool.address.removeprefix("unix:")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == os.getuid()


def test_what_the_keeper_does_not_understand_ends_only_that_connection(pool: DockerSandbox) -> None:
    for data in (b"\xff" * 8, b"\0\0\0\x02{}", b"\0\0\0\x0c" + b'{"blobs":[]}', b"GET / HTTP/1.1\r\n\r\n"):
        with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(BrokenPipeError):
            sock.connect(pool.address.removeprefix("unix:"))
            sock.settimeout(10)
            sock.sendall(data)
            while sock.recv(4096):
                pass
    assert double(pool) == ("ok", b"42\n")
