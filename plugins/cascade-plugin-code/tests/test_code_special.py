"""A special judge in another language than the program's, where there is one place only."""

from concurrent.futures import ThreadPoolExecutor

from cascade_plugin_code import exam
from cascade_plugin_code.judging import verdicts
from cascade_sandbox.client import docker_sandbox
from cascade_sandbox.testing import require_engine

ODD = """
#include <fstream>
int main(int count, char** names) { std::ifstream output(names[2]); int found; return output >> found && found % 2 ? 0 : 1; }
"""


def test_a_judge_in_another_language_does_not_wait_for_the_place_of_the_program():
    require_engine("cpp")
    checker = {"type": "program", "source": ODD, "language": "c++17"}
    asked = exam.read({"kind": "stdin", "tests": [{"stdin": "", "stdout": ""}], "checker": checker})
    sandbox = docker_sandbox(slots=1)
    with ThreadPoolExecutor(1) as thread:
        found = [thread.submit(list, verdicts(sandbox, asked, f"print({number})")) for number in (5, 4)]
        try:
            assert [[one.passed for one in each.result(timeout=90)] for each in found] == [[True], [False]]
        finally:
            sandbox.close()  # ends a session that still waits
