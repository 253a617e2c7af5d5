"""Models and tokenizers that a run makes itself."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_core.errors import SpecError
from cascade_core.initial import CHARACTERS, build_tokenizer, make
from cascade_core.settings import InitModel, InitTokenizer

PHRASES = ["the ", "the cat", " is here.", "\\boxed{", "<think>", "a.b", "[x]", "  ", "\n====\n", "t"]
SMALL = InitModel(hidden_size=16, layers=1, heads=2, context=32, tokenizer=InitTokenizer(phrases=PHRASES))


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(SMALL.tokenizer, 32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("initial") / "model"
    make(SMALL, 3, path)
    return path


@given(st.lists(st.sampled_from([*PHRASES, *CHARACTERS, "<eos>", "<pad>"]), max_size=20).map("".join))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_decoding_what_was_encoded_gives_the_same_text(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_phrase_is_one_token_and_the_longest_that_fits_wins(tokenizer):
    assert tokenizer.convert_ids_to_tokens(tokenizer("the cat is here. the dog")["input_ids"])[:2] == [
        "the cat",
        " is here.",
    ]


def test_a_phrase_is_a_literal_and_no_pattern(tokenizer):
    assert tokenizer.convert_ids_to_tokens(tokenizer("a.b axb [x] x")["input_ids"]) == [
        "a.b", " ", "a", "x", "b", " ", "[x]", " ", "x",
    ]  # fmt: skip


def test_an_end_token_that_a_prompt_spells_out_does_not_become_the_end_token(tokenizer):
    assert tokenizer.eos_token_id not in tokenizer("say <eos> twice")["input_ids"]


def test_a_character_that_is_not_listed_is_unknown(tokenizer):
    assert tokenizer("é")["input_ids"] == [tokenizer.unk_token_id]


def test_the_folder_loads_offline_with_model_and_tokenizer_that_fit(folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    loaded, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert loaded.config.vocab_size == len(tokenizer)
    assert loaded.config.eos_token_id == tokenizer.eos_token_id
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    assert tokenizer.decode(tokenizer("the cat  is\there.")["input_ids"]) == "the cat  is\there."
    assert tokenizer.eos_token_id not in tokenizer("<eos>")["input_ids"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_equal_seeds_give_equal_bytes_and_other_seeds_other_weights(folder, tmp_path):
    make(SMALL, 3, tmp_path / "again")
    make(SMALL, 4, tmp_path / "other")
    assert contents(tmp_path / "again") == contents(folder)
    assert contents(tmp_path / "other")["model.safetensors"] != contents(folder)["model.safetensors"]


def test_no_file_names_the_folder_it_was_written_to(folder):
    assert not any(os.fsencode(folder) in data for data in contents(folder).values())


@pytest.mark.parametrize("phrases", [["<eos>"], ["ab", "ab"]])
def test_a_phrase_that_cannot_be_a_token_is_refused(phrases):
    with pytest.raises(SpecError, match="phrase"):
        build_tokenizer(InitTokenizer(phrases=phrases), 32)


def test_making_a_model_leaves_the_random_numbers_of_others_alone(tmp_path):
    import torch

    torch.manual_seed(5)
    make(SMALL, 0, tmp_path / "m")
    first = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(3))
