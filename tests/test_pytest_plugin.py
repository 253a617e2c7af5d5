"""The pytest plugin: the fixture checks a domain in one call, and costs a run that does not use it next to nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from strangers import environment, publish

from cascade_core.plugins import registry

__all__ = ["publish"]

OWN = ("domain", "errors", "hookspecs", "pytest_plugin", "resource", "secret", "tracker")
TOY = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, Task, hookimpl

    @dataclass
    class Toy(Domain):
        name = "toy"
        lenient: bool = False
        def tasks(self, split, seed): return [Task(f"{split}-{n}", f"{split} {n}", str(n)) for n in range(5)]
        def score(self, task, response): return Score(float(self.lenient or response.answer == task.answer))
        def reference(self, task): return task.answer

    @hookimpl
    def cascade_domains(): return [Toy]
"""
TEST = """
def test_as_it_is(check_domain):
    assert all(finding.ok for finding in check_domain("toy", tasks=5))

def test_with_options(check_domain):
    check_domain("toy", {"lenient": True}, tasks=5)
"""


def test_a_domain_passes_and_a_breach_fails_with_the_check_that_found_it(publish, tmp_path: Path) -> None:
    site = publish("cascade-plugin-toy", TOY)
    (tmp_path / "test_toy.py").write_text(TEST)
    run = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_toy.py"]
    done = subprocess.run(run, env=environment(site), capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "hostile answers are judged, and not right: an empty answer scores 1.0 for 10 of 10 tasks" in done.stdout
    assert "examination.py" not in done.stdout


def test_a_domain_that_is_built_is_checked_and_takes_no_options(check_domain) -> None:
    built = registry().build(registry().reference("if"))
    assert all(finding.ok for finding in check_domain(built, tasks=2))
    with pytest.raises(TypeError, match="options go with the name of a domain"):
        check_domain(built, {"length": 8})


def test_a_run_that_does_not_use_the_fixture_loads_nothing_for_it() -> None:
    code = (
        "import sys, pytest, pluggy; before = set(sys.modules); import cascade_core.pytest_plugin;"
        "print(*{name for name in set(sys.modules) - before if name.partition('.')[0] not in sys.stdlib_module_names})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"cascade_core", *(f"cascade_core.{name}" for name in OWN)}
    assert set(done.stdout.split()) <= own


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    run = [sys.executable, "-m", "pytest", "--fixtures", "-p", "no:cacheprovider", "--collect-only", __file__]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "check_domain [session scope]" in done.stdout and "Checks a domain of cascade-rl" in done.stdout
