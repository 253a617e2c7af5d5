"""A reward model is served the very tokens that it was trained on."""

from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_rlhf.serving.encoding import Encoder
from hypothesis import given
from hypothesis import strategies as st
from tiny_reward_models import tokenizer as write_tokenizer

from cascade_core.reward_model import load_tokenizer, tokens

PIECES = st.lists(st.sampled_from(["a", "ß", " ", "\n", "<|im_end|>", "[SEP]", "<|", "\ud800"]), max_size=8).map(
    "".join
)
TEXT = PIECES | st.text(max_size=8)
ASKED = TEXT | st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT}), min_size=1, max_size=3
)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One for each of the ways in which a text is made: chat, pair, plain."""
    made: dict[str, Any] = {}
    for name, options in {"chat": {}, "pair": {"pairs": True}, "plain": {"chat": False}}.items():
        folder: Path = tmp_path_factory.mktemp(name)
        write_tokenizer(folder, **options)
        made[name] = load_tokenizer(folder)
    return made


@pytest.mark.parametrize("way", ["chat", "pair", "plain"])
@given(prompt=ASKED, response=TEXT)
def test_trainer_and_server_read_the_same_tokens(
    way: str, prompt: Any, response: str, tokenizers: dict[str, Any]
) -> None:
    tokenizer = tokenizers[way]
    tokenizer.model_max_length = 10_000
    served = Encoder(tokenizer, None)
    assert served.template == way
    found, wanted = tokens(tokenizer, {"id": "t", "prompt": prompt}, response), served.item(prompt, response)
    assert (found.ids, found.types) == (wanted.ids, wanted.types)
