"""The extension that goes wrong on request, seen from the command line: it is named with its cause, and harms nobody else."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from faulty import EXTENSION
from strangers import environment


def cascade(wish: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**environment(EXTENSION), "CASCADE_PLUGIN_FAULTY": wish}
    code = "from cascade_core.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def plugins(wish: str) -> dict[str, Any]:
    found = json.loads(cascade(wish, "plugins", "--json").stdout)["plugins"]
    return {plugin["distribution"]: plugin for plugin in found}


def test_it_is_found_when_nothing_is_asked_of_it() -> None:
    assert "CASCADE_PLUGIN_FAULTY" not in os.environ
    assert "tidy" in plugins("")["cascade-plugin-faulty"]["offers"]["domain"]


@pytest.mark.parametrize(
    ("wish", "cause"),
    [
        ("import", "ImportError: it cannot be imported, as it was asked"),
        ("hook", "'cascade_domain' is marked as a hook, and there is none of that name, did you mean"),
    ],
)
def test_an_extension_that_cannot_be_loaded_is_named_and_the_others_work(wish: str, cause: str) -> None:
    found = plugins(wish)
    broken = found.pop("cascade-plugin-faulty")
    assert cause in broken["error"] and not broken["offers"]
    assert found and not any(plugin["error"] for plugin in found.values())
    refused = cascade(wish, "check", "tidy")
    assert refused.returncode == 2 and cause in refused.stderr and "Traceback" not in refused.stderr
    assert cascade(wish, "check", "if", "--tasks", "2").returncode == 0


def test_the_check_of_its_domain_passes_and_fails_as_it_is_asked() -> None:
    assert cascade("", "check", "tidy", "--tasks", "5").returncode == 0
    failed = cascade("", "check", "tidy", "--tasks", "5", "--option", "fault=network", "--json")
    told = {
        finding["check"]: finding["detail"] for finding in json.loads(failed.stdout)["findings"] if not finding["ok"]
    }
    assert failed.returncode == 1 and told == {"a score needs no network": "wants the network: '127.0.0.1'"}
