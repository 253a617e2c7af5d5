"""What must be true of the two runs of `recipe_plan.py`, whoever trained them: tests over the fixtures `liked` and `bidden`, each a `Seen`.

Rewards, answers, flags and prompts are worked out here once more, from what went over the wire and what the paper says, and not by the code under test.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from recipe_plan import HISTORY, HOSTILE, LONG, NO_SCORE, SAID, SAMPLES, SHORT, SLOTS, STEPS, SYSTEM, THOUGHT

from cascade_core.template import read

Row = dict[str, Any]
TURN = "<|im_end|>\n<|im_start|>assistant\n"
CONTROLS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")


@dataclass
class Seen:
    """One stage: its stored rows step by step, and what was seen where it was trained.

    Attributes:
        asked: of each step, the tokens that the engine was asked with, one for each response.
        trained: of each step, what the trainer multiplies each token of a response with, by slot and sample; none or zeros where it is masked.
        scores: what the reward model said, by prompt (as JSON) and text.
    """

    modes: str
    rows: list[list[Row]]
    asked: list[list[list[int]]]
    trained: list[dict[tuple[int, int], list[float]]]
    scores: Mapping[tuple[str, str], float | None]
    tokenizer: Any

    @property
    def every(self) -> list[Row]:
        return [row for step in self.rows for row in step]

    def groups(self) -> Iterator[list[Row]]:
        for step in self.rows:
            for slot in range(SLOTS):
                yield [row for row in step if slot_of(row) == slot]

    def score(self, row: Row) -> float | None:
        """The reward model's word on a row, as it went over the wire."""
        return self.scores[json.dumps(row["prompt"]), shown(row)]


def slot_of(row: Row) -> int:
    return int(row["group"].partition("-")[2])


def answer_of(row: Row) -> str | None:
    """What follows the thought; nothing where that does not end."""
    whole = row["prefill"] + row["response"]
    _, tag, answer = whole.rpartition("</think>")
    if "<think>" in answer or (not tag and row["mode"] == "think"):
        return None
    return answer if tag else whole


def shown(row: Row) -> str:
    """What the reward model is to read."""
    answer = answer_of(row)
    return row["prefill"] + row["response"] if answer is None else answer.strip()


def combined(group: Sequence[Row], scores: Sequence[float | None]) -> list[float | None]:
    """R + sigmoid(z) where the instruction is kept, 0 where it is missed, nothing where the model's word is missing that is needed."""
    judged = [score for score in scores if score is not None]
    middle = statistics.mean(judged) if judged else 0.0
    spread = statistics.stdev(judged) if len(judged) > 1 else 0.0
    rewards: list[float | None] = []
    for row, score in zip(group, scores, strict=True):
        if row["score"]["value"] != 1:
            rewards.append(0.0)
        else:
            rewards.append(None if score is None else 1 + 1 / (1 + math.exp(-(score - middle) / (spread + 1e-6))))
    return rewards


def standardised(rewards: Sequence[float | None]) -> list[float]:
    """Of those that there are: how far from their mean, in their deviations; 0 for the others."""
    live = [reward for reward in rewards if reward is not None]
    if len(set(live)) < 2:
        return [0.0] * len(rewards)
    middle, spread = statistics.mean(live), statistics.stdev(live) + 1e-4
    return [0.0 if reward is None else (reward - middle) / spread for reward in rewards]


def assert_trained_on(seen: Seen, group: Sequence[Row], rewards: Sequence[float | None]) -> None:
    """The trainer's own numbers of a group are those that these rewards make."""
    for row, advantage in zip(group, standardised(rewards), strict=True):
        found = seen.trained[row["step"]][slot_of(row), row["sample"]]
        if row["masked"]:
            assert not any(found)
        else:
            assert found == pytest.approx([advantage] * row["tokens"], abs=1e-5)


# An instruction and the reward model's word (section 4.4)


def test_every_kind_of_response_was_sampled(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        assert [len(step) for step in seen.rows] == [SLOTS * SAMPLES] * STEPS
        said = Counter((row["mode"], row["prefill"] + row["response"]) for row in seen.every)
        own = [("think", text) for text in THOUGHT[:-1]]  # the last is cut
        empty = "<think></think>" if seen.modes == "prefill" else ""
        own += [("no_think", empty + text) for text in SAID]
        assert sum(said[one] > 0 for one in own) > 7, said
        assert sum(said[one] for one in own) > STEPS * SLOTS * SAMPLES / 3, said


def test_an_instruction_is_kept_or_missed_as_the_answer_says(bidden: Seen) -> None:
    for row in bidden.every:
        answer = answer_of(row)
        if answer is None or answer.strip() in (*SHORT, *LONG):
            assert row["score"]["value"] == (answer is not None and len(answer.split()) < 3)
    assert {row["score"]["value"] for row in bidden.every} == {0.0, 1.0}


def test_a_missed_instruction_gets_nothing_and_a_kept_one_between_one_and_two(bidden: Seen) -> None:
    for row in bidden.every:
        if row["score"]["value"] == 0:
            assert row["reward"] == 0 and not row["masked"]
        elif row["reward"] is not None:
            assert 1 < row["reward"] < 2
    assert sum((row["reward"] or 0) > 1 for row in bidden.every) >= SLOTS


def test_the_reward_is_one_and_the_sigmoid_of_a_z_score_over_all_of_the_group_that_were_judged(bidden: Seen) -> None:
    for group in bidden.groups():
        wanted = combined(group, [bidden.score(row) for row in group])
        assert [row["reward"] for row in group] == [
            one if one is None else pytest.approx(one, abs=1e-4) for one in wanted
        ]


def test_those_that_miss_the_instruction_move_the_z_scores_of_the_others(bidden: Seen) -> None:
    moved = 0
    for group in bidden.groups():
        passing = [row for row in group if row["score"]["value"] == 1]
        apart = combined(passing, [bidden.score(row) for row in passing])
        pairs = [(row["reward"], one) for row, one in zip(passing, apart, strict=True) if one is not None]
        moved += any(abs(reward - one) > 0.01 for reward, one in pairs)
    assert moved > 3


def test_what_could_not_be_judged_is_masked_and_no_response_with_reward_0(bidden: Seen) -> None:
    for row in bidden.every:
        missing = shown(row).startswith(NO_SCORE)
        assert ("error" in row["components"]["preference"]) == missing == (bidden.score(row) is None)
        masked = missing and row["score"]["value"] == 1
        assert (row["masked"], row["reward"] is None) == (("error", True) if masked else ("", False))
    differ = 0
    for group in bidden.groups():
        rewards = [row["reward"] for row in group]
        zeroed = standardised([reward or 0.0 for reward in rewards])
        pairs = zip(zeroed, standardised(rewards), strict=True)
        differ += None in rewards and any(abs(one - other) > 0.05 for one, other in pairs)
    assert differ


def test_a_missed_instruction_settles_it_where_the_reward_model_says_nothing(bidden: Seen) -> None:
    found = [row for row in bidden.every if bidden.score(row) is None and row["score"]["value"] == 0]
    assert found
    assert {(row["reward"], row["masked"]) for row in found} == {(0.0, "")}


def test_the_trainer_multiplies_every_token_with_what_these_rewards_make(bidden: Seen) -> None:
    for group in bidden.groups():
        assert_trained_on(bidden, group, combined(group, [bidden.score(row) for row in group]))


# Two languages in one response (section 4.3)


def mixes(row: Row) -> bool:
    return bool(row["components"]["code-switch"]["value"] < 1)


def punished(step: Sequence[Row], scores: Sequence[float | None]) -> list[float | None]:
    """The reward model's scores, with the smallest of them less 10 in place of those of responses in two languages."""
    least = min(score for score in scores if score is not None) - 10
    return [least if score is not None and mixes(row) else score for row, score in zip(step, scores, strict=True)]


def test_two_languages_are_found_in_thoughts_and_answers_of_english_prompts(liked: Seen) -> None:
    known = [row for row in liked.every if row["response"] in (*THOUGHT, *SAID)]
    for row in known:
        assert mixes(row) == bool(re.search("[一-鿿]", row["response"]))
    assert any(mixes(row) for row in known)


def test_two_languages_cost_ten_below_the_smallest_score_of_the_step_and_all_others_keep_theirs(liked: Seen) -> None:
    for step in liked.rows:
        wanted = punished(step, [liked.score(row) for row in step])
        assert [row["reward"] for row in step] == [
            one if one is None else pytest.approx(one, abs=1e-4) for one in wanted
        ]


def test_the_smallest_score_is_that_of_all_groups_and_not_of_the_offenders_own(liked: Seen) -> None:
    elsewhere = 0
    for step in liked.rows:
        offenders = [row for row in step if mixes(row) and row["reward"] is not None]
        assert len({row["reward"] for row in offenders}) <= 1
        for row in offenders:
            group = [liked.score(one) for one in step if one["group"] == row["group"]]
            elsewhere += min(one for one in group if one is not None) - 10 > row["reward"] + 1e-3
    assert elsewhere


def test_a_response_without_a_score_has_no_reward_in_whatever_language(liked: Seen) -> None:
    for row in liked.every:
        missing = shown(row).startswith(NO_SCORE)
        assert (row["masked"], row["reward"] is None) == (("error", True) if missing else ("", False))
    assert sum(row["masked"] == "error" for row in liked.every) > STEPS


def test_the_trainer_multiplies_every_token_with_what_the_punished_scores_make(liked: Seen) -> None:
    for step in liked.rows:
        rewards = punished(step, [liked.score(row) for row in step])
        for slot in range(SLOTS):
            both = [(row, one) for row, one in zip(step, rewards, strict=True) if slot_of(row) == slot]
            assert_trained_on(liked, *map(list, zip(*both, strict=True)))  # type: ignore[arg-type]


# What the reward model reads (section 4.3)


def test_the_reward_model_reads_what_follows_the_thought_and_no_thought(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        ended = [row for row in seen.every if row["mode"] == "think" and answer_of(row) is not None]
        assert len({row["response"] for row in ended}) > 3
        for row in ended:
            assert "think>" not in shown(row)
            assert (json.dumps(row["prompt"]), shown(row)) in seen.scores
    assert any("</think>\n\nthe answer" in row["response"] for seen in (liked, bidden) for row in seen.every)


def test_the_reward_model_reads_the_whole_of_a_thought_that_never_ends(liked: Seen, bidden: Seen) -> None:
    cut = set()
    for seen in (liked, bidden):
        unfinished = [row for row in seen.every if answer_of(row) is None]
        assert unfinished
        for row in unfinished:
            assert (json.dumps(row["prompt"]), row["prefill"] + row["response"]) in seen.scores
        cut |= {row["truncated"] for row in unfinished}
    assert cut == {True, False}


def test_the_reward_model_is_asked_about_nothing_else(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        trained = {(json.dumps(row["prompt"]), shown(row)) for row in seen.every}
        prompts = {prompt for prompt, _ in trained}
        assert {one for one in seen.scores if one[0] in prompts} == trained


def test_its_score_is_what_the_sample_is_worth(liked: Seen) -> None:
    for row in liked.every:
        score = liked.score(row)
        if score is not None:
            assert row["score"]["reward"] == pytest.approx(score, abs=1e-5)  # of a text that is asked twice, the last
            assert row["score"]["value"] == pytest.approx(1 / (1 + math.exp(-score)), abs=1e-5)


# Modes and templates (sections 3.1.2 and 4.3)


def golden(row: Row, modes: str) -> str:
    """The prompt, word for word."""
    flag = f" /{row['mode']}" if modes == "flags" else ""
    end = TURN + ("<think></think>" if (modes, row["mode"]) == ("prefill", "no_think") else "")
    if isinstance(row["prompt"], str):
        return f"{SYSTEM}<|im_start|>user\n{row['prompt']}{flag}{end}"
    if modes == "flags":
        past = f"what is 2? /no_think{TURN}one"
    else:
        past = f"what is 2? /think{TURN}<think>\nand\n</think>\n\none"
    return f"{SYSTEM}<|im_start|>user\n{past}<|im_end|>\n<|im_start|>user\nwhat is 3?{flag}{end}"


def test_half_of_the_prompts_of_every_step_are_in_each_mode(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        for step in seen.rows:
            modes = {slot: {row["mode"] for row in step if slot_of(row) == slot} for slot in range(SLOTS)}
            assert all(len(found) == 1 for found in modes.values())
            assert Counter(mode for found in modes.values() for mode in found) == {
                "think": SLOTS // 2,
                "no_think": SLOTS // 2,
            }


def test_half_of_what_the_engine_reads_in_every_step_says_each_mode(liked: Seen, bidden: Seen) -> None:
    for seen, end in ((liked, " /no_think" + TURN), (bidden, TURN + "<think></think>")):
        for step in seen.asked:
            texts = [seen.tokenizer.decode(ids) for ids in step]
            assert Counter(text.endswith(end) for text in texts) == dict.fromkeys((True, False), SLOTS * SAMPLES // 2)
    assert all(liked.tokenizer.decode(ids).endswith((" /think" + TURN, " /no_think" + TURN)) for ids in liked.asked[0])


def test_the_engine_reads_every_prompt_word_for_word(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        for step, asked in zip(seen.rows, seen.asked, strict=True):
            wanted = Counter(golden(row, seen.modes) for row in step)
            assert Counter(map(seen.tokenizer.decode, asked)) == wanted


def test_the_engine_reads_the_very_tokens_that_the_template_renders(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        for step, asked in zip(seen.rows, seen.asked, strict=True):
            wanted = Counter(tuple(read(seen.tokenizer, row, seen.modes).ids) for row in step)
            assert Counter(map(tuple, asked)) == wanted


def test_harmless_prompts_have_the_tokens_that_the_tokenizer_gives_their_text(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        asked = {tuple(ids) for step in seen.asked for ids in step}
        for row in seen.every:
            if row["prompt"] != HOSTILE:
                text = golden(row, seen.modes)
                assert tuple(seen.tokenizer(text, add_special_tokens=False)["input_ids"]) in asked


def test_control_tokens_that_a_prompt_writes_out_stay_text(liked: Seen, bidden: Seen) -> None:
    for seen in (liked, bidden):
        numbers = dict(zip(CONTROLS, seen.tokenizer.convert_tokens_to_ids(list(CONTROLS)), strict=True))
        texts = {golden(row, seen.modes): row["mode"] for row in seen.every if row["prompt"] == HOSTILE}
        found = {
            (text, tuple(ids)) for step in seen.asked for ids in step if (text := seen.tokenizer.decode(ids)) in texts
        }
        assert len(found) == len(texts) == 1
        ((text, ids),) = found
        thought = int(seen.modes == "prefill" and texts[text] == "no_think")
        assert [ids.count(number) for number in numbers.values()] == [3, 2, thought, thought]
        assert list(ids) != seen.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_flags_of_past_turns_say_no_think_and_their_answers_lose_the_thought(liked: Seen) -> None:
    assert {row["mode"] for row in liked.every if row["prompt"] == HISTORY} == {"think"}
    past = "what is 2? /no_think<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n<|im_start|>user\n"
    texts = [seen for step in liked.asked for seen in map(liked.tokenizer.decode, step) if past in seen]
    assert len(texts) == SAMPLES
    assert all(text.endswith(f"{past}what is 3? /think{TURN}") for text in texts)


def test_an_empty_thought_that_the_prompt_opens_belongs_to_the_response_that_is_judged(bidden: Seen) -> None:
    for row in bidden.every:
        assert row["prefill"] == ("<think></think>" if row["mode"] == "no_think" else "")
    found = [row for row in bidden.every if row["mode"] == "no_think" and row["response"] == "the answer"]
    assert found and {row["score"]["value"] for row in found} == {1.0}
