"""Requests for the reward service that hypothesis makes: of its shapes and beside them."""

from typing import Any

from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["rows", "group", "batch", "settings", "query", "prompts", "labels", "request_id", "slot", "index"]
ROWS = st.dictionaries(
    st.sampled_from(
        ["domain", "id", "prompt", "answer", "response", "mode", "meta", "truncated", "request_id", "tokens"]
    ),
    VALUES | st.sampled_from(["faulty", "grouped", "batchwise", "right", "known-1"]),
    max_size=8,
)
BODIES = st.dictionaries(st.sampled_from(NAMES), VALUES | st.lists(ROWS, max_size=2) | ROWS, max_size=5)
PATHS = st.sampled_from(["/score", "/rewards", "/get_reward", "/slot", "/sample"])
WHOLE = ROWS.map(lambda one: {"rows": [{**one, "domain": "faulty", "response": "right"}]})
REQUESTS = BODIES | WHOLE | VALUES


def check_answer(status: int, told: Any) -> None:
    """An answer or a refusal, and never an internal error."""
    assert status in (200, 404, 409, 422), told
    assert status == 200 or told["error"]
