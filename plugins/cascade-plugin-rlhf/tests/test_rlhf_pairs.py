"""Preferences in the formats of public data sets, written here in small: read, refused, counted."""

import json
import logging

import pytest
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.pair_formats import preference
from cascade_plugin_rlhf.pairs import REFERENCE, Preference, preferences

from cascade_core.errors import UsageError

USER = {"role": "user", "content": "2 and 2?"}


def said(text):
    return {"role": "assistant", "content": text}


ROWS = {
    "HelpSteer2": {"prompt": "2 and 2?", "response_1": "five", "response_2": "four", "preference_strength": 2},
    "HelpSteer2, the first": {
        "prompt": "2 and 2?",
        "response_1": "four",
        "response_2": "five",
        "preference_strength": -1,
    },
    "HelpSteer3": {"context": [USER], "response1": "four", "response2": "five", "overall_preference": -3},
    "HelpSteer3, the second": {"context": [USER], "response1": "five", "response2": "four", "overall_preference": 1},
    "UltraFeedback": {
        "prompt": "2 and 2?",
        "chosen": [USER, said("four")],
        "rejected": [USER, said("five")],
        "score_chosen": 8.5,
        "score_rejected": 4.0,
        "prompt_id": "x",
    },
    "HH-RLHF": {
        "chosen": "\n\nHuman: 2 and 2?\n\nAssistant: four",
        "rejected": "\n\nHuman: 2 and 2?\n\nAssistant: five",
    },
    "RewardBench": {"prompt": "2 and 2?", "chosen": "four", "rejected": "five", "subset": "hep-python", "id": 7},
    "TRL's chats": {"prompt": [USER], "chosen": [said("four")], "rejected": [said("five")]},
    "TRL's chats without a prompt": {"chosen": [USER, said("four")], "rejected": [USER, said("five")]},
}


@pytest.mark.parametrize("name", ROWS)
def test_every_format_says_the_same_preference(name):
    found = preference(ROWS[name], "a.jsonl:1")
    assert (found.chosen, found.rejected, found.tie) == ("four", "five", False)
    assert found.prompt in ("2 and 2?", [USER])


@pytest.mark.parametrize(
    "tie",
    [
        ROWS["HelpSteer2"] | {"preference_strength": 0},
        ROWS["HelpSteer3"] | {"overall_preference": 0},
        ROWS["UltraFeedback"] | {"score_rejected": 8.5},
        ROWS["TRL's chats without a prompt"] | {"score_chosen": 8.0, "score_rejected": 8.0},
    ],
)
def test_ties_are_left_out_and_counted(tie, tmp_path, caplog):
    path = write(tmp_path, [tie, ROWS["RewardBench"], tie])
    with caplog.at_level(logging.WARNING):
        assert len(list(preferences([path]))) == 1
    assert "2 ties left out" in caplog.text


def write(folder, rows, name="pairs.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("other", ["four", " four\n"])
def test_a_pair_whose_sides_are_equal_is_refused_with_its_place(other, tmp_path):
    path = write(tmp_path, [ROWS["HelpSteer2"], ROWS["RewardBench"] | {"rejected": other}])
    with pytest.raises(UsageError, match=r"pairs\.jsonl:2: both sides are the same"):
        list(preferences([path]))


def test_bad_rows_can_be_skipped(tmp_path):
    path = write(tmp_path, [ROWS["RewardBench"] | {"rejected": "four"}, ROWS["HelpSteer2"], {"text": "no pair"}])
    assert [one.chosen for one in preferences([path], "skip")] == ["four"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"prompt": "a", "response_1": "b", "response_2": "c", "preference_strenght": 1},
            "'preference_strenght' is near",
        ),
        ({"prompt": "a", "chosen": "b", "reject": "c"}, "'reject' is near"),
        ({"contexts": [USER], "response1": "b", "response2": "c", "overall_preference": 1}, "'contexts' is near"),
        ({"text": "a"}, "found 'text'"),
        ({}, "found nothing"),
    ],
)
def test_a_mistaken_column_is_told_with_the_nearest_name(row, told):
    with pytest.raises(UsageError, match=told):
        preference(row, "a.jsonl:1")


@pytest.mark.parametrize(
    "row",
    [
        ROWS["HelpSteer2"] | {"preference_strength": 4},
        ROWS["HelpSteer2"] | {"preference_strength": "2"},
        ROWS["HelpSteer2"] | {"preference_strength": True},
        ROWS["HelpSteer2"] | {"response_1": 5},
        ROWS["HelpSteer2"] | {"prompt": " "},
        ROWS["HelpSteer3"] | {"context": [said("hello")]},
        ROWS["HelpSteer3"] | {"context": [{"role": "user"}]},
        ROWS["UltraFeedback"] | {"chosen": [USER]},
        ROWS["UltraFeedback"] | {"chosen": []},
        {"chosen": "no dialogue", "rejected": "none"},
        {"chosen": ROWS["HH-RLHF"]["chosen"], "rejected": "\n\nHuman: 3 and 3?\n\nAssistant: six"},
        {"chosen": "\n\nHuman: 2 and 2?", "rejected": "\n\nHuman: 2 and 2?"},
        {"chosen": [USER, said("four")], "rejected": [said("hm"), USER, said("five")]},
        {"chosen": [USER, said("four")], "rejected": [USER]},
        {"chosen": [said("four")], "rejected": [said("five")]},
        {"chosen": [USER, {"role": "assistant"}], "rejected": [USER, said("five")]},
        {"chosen": [], "rejected": []},
        {"chosen": 4, "rejected": 5},
    ],
)
def test_a_row_that_is_no_preference_is_refused_with_its_place(row):
    with pytest.raises(UsageError, match="a.jsonl:1"):
        preference(row, "a.jsonl:1")


def test_a_dialogue_of_hh_keeps_its_turns_and_lines():
    text = "\n\nHuman: hi\n\nAssistant: hello\n\nHuman: count\n\nto two\n\nAssistant: "
    found = preference({"chosen": f"{text}1\n\n2", "rejected": f"{text}no"}, "a")
    assert [turn["role"] for turn in found.prompt] == ["user", "assistant", "user"]
    assert (found.prompt[-1]["content"], found.chosen) == ("count\n\nto two", "1\n\n2")


def test_the_turns_that_two_chats_share_are_their_prompt(tmp_path):
    turns = [{"role": "system", "content": "Be brief."}, USER, said("four"), {"role": "user", "content": "and 3?"}]
    row = {"chosen": [*turns, said("7")], "rejected": [*turns, said("8")], "score_chosen": 9.0, "score_rejected": 2.0}
    assert preference(row, "a") == Preference(turns, "7", "8")
    domain = RLHF(eval_data=write(tmp_path, [row]))
    assert [(task.prompt, task.answer) for task in domain.tasks("test", 0)] == [(turns, {REFERENCE: "7"})]


def test_turns_inside_a_helpsteer2_prompt_become_messages():
    prompt = "hi\n<extra_id_1>Assistant\nhello\n<extra_id_1>User\ncount"
    found = preference(ROWS["HelpSteer2"] | {"prompt": prompt}, "a")
    assert [(turn["role"], turn["content"]) for turn in found.prompt] == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "count"),
    ]


def test_earlier_turns_of_a_chat_are_part_of_the_prompt():
    turns = [USER, said("four"), {"role": "user", "content": "and 3?"}]
    row = {"prompt": "and 3?", "chosen": [*turns, said("7")], "rejected": [*turns, said("8")]}
    assert preference(row, "a").prompt == turns


def test_a_preference_that_comes_again_is_left_out(tmp_path):
    path = write(tmp_path, [ROWS["HelpSteer2"], ROWS["HelpSteer3"], ROWS["RewardBench"]])
    assert len(list(preferences([path]))) == 1


def test_pairs_of_one_prompt_have_ids_of_their_own(tmp_path):
    path = write(tmp_path, [ROWS["RewardBench"], ROWS["RewardBench"] | {"rejected": "six"}])
    assert len({one.pair.task.id for one in preferences([path])}) == 2
