"""The Docker sandbox under faults that take a while: engines of our own that are killed, a crowd, and a keeper that is killed.

An engine that is to be killed has a network namespace, folders and a socket of its own, so that no other engine notices.
"""

import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cascade_sandbox import Input, Limits, Program, SandboxError, docker_sandbox, images, rubbish
from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.owner import POOL_LABEL
from cascade_sandbox.testing import give_up, require_engine

pytestmark = pytest.mark.timeout(900)

DOUBLE = Program("print(2 * int(input()))")
PARENT = """
import time
from cascade_sandbox import docker_sandbox
sandbox = docker_sandbox(slots=1)
print(sandbox.address, sandbox._keeper.pid, flush=True)
time.sleep(600)
"""


def until(true: Callable[[], bool], seconds: float) -> float:
    """Waits for it; how long that took."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds, "did not happen in time"
        time.sleep(0.1)
    return time.monotonic() - begin


class OwnEngine:
    """A dockerd that can be killed and started again, beside a containerd that stays, as a service manager would have it."""

    def __init__(self, folder: Path, *, live_restore: bool) -> None:
        self.folder = folder
        self.live_restore = live_restore
        self.engine = Engine(f"unix://{folder}/docker.sock")
        config = folder / "containerd.toml"
        config.write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
        places = ["--root", f"{folder}/c-data", "--state", f"{folder}/c-run", "--address", f"{folder}/containerd.sock"]
        self._containerd = self._start("containerd", "--config", str(config), *places, "--log-level", "error")
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the daemon and waits until it answers."""
        folder = self.folder
        until((folder / "containerd.sock").exists, 120)
        (folder / "docker.sock").unlink(missing_ok=True)
        (folder / "pid").unlink(missing_ok=True)
        places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/run", "--pidfile", f"{folder}/pid"]
        places += ["--host", f"unix://{folder}/docker.sock", "--containerd", f"{folder}/containerd.sock"]
        options = ["--bridge", "none", "--iptables=false", "--ip6tables=false", "--log-level", "error"]
        options += ["--live-restore"] if self.live_restore else []
        self._daemon = self._start("unshare", "--net", "dockerd", *places, *options)
        until(self.answers, 120)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def answers(self) -> bool:
        """Whether it does."""
        try:
            return bool(self.engine.version())
        except SandboxError:
            assert self._daemon is not None and self._daemon.poll() is None, (self.folder / "log").read_text()[-2000:]
            return False

    def kill(self) -> None:
        """SIGKILL, to the daemon alone; the containers live on."""
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait()

    def signal(self, number: int) -> None:
        """Sends a signal to the daemon."""
        assert self._daemon is not None
        self._daemon.send_signal(number)

    def pid_of(self, container: str) -> int:
        """The first process of a container, as this machine counts."""
        import docker

        client = docker.APIClient(base_url=self.engine.address)
        try:
            pid = int(client.inspect_container(container)["State"]["Pid"])
        finally:
            client.close()
        assert pid > 1
        return pid

    def end(self) -> None:
        """Ends it, with all that it started, and removes everything."""
        for process in (self._daemon, self._containerd):
            if process is not None:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for line in Path("/proc/self/mounts").read_text().splitlines():
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]], capture_output=True)  # or gone with its parent
        shutil.rmtree(self.folder)


@pytest.fixture(params=[False, True], ids=["without live-restore", "with live-restore"])
def own_engine(request: pytest.FixtureRequest) -> Iterator[OwnEngine]:
    """An engine with an image, for this test alone."""
    require_engine()
    if os.geteuid() != 0 or not all(map(shutil.which, ("dockerd", "containerd", "unshare"))):
        give_up("an engine of its own needs root, dockerd, containerd and unshare")
    folder = Path(tempfile.mkdtemp(prefix="own-engine-", dir="/tmp"))
    own = OwnEngine(folder, live_restore=request.param)
    try:
        own.start()
        images.build(own.engine, "python", lambda line: None)
        yield own
    finally:
        own.end()


class Batch:
    """Programs that run one after the other in several threads until told to stop, and what became of each."""

    def __init__(self, sandbox: DockerSandbox, threads: int) -> None:
        self.right: list[float] = []
        self.wrong: list[object] = []
        self.errors: list[str] = []
        self._sandbox = sandbox
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        while not self._over.is_set():
            number += 1
            try:
                result = self._sandbox.run(DOUBLE, [Input(b"%d\n" % number)], Limits(cpu_seconds=5))[0]
            except SandboxError as error:
                self.errors.append(str(error))
                continue
            if (result.verdict, result.stdout) == ("ok", b"%d\n" % (2 * number)):
                self.right.append(time.monotonic())
            else:
                self.wrong.append(result)

    def more(self, count: int) -> bool:
        """Waits until so many more are right."""
        goal = len(self.right) + count
        until(lambda: len(self.right) >= goal, 180)
        return True

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(120)


def test_an_engine_killed_in_the_middle_of_a_batch_makes_no_verdict_wrong(own_engine: OwnEngine) -> None:
    with docker_sandbox(slots=2, engine=own_engine.engine.address, patience=120) as sandbox:
        until(lambda: sandbox.status()["alive"] == 2, 120)
        batch = Batch(sandbox, threads=4)
        try:
            assert batch.more(10)
            own_engine.kill()
            assert batch.more(20), "warm containers answer without their engine"
            own_engine.start()
            assert batch.more(20), "and with the next one"
            until(lambda: sandbox.status()["alive"] == 2, 180)
            assert batch.more(10)
            if not own_engine.live_restore:
                assert sandbox.status()["recreated"], "the new engine ends the containers of the old one"
        finally:
            batch.stop()
        assert batch.wrong == []
        assert len(batch.errors) <= 4, batch.errors
    assert own_engine.engine.containers(POOL_LABEL) == []


@pytest.mark.parametrize("own_engine", [False], ids=["without live-restore"], indirect=True)
def test_an_engine_that_hangs_holds_up_nobody_who_has_a_warm_container(own_engine: OwnEngine) -> None:
    with docker_sandbox(slots=2, engine=own_engine.engine.address, patience=2) as sandbox:
        until(lambda: sandbox.status()["alive"] == 2, 120)
        pids = [own_engine.pid_of(one.name) for one in own_engine.engine.containers(POOL_LABEL)]
        assert sandbox.run(DOUBLE, [Input(b"21")])[0].stdout == b"42\n"
        own_engine.signal(signal.SIGSTOP)
        try:
            os.kill(pids[0], signal.SIGKILL)
            for _ in range(5):
                assert sandbox.run(DOUBLE, [Input(b"21")])[0].stdout == b"42\n"
            os.kill(pids[1], signal.SIGKILL)
            with pytest.raises(SandboxError, match="no container has been alive for 2 seconds"):
                sandbox.run(DOUBLE, [Input(b"21")])
        finally:
            own_engine.signal(signal.SIGCONT)
        until(lambda: sandbox.status()["alive"] == 2, 180)
        assert sandbox.run(DOUBLE, [Input(b"21")])[0].stdout == b"42\n"


def test_five_hundred_requests_at_once_are_all_answered_rightly() -> None:
    require_engine()
    with docker_sandbox(slots=2) as sandbox:

        def ask(number: int) -> bytes:
            return sandbox.run(DOUBLE, [Input(b"%d\n" % number)])[0].stdout

        with concurrent.futures.ThreadPoolExecutor(500) as executor:
            found = list(executor.map(ask, range(500)))
        assert found == [b"%d\n" % (2 * number) for number in range(500)]
        status = sandbox.status()
        assert (status["waiting"], status["recreated"]) == (0, {})


def test_when_keeper_and_parent_are_killed_containers_end_by_themselves_and_gc_finds_the_folder() -> None:
    engine = require_engine()
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        address, keeper = parent.stdout.readline().split()
        folder = Path(address.removeprefix("unix:")).parent
        label = f"{POOL_LABEL}={folder.name}"
        assert len(engine.containers(label)) == 1
        os.kill(int(keeper), signal.SIGKILL)
        parent.kill()
    until(lambda: not engine.containers(label), 180)
    assert folder in rubbish.folders()
    rubbish.remove(engine, rubbish.Rubbish(folders=(folder,)))
    assert not folder.exists()
