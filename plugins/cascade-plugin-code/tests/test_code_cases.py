"""The hard cases and the cheats of function calls, one by one, in containers, through the domain as a run uses it."""

import json
from pathlib import Path

import pytest
from cascade_plugin_code.domain import CodeDomain
from cascade_sandbox import SandboxError

from cascade_core import Response, Task
from cascade_core.errors import TaskError

DATA = Path(__file__).parent / "data"
ROWS = [json.loads(line) for line in (DATA / "code_cases.jsonl").read_text().splitlines()]
CHEATS = [json.loads(line) for line in (DATA / "function_call_cheats.jsonl").read_text().splitlines()]
# Debatable rows that our written policy (docs/domains/code.md) decides the other way.
DECIDED = {
    "code-extraction-05": "reject",  # a block that is not closed is no program
    "code-extraction-07": "reject",  # text without a fence is no program
    "code-extraction-27": "reject",  # blocks are not joined
}
NOT_OF_THE_ANSWER = ("response", "reference_extraction", "fault")


def verdict_on(row, address):
    given = row["input"]
    domain = CodeDomain()
    domain.open({"sandbox": "unix:/nowhere/of/ours" if "fault" in given else address})
    task = Task(row["id"], "", {key: value for key, value in given.items() if key not in NOT_OF_THE_ANSWER})
    try:
        score = domain.score(task, Response(given["response"]))
    except (TaskError, SandboxError):
        return "error-clearly"
    finally:
        domain.close()
    assert score.is_judged and score.note
    if isinstance(row["expected"], dict):
        return {"score": score.value}
    return "accept" if score.value == 1.0 else "reject"


def case(row):
    """The row as a parameter; those that use up their time, or sleep, are slow."""
    uses_time = any(sign in row["input"]["response"] for sign in ("while True", "sleep(", "bytearray"))
    return pytest.param(row, id=row["id"], marks=[pytest.mark.slow] if uses_time else [])


@pytest.mark.parametrize("row", [case(row) for row in ROWS])
def test_a_hard_case_gets_its_verdict(docker, row):
    assert verdict_on(row, docker.address) == DECIDED.get(row["id"], row["expected"]), row["why"]
    assert not Path(row.get("must_not_exist", "/nowhere/of/ours")).exists()


def test_only_debatable_rows_are_decided_another_way():
    assert all(row.get("debatable") for row in ROWS if row["id"] in DECIDED)


@pytest.mark.parametrize("bare", [False, True])
def test_text_without_a_complete_block_is_a_program_where_the_option_says_so(docker, bare):
    rows = [row for row in ROWS if row["id"] in ("code-extraction-05", "code-extraction-07")]
    domain = CodeDomain(program="bare" if bare else "fenced")
    domain.open({"sandbox": docker.address})
    for row in rows:
        task = Task(row["id"], "", {key: row["input"][key] for key in ("kind", "tests", "checker")})
        assert domain.score(task, Response(row["input"]["response"])).value == float(bare)
    domain.close()


@pytest.mark.parametrize("kind", ["function", "assert"])
@pytest.mark.parametrize("row", CHEATS, ids=lambda row: row["name"])
def test_a_cheat_fails_and_an_honest_program_after_it_passes(docker, row, kind):
    calls = [{"args": args, "expected": expected} for args, expected in row["tests"]]
    checks = "\n".join(f"assert f(*{args!r}) == {expected!r}" for args, expected in row["tests"])
    answer = {"kind": kind, "entry_point": "f", **({"tests": calls} if kind == "function" else {"test_code": checks})}
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})
    cheat, honest = (
        domain.score(Task("t", "", answer), Response(f"```python\n{source}\n```"))
        for source in (row["program"], "def f(x): return x + 1")
    )
    domain.close()
    assert (cheat.value, honest.value) == (0.0, 1.0), (cheat.note, honest.note)
