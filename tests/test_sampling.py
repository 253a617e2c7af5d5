"""Sampling on this machine."""

import hashlib

import pytest
import tiny_stage as tiny
import torch

from cascade_core import sampling
from cascade_core.determinism import derive, settle_threads
from cascade_core.errors import TrainerError
from cascade_core.pretrained import Decoder
from cascade_core.sampling import EntropyMeter, LocalSampler, draw
from cascade_core.settings import Sampling

SETTINGS = Sampling(max_response_tokens=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.model(tmp_path_factory.mktemp("sampling") / "model")


@pytest.fixture(scope="module")
def sampler(folder):
    return LocalSampler(folder, 16)


def bare(model, prompt, tokens):
    """Greedy continuation of one prompt, without padding, cache or `generate`."""
    ids = list(prompt)
    for _ in range(tokens):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == 1:
            break
    return ids[len(prompt) :]


def test_the_same_call_gives_the_same_samples(sampler):
    first = sampler.sample(tiny.tasks(9), 4, SETTINGS, 3)
    assert sampler.sample(tiny.tasks(9), 4, SETTINGS, 3) == first
    assert sampler.sample(tiny.tasks(9), 4, SETTINGS, 4) != first


def test_a_prompt_gets_its_own_samples_whatever_their_order_in_the_batches(sampler):
    found = sampler.sample(tiny.tasks(9), 1, Sampling(temperature=0, max_response_tokens=8), 0)
    for row, (sample,) in zip(tiny.tasks(9), found, strict=True):
        ids = sampler._tokenizer(row["prompt"])["input_ids"]
        assert sample.tokens == len(bare(sampler._model, ids, 8))
        assert sample.text == Decoder(sampler._tokenizer).text(bare(sampler._model, ids, 8))


def test_padding_and_the_shared_cache_change_no_greedy_token(sampler):
    prompts = [sampler._tokenizer(row["prompt"])["input_ids"] for row in tiny.tasks(5)]
    with torch.no_grad():
        found = draw(sampler._model, prompts, 2, Sampling(temperature=0, max_response_tokens=8), [1], 0)
    assert found == [bare(sampler._model, prompt, 8) for prompt in prompts for _ in range(2)]


def test_at_temperature_zero_all_samples_are_one(sampler):
    (found,) = sampler.sample(tiny.tasks(1), 3, Sampling(temperature=0, max_response_tokens=8), 0)
    assert len(found) == 3
    assert len(set(found)) == 1


def test_tokens_count_the_end_token_and_truncated_means_none_came(sampler):
    samples = [sample for group in sampler.sample(tiny.tasks(40), 8, SETTINGS, 0) for sample in group]
    ended = [sample for sample in samples if not sample.truncated]
    assert ended and len(ended) < len(samples)
    assert all(sample.tokens == 8 for sample in samples if sample.truncated)
    assert any(sample.tokens == 1 and sample.text == "" for sample in ended)


def test_a_sampled_distribution_is_the_models(sampler):
    """First tokens of many samples against the softmax: chi-square far from its tail (143 degrees of freedom)."""
    ids = sampler._tokenizer("say red")["input_ids"]
    torch.manual_seed(0)
    with torch.no_grad():
        expected = sampler._model(torch.tensor([ids])).logits[0, -1].softmax(-1) * 4000
        drawn = draw(sampler._model, [ids], 4000, Sampling(max_response_tokens=1), [1], 0)
    seen = torch.bincount(torch.tensor([tokens[0] for tokens in drawn]), minlength=len(expected))
    assert float(((seen - expected) ** 2 / expected).sum()) < len(expected) + 5 * (2 * len(expected)) ** 0.5


def test_preferences_that_the_model_brings_along_change_nothing(sampler):
    plain = sampler.sample(tiny.tasks(4), 2, SETTINGS, 0)
    config = sampler._model.generation_config
    config.repetition_penalty, config.top_k, config.no_repeat_ngram_size = 5.0, 1, 1
    try:
        assert sampler.sample(tiny.tasks(4), 2, SETTINGS, 0) == plain
        assert sampler._model.generation_config is config
    finally:
        config.repetition_penalty, config.top_k, config.no_repeat_ngram_size = None, None, None


def test_entropy_is_that_of_the_tempered_distribution_over_response_tokens(sampler):
    ids, meter = sampler._tokenizer("say red")["input_ids"], EntropyMeter(0.5)
    torch.manual_seed(1)
    with torch.no_grad():
        drawn = draw(sampler._model, [ids], 80, Sampling(temperature=0.5, max_response_tokens=8), [1], 0, meter)
        entropies = []
        for tokens in drawn:
            logits = sampler._model(torch.tensor([ids + tokens])).logits[0, len(ids) - 1 : -1]
            entropies += torch.distributions.Categorical(logits=logits / 0.5).entropy().tolist()
    assert len({len(tokens) for tokens in drawn}) > 1
    assert meter.mean([len(tokens) for tokens in drawn]) == pytest.approx(sum(entropies) / len(entropies), rel=1e-5)


def test_sampling_leaves_the_random_numbers_of_others_alone(sampler):
    torch.manual_seed(5)
    sampler.sample(tiny.tasks(2), 2, SETTINGS, 0)
    first = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(3))


def test_an_unknown_token_is_no_text_where_the_tokenizer_has_no_thought_tags():
    from cascade_core.initial import build_tokenizer
    from cascade_core.settings import InitTokenizer

    tokenizer = build_tokenizer(InitTokenizer(), 32)
    assert Decoder(tokenizer).text([*tokenizer("a")["input_ids"], tokenizer.unk_token_id]) == "a"


def test_thought_tags_stay_in_the_text_even_where_they_are_special_tokens(sampler):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(sampler._model.config._name_or_path)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>", "<turn>"]})
    ids = [tokenizer.convert_tokens_to_ids(token) for token in ("<think>", "a", "</think>", "b", "<turn>", "<eos>")]
    assert Decoder(tokenizer).text(ids) == "<think>a</think>b"


def test_a_prompt_without_room_for_a_response_is_refused_by_name(sampler):
    row = {"id": "wide", "prompt": "x" * (tiny.CONTEXT - 7)}
    with pytest.raises(TrainerError, match=r"'wide' has a prompt of 41 tokens.*context of 48"):
        sampler.sample([row], 1, SETTINGS, 0)


def test_no_prompts_give_no_samples(sampler):
    assert sampler.sample([], 4, SETTINGS, 0) == []


def test_a_folder_that_holds_no_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(TrainerError, match=r"^no tokenizer can be read from .*; check the model setting$"):
        LocalSampler(tmp_path, 4)


def test_running_out_of_memory_names_the_setting(sampler, monkeypatch):
    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(sampling, "draw", full)
    with pytest.raises(TrainerError, match="out of memory with 8 responses; lower batch_size"):
        sampler.sample(tiny.tasks(4), 2, SETTINGS, 0)


def test_derived_seeds_are_the_same_everywhere_and_differ_in_every_part():
    assert derive("rollout", 7, 3) == int.from_bytes(hashlib.sha256(b"rollout\x1f7\x1f3").digest()[:8], "big") >> 1
    assert len({derive("rollout", a, b) for a in range(20) for b in range(20)}) == 400
    assert derive("a", 12, 3) != derive("a", 1, 23)


@pytest.mark.parametrize(
    ("asked", "parameters", "threads"),
    [("3", 1, 3), ("", 1, 1), ("0", 1, 1), ("many", 1, 1), ("2", 10**9, 2)],
)
def test_threads_are_what_the_environment_says_or_one_for_a_small_model(monkeypatch, asked, parameters, threads):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    try:
        assert settle_threads(parameters) == threads
    finally:
        torch.set_num_threads(before)


def test_every_response_that_ends_early_is_told_of_once_with_its_tokens_and_the_draws_stay(sampler):
    prompts = [sampler._tokenizer(row["prompt"])["input_ids"] for row in tiny.tasks(9)]
    told: list[tuple[int, list[int]]] = []

    def drawn(tell=None):
        torch.manual_seed(0)
        with torch.no_grad():
            return draw(sampler._model, prompts, 4, SETTINGS, [1], 0, tell=tell)

    found = drawn(lambda place, tokens: told.append((place, tokens)))
    assert found == drawn()
    longest = max(map(len, found))
    assert sorted(told) == [(place, ids) for place, ids in enumerate(found) if ids[-1] == 1 and len(ids) < longest]
    assert [len(ids) for _, ids in told] == sorted(len(ids) for _, ids in told) and told
