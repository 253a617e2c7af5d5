"""The supervisor of containers, on this machine: a user for every run, and what that user cannot do. Needs root, as it does.

What else guards a container (no network, read-only, a small tmpfs) is tested with containers.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cascade_sandbox.inside import family, users
from cascade_sandbox.inside.errors import Trouble
from supervisors import KINDS, Supervisor, open_program, run, supervisor, until

Run = Callable[..., Any]
USERS = [kind for kind in KINDS if kind == "users"]
"""Empty for one who is not root: then the tests of a running supervisor are not made."""


@pytest.fixture(scope="module")
def place() -> Iterator[Supervisor]:
    with supervisor("users") as running:
        yield running


@pytest.fixture
def client(place: Supervisor) -> Iterator[socket.socket]:
    with place.connect() as connected:
        yield connected


def _said(client: socket.socket, source: str, **limits: Any) -> str:
    assert open_program(client, source.encode(), **limits)["op"] == "ready"
    return str(run(client)["stdout"].decode())


if USERS:

    def test_every_run_has_a_user_that_no_other_had(client: socket.socket) -> None:
        open_program(client, b"grep -E '^(Uid|Gid|Groups|CapEff|CapPrm)' /proc/self/status")
        seen = set()
        for _ in range(5):
            lines = dict(line.split(":", 1) for line in run(client)["stdout"].decode().splitlines())
            assert len(set(lines["Uid"].split())) == 1 and lines["Uid"] == lines["Gid"]
            assert lines["Groups"].strip() == "" and int(lines["CapEff"], 16) == int(lines["CapPrm"], 16) == 0
            seen.add(lines["Uid"])
        assert len(seen) == 5 and not {0, os.getuid()} & {int(word) for uids in seen for word in uids.split()}

    @pytest.mark.parametrize("number", ["0", "TERM", "STOP", "KILL"])
    def test_nobody_can_signal_the_supervisor(place: Supervisor, client: socket.socket, number: str) -> None:
        assert _said(client, f"kill -{number} $PPID 2>/dev/null; echo $?") == "1\n"
        assert place.process.poll() is None

    def test_killing_everybody_kills_only_oneself(place: Supervisor, client: socket.socket) -> None:
        _said(client, "kill -9 -1; echo $?")
        assert place.process.poll() is None
        assert _said(client, "echo on") == "on\n"

    @pytest.mark.parametrize("name", ["mem", "environ", "maps", "fd/0", "root/etc", "cwd/"])
    def test_nobody_can_read_the_supervisor(client: socket.socket, name: str) -> None:
        assert _said(client, f"cat /proc/$PPID/{name} >/dev/null 2>&1 && echo read") == ""

    def test_nobody_can_reach_the_folders_of_others(place: Supervisor, client: socket.socket) -> None:
        other = place.work / "other"
        other.mkdir(mode=0o700)
        try:
            said = _said(
                client, f"ls {place.work} {other}; touch {place.work}/x {other}/x; echo x > $0; echo x > ../x; echo end"
            )
        finally:
            other.rmdir()
        assert said == "end\n"

    def test_processes_are_counted_for_the_run_alone(place: Supervisor, client: socket.socket) -> None:
        for _ in range(2):
            said = _said(
                client, "for i in $(seq 40); do sleep 30 & done; wait; echo none", processes=10, wall_seconds=3
            )
            assert said == ""  # sh gives up when it cannot fork
            assert len(place.leftovers()) == 1

    def test_a_fork_bomb_ends_and_the_next_run_is_served(place: Supervisor, client: socket.socket) -> None:
        open_program(client, b"f() { f | f & }; f; while :; do f; done", cpu_seconds=1, wall_seconds=2)
        assert run(client)["verdict"] in ("timeout", "failed")
        assert len(place.leftovers()) == 1
        assert _said(client, "echo ok") == "ok\n"

    def test_daemons_of_a_run_that_was_killed_are_gone(place: Supervisor, client: socket.socket) -> None:
        said = _said(client, "setsid sh -c 'trap \"\" TERM; sleep 1000' & echo $!; sleep 1000", wall_seconds=1.5)
        with pytest.raises(ProcessLookupError):
            os.kill(int(said), 0)
        assert len(place.leftovers()) == 1

    def test_the_sockets_belong_to_the_owner_of_their_folder(place: Supervisor) -> None:
        owner = place.folder.stat().st_uid
        assert [(place.folder / name).stat().st_uid for name in "sk"] == [owner, owner]
        assert [(place.folder / name).stat().st_mode & 0o777 for name in "sk"] == [0o600, 0o600]

    def test_nobody_keeps_it_and_it_ends() -> None:
        with supervisor("users", impatient=True) as place, place.connect() as client:
            open_program(client, b"sleep 1000", wall_seconds=500)
            assert place.keeper is not None
            place.keeper.close()
            assert place.process.wait(20) == 0

    def test_one_that_is_kept_no_more_ends_in_the_middle_of_a_run() -> None:
        with supervisor("users", impatient=True) as place, place.connect() as client:
            open_program(client, b"sleep 1000", wall_seconds=500)
            assert place.keeper is not None
            place.keeper.close()
            with pytest.raises((EOFError, ConnectionResetError)):
                run(client)
            assert place.process.wait(20) == 0

    def test_it_stays_while_one_keeper_of_two_does() -> None:
        with supervisor("users", impatient=True) as place, place.connect("k"), place.connect() as client:
            assert place.keeper is not None
            place.keeper.close()
            assert _said(client, "sleep 4; echo there") == "there\n"

    def test_what_an_earlier_supervisor_left_is_removed() -> None:
        with supervisor("users", left_over="old/deep/file") as place:
            assert place.leftovers() == []


@pytest.mark.parametrize(
    ("uid_map", "least", "most"),
    [
        ("0 0 4294967295\n", 1 << 20, (1 << 31) - 1),
        ("0 100000 65536\n", 1000, 65536),
        ("0 1000 1\n1 100000 65536\n", 1000, 65537),
        ("0 0 1000\n1000 500000 70000\n", 1000, 71000),
    ],
    ids=["whole", "rootless", "rootless, two ranges", "high range"],
)
def test_users_are_taken_from_what_the_namespace_has(
    monkeypatch: pytest.MonkeyPatch, uid_map: str, least: int, most: int
) -> None:
    monkeypatch.setattr(users, "_map", lambda kind: uid_map.splitlines())
    for _ in range(20):
        found = users.Users()
        first, count = found.next(), found.size
        assert least <= found.killer < first == found.killer + 1
        assert found.killer + count < most and count >= min(users.USERS, most - least) - 2
        assert found.killer in found and first in found and found.killer + count + 1 not in found


def test_users_are_never_given_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS", 5)
    found = users.Users()
    assert len({found.next() for _ in range(5)}) == 5
    with pytest.raises(Trouble, match="given out"):
        found.next()


def test_a_namespace_of_root_alone_has_no_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_map", lambda kind: ["0 1000 1"])
    with pytest.raises(Trouble, match="no users"):
        users.Users()


def test_two_supervisors_have_different_users() -> None:
    assert len({users.Users().killer for _ in range(5)}) > 1


def test_the_family_of_a_process_are_its_descendants() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 100 & sleep 100 & wait"]) as process:
        try:
            until(lambda: len([member for member in family.members() if member.parent == process.pid]) == 2)
            assert process.pid in {member.pid for member in family.members()}
        finally:
            for member in family.members():
                if member.parent == process.pid:
                    os.kill(member.pid, signal.SIGKILL)
