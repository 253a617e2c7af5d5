"""What a model reads of a row."""

import pytest

from cascade_core.errors import TrainerError
from cascade_core.initial import build_tokenizer
from cascade_core.settings import InitTokenizer
from cascade_core.template import continuation, encode, read

QWEN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
R1 = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]<think>\n{% endif %}"
)
# Renders the last user turn otherwise when an answer is to follow, so that one text does not begin with the other.
CRANKY = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %} =><think>{% else %}.{% endif %}"
)


@pytest.fixture
def tokenizer():
    return build_tokenizer(InitTokenizer(phrases=["<think>"]), 64)


def render(tokenizer, asked):
    """Text and prefill."""
    return read(tokenizer, asked)[:2]


def go_on(tokenizer, asked, said):
    """The same, of what follows in a conversation."""
    return continuation(tokenizer, asked, said)[:2]


def row(prompt, mode=""):
    return {"id": "a", "prompt": prompt, "mode": mode}


def test_without_a_template_a_prompt_is_read_as_it_stands(tokenizer):
    assert render(tokenizer, row(" 1+1= ")) == (" 1+1= ", "")


def test_without_a_template_the_turns_of_a_conversation_are_lines(tokenizer):
    turns = [{"role": "system", "content": "short"}, {"role": "user", "content": "hi"}]
    assert render(tokenizer, row(turns)) == ("short\nhi", "")


def test_a_template_makes_a_text_prompt_the_users_turn(tokenizer):
    tokenizer.chat_template = QWEN
    assert render(tokenizer, row("hi")) == ("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "")


def test_a_thought_that_the_template_opens_is_prefill(tokenizer):
    tokenizer.chat_template = R1
    text, prefill = render(tokenizer, row("hi"))
    assert text.endswith("[assistant]<think>\n")
    assert prefill == "<think>\n"


def test_the_empty_thought_of_no_think_is_prefill(tokenizer):
    tokenizer.chat_template = QWEN
    assert render(tokenizer, row("hi", "no_think"))[1] == "<think>\n\n</think>\n\n"
    assert render(tokenizer, row("hi", "think"))[1] == ""


def test_a_tag_in_the_prompt_is_no_prefill(tokenizer):
    tokenizer.chat_template = QWEN
    assert render(tokenizer, row("what is <think>?"))[1] == ""


def test_prefill_is_found_where_the_two_renderings_differ_before_it(tokenizer):
    tokenizer.chat_template = CRANKY
    assert render(tokenizer, row("is <think> a tag?"))[1] == "<think>"


def test_a_template_that_refuses_a_row_is_named_with_the_task(tokenizer):
    tokenizer.chat_template = "{{ raise_exception('no system turns') }}"
    with pytest.raises(TrainerError, match="'a'.*no system turns"):
        render(tokenizer, row("hi"))


def test_an_empty_prompt_is_refused(tokenizer):
    with pytest.raises(TrainerError, match="'a' has an empty prompt"):
        encode(tokenizer, row(""))


QWEN3 = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("template", [QWEN, QWEN3])
def test_the_environments_turn_begins_with_the_end_of_the_models_and_ends_with_its_next(tokenizer, template):
    tokenizer.chat_template = template
    wanted = "<|im_end|>\n<|im_start|>user\nhigher<|im_end|>\n<|im_start|>assistant\n"
    assert go_on(tokenizer, row("hi"), "higher") == (wanted, "")


def test_a_turn_that_the_template_opens_in_a_conversation_is_prefill(tokenizer):
    tokenizer.chat_template = R1
    assert go_on(tokenizer, row("hi"), "what is <think>?") == (
        "[user]what is <think>?[assistant]<think>\n",
        "<think>\n",
    )


def test_without_a_template_the_environments_turn_is_a_line(tokenizer):
    assert go_on(tokenizer, row("hi"), "higher") == ("\nhigher", "")


def test_a_template_that_drops_what_the_model_said_is_refused(tokenizer):
    tokenizer.chat_template = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    with pytest.raises(TrainerError, match="cannot go on with a conversation, that of task 'a'"):
        continuation(tokenizer, row("hi"), "higher")
