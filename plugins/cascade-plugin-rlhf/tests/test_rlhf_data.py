"""Splits: what is measured is never trained on, whatever the files; the generator's hidden quality."""

import itertools
import json
from random import Random

import pytest
from cascade_plugin_rlhf import tiny
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.pairs import REFERENCE
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import UsageError

SEEDS = st.integers(0, 2**63 - 1)


def write(folder, name, rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def pair(number, **more):
    return {"prompt": f"question {number}?", "chosen": f"yes {number}", "rejected": f"no {number}", **more}


def prompts(found):
    return [one.prompt for one in found]


def test_prompts_and_preferences_of_one_file_are_split_alike(tmp_path):
    domain = RLHF(data=write(tmp_path, "pairs.jsonl", map(pair, range(60))))
    train, test = (set(prompts(domain.tasks(split, 0))) for split in ("train", "test"))
    assert len(train) + len(test) == 60 and not train & test and test
    assert {one.task.prompt for one in domain.pairs("train", 0)} == train
    assert {one.task.prompt for one in domain.pairs("test", 0)} == test


def test_nothing_that_is_measured_is_trained_on(tmp_path):
    files = {
        "data": write(tmp_path, "data.jsonl", [pair(number) for number in range(40)]),
        "eval_data": write(tmp_path, "eval.jsonl", [{"prompt": "question  1?", "reference": "yes"}]),
        "eval_preferences": write(tmp_path, "held.jsonl", [pair(2), pair(3)]),
        "reward_bench": write(tmp_path, "bench.jsonl", [pair(4, subset="hep-go"), pair(99, subset="hep-go")]),
        "arena": write(tmp_path, "arena.jsonl", [{"uid": "u", "prompt": "question 5?", "reference": "yes"}]),
    }
    domain = RLHF(**files)
    kept = [f"question {number}?" for number in range(40) if number not in (1, 2, 3, 4, 5)]
    assert prompts(domain.tasks("train", 0)) == kept
    assert [one.task.prompt for one in domain.pairs("train", 0)] == kept
    assert [one.task.prompt for one in domain.pairs("test", 0)] == ["question 2?", "question 3?"]
    assert len(list(domain.tasks("reward_bench", 0))) == 2
    names = {(one.name, one.of) for one in domain.benchmarks()}
    assert names == {
        ("test", "policy"),
        ("arena", "policy"),
        ("pairs", "reward_model"),
        ("reward_bench", "reward_model"),
    }


def test_several_sources_to_evaluate_on_are_benchmarks_by_their_names(tmp_path):
    hard = write(tmp_path, "hard.jsonl", [{"prompt": "hard?", "reference": "yes"}])
    domain = RLHF(data=write(tmp_path, "data.jsonl", [pair(1)]), eval_data={"hard": hard}, eval_samples=3, eval_limit=9)
    (first, *_) = domain.benchmarks()
    assert (first.name, first.split, first.samples, first.limit) == ("hard", "hard", 3, 9)
    assert prompts(domain.tasks("hard", 0)) == ["hard?"]


def test_prompts_without_preferences_have_no_pairs_and_no_benchmark_of_them(tmp_path):
    rows = [{"prompt": f"question {number}?"} for number in range(20)]
    domain = RLHF(data=write(tmp_path, "prompts.jsonl", rows))
    assert list(domain.pairs("train", 0)) == []
    assert [one.name for one in domain.benchmarks()] == ["test"]
    assert all(task.answer is None for task in domain.tasks("train", 0))


def test_a_prompt_may_have_any_shape_that_a_chat_has(tmp_path):
    user, other = {"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"}
    rows = [{"messages": [user, other]}, {"turns": [{"content": "c?"}]}, {"context": [user, other, user]}]
    source = write(tmp_path, "chats.jsonl", rows)
    domain = RLHF(data=write(tmp_path, "data.jsonl", [pair(1)]), eval_data=source)
    assert prompts(domain.tasks("test", 0)) == ["a?", "c?", [user, other, user]]


def test_a_mistaken_column_is_refused_with_the_nearest_name(tmp_path):
    source = write(tmp_path, "data.jsonl", [{"promt": "a?"}])
    with pytest.raises(UsageError, match="did you mean 'promt'"):
        list(RLHF(data=source, prompt_field="prompt").tasks("train", 0))
    with pytest.raises(UsageError, match="set 'prompt_field', found promt"):
        list(RLHF(data=source).tasks("train", 0))


def test_an_empty_reference_is_refused(tmp_path):
    source = write(tmp_path, "data.jsonl", [{"prompt": "a?", "reference": " "}])
    with pytest.raises(UsageError, match=r"data\.jsonl:1: 'reference'"):
        list(RLHF(eval_data=source).tasks("test", 0))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            {"question_id": "q", "turns": [{"content": "why?"}]},
            {"question_id": "q", "choices": [{"index": 0, "turns": [{"content": "so"}]}]},
        ),
        (
            {"uid": "q", "prompt": "why?"},
            {
                "uid": "q",
                "messages": [{"role": "user", "content": "why?"}, {"role": "assistant", "content": {"answer": "so"}}],
            },
        ),
    ],
)
def test_both_versions_of_arenahard_are_joined_by_their_ids(question, answer, tmp_path):
    domain = RLHF(arena=write(tmp_path, "q.jsonl", [question]), arena_answers=write(tmp_path, "a.jsonl", [answer]))
    (task,) = domain.tasks("arena", 0)
    assert (task.id, task.prompt, task.answer, task.meta) == ("q", "why?", {REFERENCE: "so"}, {"judged": True})


def test_a_question_without_the_baselines_answer_is_refused(tmp_path):
    domain = RLHF(arena=write(tmp_path, "q.jsonl", [{"uid": "q", "prompt": "why?"}]))
    with pytest.raises(UsageError, match="question 'q' has no answer"):
        list(domain.tasks("arena", 0))


@pytest.mark.parametrize("split", ["validation", "arena", "reward_bench"])
def test_a_split_that_is_not_there_is_refused(split):
    with pytest.raises(UsageError, match="split"):
        list(RLHF().tasks(split, 0))


def test_demonstrations_of_files_are_their_better_sides(tmp_path):
    domain = RLHF(data=write(tmp_path, "pairs.jsonl", map(pair, range(9))))
    assert all(one.response.startswith("yes ") for one in domain.demonstrations("train", 0))


# --- the generator --------------------------------------------------------------------------------------------------
@given(SEEDS)
def test_the_better_side_of_a_generated_pair_is_better(seed):
    for one, better, worse in itertools.islice(tiny.preferences("train", seed), 40):
        assert one.quality(better) > one.quality(worse)


@given(SEEDS)
def test_demonstrations_leave_room_above_them(seed):
    rng = Random(seed)
    found = [one.quality(one.draw(rng)) for one in itertools.islice(tiny.requests("train", seed), 300)]
    assert sum(found) / len(found) < 3.0 < tiny.MOST
    assert sum(quality == tiny.MOST for quality in found) < 60


def test_all_requests_are_there_once_and_say_what_they_are():
    found = [one for split in ("train", "test") for one in tiny.requests(split, 5)]
    assert len({one.id for one in found}) == len(found) == len({one.prompt for one in found})
    assert all(tiny.request(one.prompt) == one for one in found)


@pytest.mark.parametrize(
    ("answer", "quality"),
    [
        ("thanks bok.", 5.0),
        ("thanks bok", 4.0),
        ("bok.", 3.0),
        ("hey bok!", 0.0),
        ("hello bok.", 3.0),
        ("thanks bok thanks bok.", 3.0),
        ("", 0.0),
        (".", 1.0),
        ("thanks bek!", 1.0),
    ],
)
def test_the_hidden_quality_is_what_it_says(answer, quality):
    assert tiny.Request("thank", "bok").quality(answer) == quality


@pytest.mark.parametrize("prompt", ["", "thank", "thank bok", "write bok: ", "2 and 2?", "thank bok: \n"])
def test_another_prompt_is_no_request(prompt):
    assert tiny.request(prompt) is None
