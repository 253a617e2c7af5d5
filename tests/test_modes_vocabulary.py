"""The golden prompts of all modes with Qwen's own vocabulary: the same words, and the very tokens that Qwen3 and R1's distillates were trained on."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_vocabulary import R1 as R1_ADDED
from qwen_vocabulary import core, merges, ranks, tokenizer
from test_modes import CASCADE, GOLDEN, HISTORY, HOSTILE, NANO, QWEN, R1, row, written

from cascade_core.template import read

pytestmark = pytest.mark.drill
MERGES = 151_387  # lines of the merges.txt that Qwen publishes beside its models

# Numbers of `<|im_start|>`, `<|im_end|>`, the line ends, `<think>` and `</think>`, of the roles, and of what is said.
START, END, LINE, LINES, OPEN, CLOSE = 151644, 151645, 198, 271, 151667, 151668
SYSTEM, USER, ASSISTANT = 8948, 872, 77091
SAID, MANNERS = [603, 323, 825, 30], [2610, 525, 264, 10950, 323, 52897, 17847, 13]
THINK, NO_THINK = [608, 26865], [608, 2152, 5854, 766]


def turn(*text: int) -> list[int]:
    return [START, USER, LINE, *SAID, *text, END, LINE, START, ASSISTANT, LINE]


MANNERLY = [START, SYSTEM, LINE, *MANNERS, END, LINE]
TOKENS = [
    (CASCADE, "flags", "think", [*MANNERLY, *turn(*THINK)]),
    (CASCADE, "flags", "no_think", [*MANNERLY, *turn(*NO_THINK)]),
    (CASCADE, "prefill", "no_think", [*MANNERLY, *turn(), OPEN, CLOSE]),
    (CASCADE, "none", "no_think", [*MANNERLY, *turn()]),
    (QWEN, "switch", "think", turn()),
    (QWEN, "switch", "no_think", [*turn(), OPEN, LINES, CLOSE, LINES]),
    (QWEN, "flags", "no_think", turn(*NO_THINK)),
    (NANO, "prefill", "think", [START, SYSTEM, LINE, END, LINE, *turn(), OPEN, LINE]),
    (R1, "switch", "think", [151646, 151644, *SAID, 151645, 151648, LINE]),
    (R1, "flags", "no_think", [151646, 151644, *SAID, *NO_THINK, 151645]),
    (R1, "prefill", "no_think", [151646, 151644, *SAID, 151645, 151648, 151649]),
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, int]:
    return ranks(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def tokenizers(vocabulary: dict[bytes, int]) -> dict[str | None, Any]:
    """One for each chat template."""
    made = core(vocabulary)
    return {chat: tokenizer(made, chat, r1=chat == R1) for chat in (CASCADE, QWEN, NANO, R1, None)}


def test_the_vocabulary_is_qwens(vocabulary: dict[bytes, int], tokenizers: dict[str | None, Any]) -> None:
    assert len(merges(vocabulary)) == MERGES
    assert tokenizers[QWEN].convert_tokens_to_ids(["<|endoftext|>", "<|im_end|>", "</think>"]) == [
        151643,
        151645,
        151668,
    ]
    assert tokenizers[R1].convert_tokens_to_ids(R1_ADDED) == list(range(151643, 151650))
    assert tokenizers[None]("You are a helpful assistant.")["input_ids"] == [2610, 525, 264, 10950, 17847, 13]


@pytest.mark.parametrize(("chat", "modes", "mode", "text", "prefill"), GOLDEN)
def test_a_prompt_is_word_for_word_what_its_mode_asks_for(
    chat: str | None, modes: str, mode: str, text: str, prefill: str, tokenizers: dict[str | None, Any]
) -> None:
    made = tokenizers[chat]
    found = read(made, row("one and one?", mode), modes)
    assert (found.text, found.prefill) == (text, prefill)
    assert made.decode(found.ids) == text
    assert found.ids == made(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(("chat", "modes", "mode", "ids"), TOKENS)
def test_a_prompt_is_token_for_token_what_the_model_was_trained_on(
    chat: str, modes: str, mode: str, ids: list[int], tokenizers: dict[str | None, Any]
) -> None:
    assert read(tokenizers[chat], row("one and one?", mode), modes).ids == ids


def test_a_history_keeps_final_answers_and_every_turn_of_the_user_its_flag(tokenizers: dict[str | None, Any]) -> None:
    ids = read(tokenizers[CASCADE], row(HISTORY, "think"), "flags").ids
    places = [place for place in range(len(ids)) if ids[place : place + 3] == [START, USER, LINE]]
    ends = [ids.index(END, place) for place in places]
    assert [ids[end - 4 : end] for end in ends[:2]] == [NO_THINK, NO_THINK] and ids[ends[2] - 2 : ends[2]] == THINK
    assert OPEN not in ids and CLOSE not in ids


@given(
    text=HOSTILE,
    modes=st.sampled_from(["switch", "flags", "prefill", "none"]),
    mode=st.sampled_from(["think", "no_think"]),
)
@settings(deadline=None, max_examples=60)
def test_the_control_tokens_of_a_prompt_are_exactly_those_of_the_template(
    text: str, modes: str, mode: str, tokenizers: dict[str | None, Any]
) -> None:
    for chat in (CASCADE, QWEN, NANO, R1):
        made = tokenizers[chat]
        found = read(made, row([{"role": "user", "content": text}], mode), modes)
        own = read(made, row([{"role": "user", "content": "x"}], mode), modes)
        assert written(made, chat, found.ids) == written(made, chat, own.ids)
