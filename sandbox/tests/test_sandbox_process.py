"""The process sandbox: it runs what its contract says, from many threads, and leaves nothing, whatever ends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cascade_sandbox import Input, Limits, Program, Sandbox, SandboxError, UnknownLanguage, connect
from cascade_sandbox.process import ProcessSandbox
from supervisors import until

ADD = "print(int(input()) + 1)"
QUICK = Limits(cpu_seconds=2, wall_seconds=30)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with ProcessSandbox(2) as running:
        yield running


def test_every_input_has_its_result_in_order(sandbox: Sandbox) -> None:
    results = sandbox.run(Program(ADD), [Input(b"1\n"), Input(b"x\n"), Input(b"41")])
    assert [result.verdict for result in results] == ["ok", "failed", "ok"]
    assert [result.stdout for result in results] == [b"2\n", b"", b"42\n"]
    assert "ValueError" in results[1].stderr and results[1].exit_code == 1


def test_it_is_reached_by_its_address() -> None:
    with connect("process:") as sandbox:
        assert sandbox.name == "process"
        assert sandbox.run(Program("print(1)"), [Input()])[0].stdout == b"1\n"


@pytest.mark.parametrize(
    ("source", "stdout"),
    [
        (b"print(1)\r\nprint(2)\r\n", b"1\n2\n"),
        (b"print(1)", b"1\n"),
        ("print('é')", "é\n".encode()),
        (b"\xef\xbb\xbfprint(1)\n", b"1\n"),
        (b"# coding: latin-1\nprint(ord('\xe9'))\n", b"233\n"),
        (b"x = [\n" + b"    1,\n" * 750_000 + b"]\nprint(len(x))\n", b"750000\n"),
        (b"", b""),
    ],
    ids=["windows line ends", "no final newline", "accents", "byte order mark", "latin-1", "5 MB", "empty"],
)
def test_sources_of_all_kinds_run(sandbox: Sandbox, source: str | bytes, stdout: bytes) -> None:
    (result,) = sandbox.run(Program(source), [Input()], Limits(cpu_seconds=20, memory_bytes=2 << 30))
    assert (result.verdict, result.stdout) == ("ok", stdout)


@pytest.mark.parametrize("source", [b"\0" * 10, b"print(1)\0", b"print(1)\n\0\0"])
def test_a_source_with_null_bytes_gets_the_verdict_of_its_interpreter(sandbox: Sandbox, source: bytes) -> None:
    assert sandbox.run(Program(source), [Input()])[0].verdict in ("ok", "failed")  # by the version of Python


@pytest.mark.parametrize("source", [b"print(1)\n\xff\xfe", "print(1)\n\ud800'"])
def test_sources_that_are_no_program_have_failed(sandbox: Sandbox, source: str | bytes) -> None:
    assert sandbox.run(Program(source), [Input()])[0].verdict == "failed"


def test_output_that_is_no_text_comes_back_as_it_was(sandbox: Sandbox) -> None:
    source = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stderr.buffer.write(b'\\xff')"
    (result,) = sandbox.run(Program(source), [Input(bytes(range(256)))])
    assert result.stdout == bytes(range(256)) and result.stderr == "�"


def test_files_of_the_program_are_modules_and_those_of_an_input_are_not(sandbox: Sandbox) -> None:
    program = Program(
        "import helper; print(helper.x, open('data').read(), open('helper.py').read())", files={"helper.py": b"x = 7"}
    )
    assert sandbox.run(program, [Input(files={"data": b"D"})])[0].stdout == b"7 D x = 7\n"
    planted = Program("import random; print(random.random() < 1)")
    assert sandbox.run(planted, [Input(files={"random.py": b"raise SystemExit(3)"})])[0].stdout == b"True\n"


def test_nothing_of_a_run_reaches_the_next(sandbox: Sandbox) -> None:
    source = "import os; print(os.listdir('.')); open('json.py', 'w').write('x'); os.mkdir('d')"
    results = sandbox.run(Program(source), [Input(), Input()])
    assert [result.stdout for result in results] == [b"[]\n", b"[]\n"]


def test_the_environment_of_the_caller_stays_outside(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    with ProcessSandbox(1, check=False) as fresh:
        (result,) = fresh.run(Program("import os; print('SECRET_TOKEN' in os.environ)"), [Input()])
    assert result.stdout == b"False\n"


def test_a_loop_a_sleep_and_a_flood_have_their_verdicts(sandbox: Sandbox) -> None:
    limits = Limits(cpu_seconds=0.5, wall_seconds=1, output_bytes=1000)
    sources = ["while 1: pass", "import time; time.sleep(100)", "while 1: print('x' * 100)"]
    results = [sandbox.run(Program(source), [Input()], limits)[0] for source in sources]
    assert [result.verdict for result in results] == ["timeout", "timeout", "output"]
    assert all(result.is_limit for result in results) and len(results[2].stdout) == 1000


def test_two_programs_converse(sandbox: Sandbox) -> None:
    judged = Program("import sys\nfor line in sys.stdin: print(int(line) * 2, flush=True)")
    private = Program(
        "x = 1\nfor _ in range(5):\n    print(x, flush=True)\n    x = int(input())\nimport sys\nsys.exit(x)"
    )
    dialogue = sandbox.converse(judged, private, QUICK)
    assert (dialogue.left.verdict, dialogue.left.stdout) == ("ok", b"2\n4\n8\n16\n32\n")
    assert (dialogue.right.exit_code, dialogue.right.stdout) == (32, b"1\n2\n4\n8\n16\n")


def test_two_programs_that_wait_for_each_other_end_by_the_clock(sandbox: Sandbox) -> None:
    started = time.monotonic()
    dialogue = sandbox.converse(Program("input()"), Program("input()"), Limits(cpu_seconds=1, wall_seconds=0.5))
    assert "timeout" in (dialogue.left.verdict, dialogue.right.verdict)
    assert time.monotonic() - started < 20


def test_many_threads_share_two_places(sandbox: Sandbox) -> None:
    said: dict[int, bytes] = {}

    def one(number: int) -> None:
        said[number] = sandbox.run(Program(ADD), [Input(b"%d" % number)])[0].stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: b"%d\n" % (number + 1) for number in range(12)}


def test_judged_and_private_programs_have_supervisors_of_their_own(sandbox: Sandbox) -> None:
    parent = Program("import os; print(os.getppid())")
    with sandbox.open(parent) as judged, sandbox.open(parent, private=True) as private:
        assert judged.run().stdout != private.run().stdout


def test_a_program_that_kills_its_supervisor_is_no_verdict_and_the_next_one_runs(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError):
        sandbox.run(Program("import os, signal; os.kill(os.getppid(), signal.SIGKILL)"), [Input()])
    for _ in range(3):
        assert sandbox.run(Program(ADD), [Input(b"1")])[0].stdout == b"2\n"


def test_cpp_is_offered_exactly_where_there_is_a_compiler(sandbox: Sandbox) -> None:
    program = Program("#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x + 1; }", "c++17")
    if shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin"):
        assert sandbox.run(program, [Input(b"1"), Input(b"2")])[1].stdout == b"3"
        with sandbox.open(Program("int main( {", "c++17")) as broken:
            assert broken.compiled is not None and broken.compiled.verdict == "compile_error"
            assert "error" in broken.compiled.stderr and broken.run().verdict == "compile_error"
    else:
        with pytest.raises(UnknownLanguage, match="g\\+\\+"):
            sandbox.open(program)


def test_a_language_that_nobody_knows_is_said_so(sandbox: Sandbox) -> None:
    with pytest.raises(UnknownLanguage, match="cobol"):
        sandbox.open(Program("", "cobol"))


def test_a_closed_sandbox_runs_nothing_and_closing_twice_is_fine() -> None:
    sandbox = ProcessSandbox(1, check=False)
    session = sandbox.open(Program(ADD))
    session.close()
    session.close()
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.open(Program(ADD))
    with pytest.raises(SandboxError, match="closed"):
        session.run()


@pytest.mark.parametrize("slots", [0, -1])
def test_without_a_place_there_is_no_sandbox(slots: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        ProcessSandbox(slots)


@pytest.mark.parametrize("ending", ["close", "kill"])
def test_nothing_is_left_when_it_ends(ending: str) -> None:
    program = (
        "import sys, threading, time\n"
        "from cascade_sandbox import Input, Program\n"
        "from cascade_sandbox.process import ProcessSandbox\n"
        "sandbox = ProcessSandbox(1, check=False)\n"
        'where = \'import os, time; open("here", "w"); time.sleep({})\'\n'
        "print(sandbox.run(Program('import os; print(os.getppid(), os.getcwd())'), [Input()])[0].stdout.decode(), flush=True)\n"
        "if sys.argv[1] == 'close': sandbox.close()\n"
        "else: sandbox.run(Program('import time; time.sleep(1000)'), [Input()])\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {**os.environ, "TMPDIR": folder, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(
            [sys.executable, "-c", program, ending], stdout=subprocess.PIPE, env=environment, text=True
        ) as process:
            assert process.stdout is not None
            helper, working_folder = process.stdout.readline().split()
            assert working_folder.startswith(folder)
            if ending == "kill":
                children = Path(f"/proc/{helper}/task/{helper}/children")
                until(lambda: children.read_text() != "")
                process.send_signal(signal.SIGKILL)
        until(lambda: not Path(f"/proc/{helper}").exists())
        until(lambda: not list(Path(folder).iterdir()))
