"""What a scorer sees of the Docker sandbox: results, one retry in another container, and errors that are never verdicts."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fake_pool as fake
import pytest
from cascade_sandbox import Input, Limits, Program, SandboxError, UnknownLanguage, connect, docker_sandbox
from cascade_sandbox.client import DockerSandbox

ECHO = Program("import sys\nsys.stdout.write(sys.stdin.read())")
HELLO = Program("print('hello')")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


def test_what_a_supervisor_says_becomes_a_result(folder: Path) -> None:
    with fake.fake_pool(folder, fake.HONEST) as pool, pool.sandbox.open(HELLO) as session:
        result = session.run()
        assert (result.verdict, result.stdout, result.stderr, result.cpu_seconds) == ("ok", b"out", "err", 0.1)
        assert session.run().stdout == b"again"


def test_a_place_comes_back_with_the_number_of_its_runs(folder: Path) -> None:
    with fake.fake_pool(folder, fake.HONEST) as pool:
        pool.sandbox.run(HELLO, [Input(), Input()])
        assert pool.returned(1) == [{"op": "return", "broken": False, "reason": "", "runs": 2}]


def test_a_supervisor_that_dies_in_a_run_is_replaced_and_the_run_repeated(folder: Path) -> None:
    dies = fake.answer((fake.READY, []))
    with fake.fake_pool(folder, dies, fake.HONEST) as pool:
        assert pool.sandbox.run(HELLO, [Input()])[0].stdout == b"out"
        assert [header["broken"] for header in pool.returned(2)] == [True, False]


def test_the_second_failure_is_an_error_that_tells_both(folder: Path) -> None:
    says = fake.answer(({"op": "error", "reason": "no room"}, []))
    with fake.fake_pool(folder, fake.garbage(b""), says, fake.HONEST) as pool:
        with pytest.raises(
            SandboxError, match=r"in 2 containers: the connection broke.*; then its supervisor says: no room"
        ):
            pool.sandbox.run(HELLO, [Input()])
        assert [header["broken"] for header in pool.returned(2)] == [True, True]


def test_a_pool_without_a_living_container_is_an_error(folder: Path) -> None:
    with fake.fake_pool(folder) as pool, pytest.raises(SandboxError, match="no container has been alive"):
        pool.sandbox.open(HELLO).run()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\x02{}",
        b"\0\0\0\x05hello",
        b"\0\0\0\x14" + b'{"blobs":[300000000]}'[:20],
        b"\0\0\0\x0d" + b'{"blobs":[9]}' + b"short",
        b"",
    ],
)
def test_bytes_that_are_no_frame_are_a_failure_of_the_container(folder: Path, data: bytes) -> None:
    with fake.fake_pool(folder, fake.garbage(data), fake.garbage(data)) as pool, pytest.raises(SandboxError):
        pool.sandbox.open(HELLO).run()


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "correct"},
        {"verdict": None},
        {"exit_code": "0"},
        {"exit_code": True},
        {"cpu_seconds": -1},
        {"cpu_seconds": "nan"},
        {"peak_bytes": 1e300},
        {"wall_seconds": None},
        {"op": "ready"},
        {"op": 7},
    ],
    ids=json.dumps,
)
def test_a_result_that_is_none_never_becomes_a_verdict(folder: Path, change: dict) -> None:
    forged = fake.answer((fake.READY, []), ({**fake.RESULT, **change}, [b"", b""]))
    with fake.fake_pool(folder, forged, forged) as pool, pytest.raises(SandboxError):
        pool.sandbox.run(HELLO, [Input()])


def test_a_result_without_its_blobs_never_becomes_a_verdict(folder: Path) -> None:
    forged = fake.answer((fake.READY, []), (fake.RESULT, [b""]))
    with fake.fake_pool(folder, forged, forged) as pool, pytest.raises(SandboxError):
        pool.sandbox.run(HELLO, [Input()])


def test_a_program_that_does_not_compile_gives_its_place_back_at_once(folder: Path) -> None:
    compiled = {**fake.RESULT, "verdict": "compile_error", "exit_code": 1}
    refused = fake.answer(({"op": "ready", "compiled": compiled}, [b"", b"no such name"]))
    with fake.fake_pool(folder, refused) as pool, pool.sandbox.open(Program("", "c++17")) as session:
        assert len(pool.returned(1)) == 1
        assert session.compiled is not None and session.compiled.stderr == "no such name"
        assert [session.run().verdict for _ in range(3)] == ["compile_error"] * 3


def test_an_input_that_no_frame_can_carry_is_an_error_and_breaks_no_container(folder: Path) -> None:
    with fake.fake_pool(folder, fake.HONEST) as pool:
        with pool.sandbox.open(HELLO) as session, pytest.raises(SandboxError, match="cannot be sent"):
            session.run(Input(args=["x" * (2 << 20)]))
        assert [header["broken"] for header in pool.returned(1)] == [False]


def test_an_unknown_language_is_told_with_the_known_ones(folder: Path) -> None:
    with fake.fake_pool(folder) as pool, pytest.raises(UnknownLanguage, match="no language 'cobol', only python, "):
        pool.sandbox.open(Program("", "cobol"))


def test_a_closed_session_runs_nothing(folder: Path) -> None:
    with fake.fake_pool(folder, fake.HONEST) as pool:
        session = pool.sandbox.open(HELLO)
        session.close()
        session.close()
        with pytest.raises(SandboxError, match="closed"):
            session.run()


def test_nobody_behind_an_address_is_an_error() -> None:
    with pytest.raises(SandboxError, match="no sandbox answers at unix:/tmp/nobody"):
        connect("unix:/tmp/nobody").open(HELLO)


@pytest.mark.parametrize("address", ["", "docker", "unix:relative", "tcp://host:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SandboxError, match="no address of a sandbox"):
        connect(address)


@pytest.mark.parametrize(
    "option", [{"slots": 0}, {"slots": True}, {"memory_mb": 1}, {"work_mb": 0}, {"recycle_after": 0}]
)
def test_options_out_of_range_are_refused_before_anything_starts(option: dict) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least"):
        docker_sandbox(**option)


def test_without_an_engine_the_error_says_so() -> None:
    with pytest.raises(SandboxError, match=r"engine at unix:///tmp/nobody\.sock"):
        docker_sandbox(engine="unix:///tmp/nobody.sock")


def test_a_missing_image_is_told_with_the_way_to_make_it_and_never_pulled(pool: DockerSandbox) -> None:
    with pytest.raises(
        SandboxError, match=r"busybox:latest is missing here, and is never pulled; cascade sandbox build"
    ):
        docker_sandbox(image="busybox:latest")


def test_every_input_gets_its_own_result_in_order(pool: DockerSandbox) -> None:
    results = pool.run(ECHO, [Input(str(number).encode()) for number in range(5)])
    assert [result.stdout for result in results] == [b"0", b"1", b"2", b"3", b"4"]


def test_arguments_and_files_arrive(pool: DockerSandbox) -> None:
    program = Program("import sys\nprint(sys.argv[1:], open('a').read(), open('b').read())", files={"a": b"one"})
    with pool.open(program) as session:
        assert session.run(Input(args=["x", "y z"], files={"b": b"two"})).stdout == b"['x', 'y z'] one two\n"


def test_the_locale_of_a_run_is_there(pool: DockerSandbox) -> None:
    program = Program("import locale\nprint(locale.setlocale(locale.LC_ALL, ''), locale.getencoding(), 'é')")
    assert pool.run(program, [Input()])[0].stdout.decode() == "C.UTF-8 UTF-8 é\n"


def test_every_client_of_one_address_reaches_the_same_pool(pool: DockerSandbox) -> None:
    assert connect(pool.address).run(HELLO, [Input()])[0].stdout == b"hello\n"


def test_judged_and_private_programs_never_share_a_container(pool: DockerSandbox) -> None:
    where = Program("import socket\nprint(socket.gethostname())")
    hosts: dict[bool, set[bytes]] = {}
    for private in (False, True):
        sessions = [pool.open(where, private=private) for _ in range(2)]
        hosts[private] = {session.run().stdout for session in sessions}
        for session in sessions:
            session.close()
    assert len(hosts[False]) == len(hosts[True]) == 2
    assert not hosts[False] & hosts[True]


def test_two_programs_talk_to_each_other(pool: DockerSandbox) -> None:
    asks = Program("for x in range(3):\n    print(x, flush=True)\n    assert input() == str(x * x)\nprint('thanks')")
    answers = Program(
        "import sys\nfor line in sys.stdin:\n    if line[0].isdigit():\n        print(int(line) ** 2, flush=True)"
    )
    ended = pool.converse(asks, answers)
    assert (ended.left.verdict, ended.left.stdout) == ("ok", b"0\n1\n2\nthanks\n")
    assert (ended.right.verdict, ended.right.stdout) == ("ok", b"0\n1\n4\n")


def test_in_a_conversation_megabytes_pass_without_a_jam(pool: DockerSandbox) -> None:
    pours = Program(
        "import sys\nsys.stdout.write('x' * 3_000_000)\nsys.stdout.flush()\nassert len(sys.stdin.read(3_000_000)) == 3_000_000"
    )
    ended = pool.converse(pours, pours)
    assert [side.verdict for side in (ended.left, ended.right)] == ["ok", "ok"]
    assert len(ended.left.stdout) == len(ended.right.stdout) == 3_000_000


def test_one_that_ends_early_ends_the_input_of_the_other(pool: DockerSandbox) -> None:
    ended = pool.converse(Program("raise SystemExit(3)"), Program("import sys\nprint(list(sys.stdin))"))
    assert (ended.left.verdict, ended.left.exit_code) == ("failed", 3)
    assert ended.right.stdout == b"[]\n"


def test_two_that_wait_for_each_other_run_out_of_time(pool: DockerSandbox) -> None:
    ended = pool.converse(Program("input()"), Program("input()"), Limits(cpu_seconds=0.5, wall_seconds=0.5))
    assert "timeout" in (ended.left.verdict, ended.right.verdict)
    assert "ok" not in (ended.left.verdict, ended.right.verdict)


def test_a_judged_program_that_does_not_compile_leaves_the_other_an_empty_input(pool: DockerSandbox) -> None:
    if "c++17" not in pool.languages():
        assert pool.languages() == ["python"]
        return
    ended = pool.converse(Program("no", "c++17"), Program("import sys\nprint(list(sys.stdin))"))
    assert (ended.left.verdict, ended.right.stdout) == ("compile_error", b"[]\n")
