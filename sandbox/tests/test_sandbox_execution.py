"""One run of a program: its verdict, what it said, and that nothing of it is left. For both kinds of supervisor."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox.inside import folder
from supervisors import INSIDE, KINDS, PYTHON, SHELL, Supervisor, open_program, run, supervisor

Run = Callable[..., Any]
LIBC_SIGNALS = 1 << 31 | 1 << 32
"""32 and 33: the C library keeps them to itself, lets nobody set them, and leaves them ignored in what `posix_spawn` starts."""


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    with supervisor(request.param) as running:
        yield running


@pytest.fixture
def go(place: Supervisor) -> Iterator[Run]:
    """Runs a shell script; afterwards nothing of it may be left but its program, until the client hangs up."""
    with place.connect() as client:

        def once(
            source: str, *, language: dict[str, Any] = SHELL, given: dict[str, Any] | None = None, **limits: Any
        ) -> Any:
            assert open_program(client, source.encode(), language, **limits)["op"] == "ready"
            result = run(client, **(given or {}))
            assert len(place.leftovers()) == 1, "something of the run is left"
            return result

        yield once


@pytest.mark.parametrize(
    ("source", "verdict", "exit_code"),
    [
        ("exit 0", "ok", 0),
        ("exit 3", "failed", 3),
        ("exit 125", "failed", 125),
        ("kill -SEGV $$", "failed", -signal.SIGSEGV),
    ],
)
def test_how_a_program_ends_is_its_verdict(go: Run, source: str, verdict: str, exit_code: int) -> None:
    result = go(source)
    assert (result["verdict"], result["exit_code"]) == (verdict, exit_code)


def test_a_program_reads_its_input_and_says_what_it_says(go: Run) -> None:
    result = go("read x; echo $((x + 1)) $1; echo why >&2", given={"stdin": b"41\n", "args": ["a b"]})
    assert (result["stdout"], result["stderr"]) == (b"42 a b\n", b"why\n")


def test_a_program_may_open_its_standard_streams_by_name(go: Run) -> None:
    result = go("cat /dev/stdin > /dev/stdout; echo why > /dev/stderr", given={"stdin": b"41\n"})
    assert (result["verdict"], result["stdout"], result["stderr"]) == ("ok", b"41\n", b"why\n")


def test_an_empty_input_is_at_its_end(go: Run) -> None:
    assert go("read x || echo end")["stdout"] == b"end\n"


def test_an_input_that_nobody_reads_blocks_nobody(go: Run) -> None:
    assert go("echo done", given={"stdin": b"x" * (8 << 20)})["stdout"] == b"done\n"


def test_a_large_input_comes_back_whole(go: Run) -> None:
    data = os.urandom(3 << 20)
    assert go("cat", given={"stdin": data}, output_bytes=4 << 20)["stdout"] == data


def test_cpu_time_decides_and_ends_a_loop(go: Run) -> None:
    result = go("while :; do :; done", cpu_seconds=0.5)
    assert result["verdict"] == "timeout"
    assert 0.5 <= result["cpu_seconds"] < 1.8


def test_cpu_time_of_children_that_were_waited_for_counts(go: Run) -> None:
    loop = "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done"
    result = go(f"({loop}); ({loop}); ({loop}); exit 0", cpu_seconds=0.3)
    assert result["verdict"] == "timeout"


def test_sleep_ends_by_the_clock(go: Run) -> None:
    result = go("sleep 1000", wall_seconds=0.5)
    assert result["verdict"] == "timeout" and result["cpu_seconds"] < 0.5


def test_what_was_said_before_the_time_was_up_is_there(go: Run) -> None:
    result = go("echo 2; exec >&- 2>&-; sleep 1000", wall_seconds=1.5)
    assert (result["verdict"], result["stdout"]) == ("timeout", b"2\n")


def test_endless_output_is_cut_at_its_limit(go: Run) -> None:
    result = go("yes", output_bytes=100_000)
    assert (result["verdict"], len(result["stdout"])) == ("output", 100_000)


def test_output_of_exactly_the_limit_is_no_offence(go: Run) -> None:
    result = go("head -c 100000 /dev/zero", output_bytes=100_000)
    assert (result["verdict"], len(result["stdout"])) == ("ok", 100_000)


def test_one_byte_more_is(go: Run) -> None:
    assert go("head -c 100001 /dev/zero", output_bytes=100_000)["verdict"] == "output"


def test_of_the_errors_the_end_is_kept(go: Run) -> None:
    stderr = go("head -c 300000 /dev/zero >&2; echo last >&2")["stderr"]
    assert stderr == bytes(4091) + b"last\n"


def test_who_still_holds_the_pipe_is_not_waited_for(go: Run) -> None:
    result = go("sleep 1000 & echo $!")
    assert result["verdict"] == "ok" and result["wall_seconds"] < 15
    assert not Path(f"/proc/{int(result['stdout'])}").exists()


def test_a_daemon_does_not_outlive_the_run(go: Run) -> None:
    result = go("(setsid sh -c 'echo $$; : > there; exec sleep 1000' &); until [ -e there ]; do sleep 0.02; done")
    assert not Path(f"/proc/{int(result['stdout'])}").exists()


def test_zombies_are_reaped(go: Run) -> None:
    assert go("for i in 1 2 3 4 5 6 7 8; do (sleep 0 &); done; echo end")["stdout"] == b"end\n"


def test_a_program_that_is_stopped_is_ended_by_the_clock(go: Run) -> None:
    assert go("kill -STOP $$", wall_seconds=0.5)["verdict"] == "timeout"


def test_a_run_has_an_environment_of_its_own(go: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {line.partition("=")[0] for line in go("env")["stdout"].decode().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "TMPDIR",
    }  # fmt: skip


def test_a_run_inherits_no_descriptor_and_no_ignored_signal(go: Run) -> None:
    result = go("ls /proc/self/fd; grep -E 'SigIgn|SigBlk' /proc/self/status")
    *shown, ignored = result["stdout"].decode().split()
    assert shown == ["0", "1", "2", "3", "SigBlk:", "0" * 16, "SigIgn:"]
    assert int(ignored, 16) & ~LIBC_SIGNALS == 0


def test_a_run_cannot_gain_anything(go: Run) -> None:
    status = go("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status")["stdout"].split()
    assert status == [b"NoNewPrivs:", b"1", b"Seccomp:", b"2"]


def test_limits_are_set(go: Run) -> None:
    said = go("ulimit -c; ulimit -n; ulimit -v; cat /proc/self/oom_score_adj; grep queue /proc/self/limits")[
        "stdout"
    ].decode()
    assert said.split()[:4] == ["0", "256", str(1 << 20), "1000"]
    assert said.splitlines()[-1].split()[-3:] == ["0", "0", "bytes"]


def test_a_program_that_cannot_have_memory_for_itself_gets_a_verdict(go: Run) -> None:
    assert go("echo never", memory_bytes=1 << 16)["verdict"] in ("memory", "failed")


def test_files_lie_in_the_folder_and_do_not_reach_the_next_run(place: Supervisor) -> None:
    with place.connect() as client:
        open_program(client, b"ls; cat data extra; echo hidden > planted; cat data", files={"extra": b"E"})
        first = run(client, files={"data": b"D"})
        assert first["stdout"] == b"data\nextra\nDED"
        assert run(client, files={"data": b"X"})["stdout"] == b"data\nextra\nXEX"


def test_the_program_cannot_be_changed_by_a_run_of_it(place: Supervisor) -> None:
    with place.connect() as client:
        open_program(client, b'cat "$0" | wc -c; (echo "echo other" > "$0") 2>/dev/null')
        said = [run(client)["stdout"] for _ in range(2)]
    assert said[0] == said[1] or place.kind == "here"  # without a user of its own the file is the program's own


def test_nothing_is_left_of_deep_folders() -> None:
    with tempfile.TemporaryDirectory(dir=next(filter(os.path.isdir, ("/dev/shm", "/tmp")))) as place:
        _remove_deep(Path(place))


def _remove_deep(tmp_path: Path) -> None:
    top = tmp_path / "top"
    program = "import os\nos.mkdir('top'); os.chdir('top')\nfor i in range(3000):\n  os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    folder.remove(str(top))
    assert not top.exists()


def test_removal_leaves_alone_what_links_point_to(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "link").symlink_to(outside)
    (top / "a" / "b" / "\udcff\n").write_text("x")
    (top / "closed").mkdir(mode=0)
    folder.remove(str(top))
    folder.remove(str(top))  # gone already
    assert not top.exists() and (outside / "precious").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "n" * 256, 3, None])
def test_only_plain_names_are_files(name: object) -> None:
    with pytest.raises(folder.Trouble, match="name"):
        folder.check_name(name)


def test_a_program_cannot_buy_time_by_competing_with_itself() -> None:
    source = "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; while :; do :; done"
    with supervisor("here", prefix=_on_one_core()) as place, place.connect() as client:
        open_program(client, source.encode(), cpu_seconds=1, wall_seconds=1)
        result = run(client)
        assert len(place.leftovers()) == 1
    assert result["verdict"] == "timeout" and result["cpu_seconds"] < 1


def _on_one_core() -> list[str]:
    """In front of a command: it and what it starts share one core."""
    core = min(os.sched_getaffinity(0))
    program = f"import os, sys; os.sched_setaffinity(0, {{{core}}}); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", program]


def _spinning(prefix: list[str]) -> subprocess.Popen[bytes]:
    """A process that is busy by now, in a session of its own: the kernel may share a core out by sessions (autogroup)."""
    code = "import os; os.write(1, b'!')\nwhile 1: pass"
    command = [*prefix, sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.read(1) == b"!"
    return process


def test_a_busy_machine_does_not_change_the_verdict() -> None:
    """One core for five: the program needs 0.8 seconds of CPU, gets them in about 4, and may take 1.6 of its own."""
    prefix = _on_one_core()
    others = [_spinning(prefix) for _ in range(4)]
    source = b"import time\nwhile time.process_time() < 0.8: pass"
    try:
        with supervisor("here", prefix=prefix) as place, place.connect() as client:
            open_program(client, source, PYTHON, cpu_seconds=5, wall_seconds=1.6)
            started = time.monotonic()
            result = run(client)
            assert result["verdict"] == "ok", result
            assert time.monotonic() - started > 1.6  # it did have to wait
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_python_runs_out_of_memory_with_that_verdict() -> None:
    with supervisor("here") as place, place.connect() as client:
        open_program(client, b"x = []\nwhile 1: x.append(bytearray(10 << 20))", PYTHON, memory_bytes=300 << 20)
        result = run(client)
    assert result["verdict"] == "memory" and 100 << 20 < result["peak_bytes"] < 320 << 20


def test_the_supervisor_is_written_in_python_3_9() -> None:
    for path in INSIDE.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
