"""Tasks as other domains have them: what `cascade check` tries on a domain that says `judges_any`.

Labels, metadata and conversations are of shapes that domains of this project and of others use, and one has nothing but
a prompt. None of them is a task of the domain that is examined, and no verdict on them is right or wrong.
"""

from __future__ import annotations

from cascade_core.domain import Task

STRANGE: tuple[Task, ...] = (
    Task("a task without a label", "Name a river."),
    Task("a task with a text for a label", "What is 2 + 2?", "4", mode="think", source="sums"),
    Task("a task with a number for a label", "What is 2 + 2?", 4),
    Task(
        "a task with a list of instructions",
        "Answer in capitals.",
        [{"id": "change_case:english_capital", "kwargs": {}}],
        mode="no_think",
    ),
    Task(
        "a task with tests",
        [
            {"role": "system", "content": "You write Python."},
            {"role": "user", "content": "Read two numbers, print their sum."},
            {"role": "assistant", "content": "In one line?"},
            {"role": "user", "content": "Yes."},
        ],
        {"tests": [{"stdin": "1 2\n", "stdout": "3\n"}], "reference": "print(sum(map(int, input().split())))"},
        meta={"limits": {"seconds": 2}, "level": None},
    ),
)
"""Each is named by what is strange about it."""
