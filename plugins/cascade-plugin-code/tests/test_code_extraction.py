"""The program in an answer: fences as CommonMark reads them, tags, what is no program, and the bounds on time."""

import json
import time
from pathlib import Path

import pytest
from cascade_plugin_code.domain import fenced
from cascade_plugin_code.extraction import blocks, program
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import Response

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data" / "code_cases.jsonl").read_text().splitlines()]
STATED = [row for row in ROWS if "reference_extraction" in row["input"]]
# Debatable rows that our rules (docs/domains/code.md) decide the other way: an unclosed block and text without any are
# taken under `bare` alone, and blocks are never joined.
ONLY_BARE = {"code-extraction-05", "code-extraction-07"}
NEVER = {"code-extraction-27"}
CODE = "a,b=map(int,input().split())\nprint(a+b)"


@pytest.mark.parametrize("row", STATED, ids=lambda row: row["id"])
def test_the_program_of_a_hard_case_is_found(row):
    expected = row["input"]["reference_extraction"]
    answer = Response(row["input"]["response"]).answer
    strict, bare = program(answer).program, program(answer, bare=True).program
    assert (strict == expected) is (row["id"] not in ONLY_BARE | NEVER)
    assert (bare == expected) is (row["id"] not in NEVER)


def test_only_debatable_rows_are_decided_another_way():
    assert all(row.get("debatable") for row in ROWS if row["id"] in ONLY_BARE | NEVER)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("```\nx\n```", "x"),
        ("```py\nx\n```", "x"),
        ("``` python\nx\n```", "x"),
        ("```{ .python .numberLines }\nx\n```", "x"),
        ('```python title="main.py"\nx\n```', "x"),
        ("```python:main.py\nx\n```", "x"),
        ("```python3.11\nx\n```", "x"),
        ("```language-python\nx\n```", "x"),
        ("```solution\nx\n```", "x"),
        ("~~~\nx\n~~~~", "x"),
        ("~~~ python `quoted` ~~~\nx\n~~~", "x"),
        ("```python\nx\n`````", "x"),
        ("`````python\nx\n```\ny\n`````", "x\n```\ny"),
        ("```python\nx\n~~~\ny\n```", "x\n~~~\ny"),
        ("~~~python\nx\n```\ny\n~~~", "x\n```\ny"),
        ("```python\nx\n``` \t", "x"),
        ("```python\nx\n```<|im_end|>\n<|endoftext|>", "x"),
        ("<answer>```python\nx\n```</answer>", "x"),
        ("<answer>```\nx\n```</answer>", "x"),
        ("<answer>``` x ```\n```\ny\n```", "y"),
        ("<answer>\n```python\nx\n``` </answer><|im_end|>", "x"),
        ("```python\nx\n```</ answer>\ny\n```", "x\n```</ answer>\ny"),
        ("```python\nx\n``` </s>", "x"),
        ("```python\r\nx\r\ny\r\n```\r\n", "x\ny"),
        ("```python\rx\r```", "x"),
        ("  ```python\n  if x:\n      y\n  ```", "if x:\n    y"),
        ("1. So:\n\n   ```python\n   x\n   ```\n", "x"),
        ("- So:\n    ```python\n    x\n    y\n    ```\n", "x\ny"),
        ("- ```python\n  x\n  ```\n", "x"),
        ("> ```python\n> x\n> y\n> ```\n", "x\ny"),
        ('```python\ns = """\n    ```\n    """\nx\n```', 's = """\n    ```\n    """\nx'),
        ("```python\nx\n\n```", "x\n"),
        ("```python\nx\n```\n```python\ny\n```", "y"),
        ("```python\nx\n```\n```cpp\ny\n```", "x"),
        ("```\nx\n```\nthe output is\n```text\ny\n```", "x"),
        ("```python\nx\n```\n```json\n{}\n```", "x"),
        ("```\nx\n```\n```\ny\n```", "y"),
        ("```answer\nx\n```\n```\ny\n```", "y"),
        ("```python\nx\n```\n```python\n\n```", "x"),
        ("```python\nx\n```\nor better\n```python\ny", "x"),
        ("text ```python\nx\n```\n```python\ny\n```", "y"),
        ("```python\na = '\x0b\x0c\u2028\x1c'\n```", "a = '\x0b\x0c\u2028\x1c'"),
        ("```python\n\ufeffx\n```", "\ufeffx"),
        ("```python\nx\n```<|eot_id|>assistant", "x"),
        ("```python\nx\n```<｜end▁of▁sentence｜>", "x"),
        ("````markdown\n# So\n```python\nx\n```\n````\n", "x"),
        ("```md\n```python\nx\n```\n```", "x"),
        ("````md\n```python\nx\n```\n````\n```python\ny\n```", "y"),
        ("\ufeff```python\nx\n```", "x"),
        ("So: ```python\nx\n```", "x"),
        ("Use `f`: ```cpp\nx\n```\n```python\ny\n```", "y"),
        ("```python\nx\ny```", "x\ny"),
        ("```python\nx\ny```<|im_end|>\n", "x\ny"),
        ("<answer>\n```python\nx\n```\n</answer>", "x"),
    ],
)
def test_a_block_is_read_as_a_reader_would(answer, expected):
    assert program(answer).program == expected


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "thought"),
        ("", "no fenced block"),
        ("print(1)", "no fenced block"),
        ("```python\nx", "not closed"),
        ("```python", "not closed"),
        ("```python\nx `y`", "not closed"),
        ("```python\ns = '```'", "not closed"),
        ("```python\nx```\ny", "not closed"),
        ("so: ```text\nx\n", "no fenced block"),
        ("so: ```python x", "no fenced block"),
        ("```python\nx\n``", "not closed"),
        ("````python\nx\n```", "not closed"),
        ("```python\nx\n~~~", "not closed"),
        ("```python\nx\n``` done", "not closed"),
        ("> ```python\n> x\n```", "not closed"),
        ("```python x```", "no fenced block"),
        ("``python\nx\n``", "no fenced block"),
        ("```python\n \t\n```", "empty"),
        ("```python\n```", "empty"),
        ("```java\nx\n```", "java"),
        ("```bash\nx\n```", "bash"),
        ("```markdown\nx\n```", "markdown"),
        ("```markdown\n```python\nx", "not closed"),
        ("```output\n5\n```", "output"),
    ],
)
def test_what_is_no_program_is_named(answer, reason):
    found = program(answer)
    assert found.program is None and found.reason.startswith("no program: ") and reason in found.reason


def test_what_was_thought_holds_no_program():
    thought = f"<think>\n```python\n{CODE}\n```\n</think>\n"
    assert program(Response(thought).answer).program is None
    assert program(Response(thought + "```python\nx\n```").answer).program == "x"
    assert program(Response(f"<think>\n```python\n{CODE}\n```").answer).program is None


@pytest.mark.parametrize("tag", ["cpp", "C++", "cc", "c++17", "cpp20"])
def test_the_language_of_the_task_says_which_tag_is_a_program(tag):
    answer = f"```python\nx\n```\n```{tag}\ny\n```\n```bash\ng++ y\n```"
    assert program(answer, "c++17").program == "y"
    assert program(answer, "python").program == "x"


def test_bare_takes_text_without_its_end_of_turn():
    assert program("x = 1\r\nprint(x)\n<|im_end|> \n</s>", bare=True).program == "x = 1\nprint(x)"
    assert program(" \n", bare=True).program is None
    assert program("```bash\nls\n```", bare=True).program is None


lines = st.lists(
    st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=12)
    | st.sampled_from(["```", "~~~", "````", "    ```", "```python", "> ```", "'''", "\t", "- ```", "<|im_end|>"]),
    min_size=1,
    max_size=8,
).filter(lambda lines: any(line.strip() for line in lines))


@given(
    lines,
    st.sampled_from(["", "Here it is:\n\n", "```bash\nls\n```\n"]),
    st.sampled_from(["", "\nDone.", "<|im_end|>"]),
)
def test_a_fenced_program_is_read_back_as_it_is(source, before, after):
    text = "\n".join(source)
    assert program(before + fenced(text, "python") + after).program == text


@given(st.text(st.sampled_from("`~ \t\n\r>-1.pyxn{}<|>"), max_size=80))
def test_any_text_has_blocks_that_lie_in_it(text):
    for block in blocks(text):
        assert all(line in text for line in block.text.split("\n"))


@given(st.lists(st.sampled_from(["```python", "```", "````", "x", "~~~", "  ```", "~~~~ py", ""]), max_size=12))
def test_blocks_are_those_of_another_commonmark_parser(source):
    from markdown_it import MarkdownIt

    text = "\n".join(source)
    theirs = [token.content for token in MarkdownIt("commonmark").parse(text) if token.type == "fence"]
    ours = [block.text + "\n" if block.text else "" for block in blocks(text)]
    assert [block.rstrip("\n") for block in ours] == [block.rstrip("\n") for block in theirs]


HOSTILE = {
    "backticks": "`" * 1_000_000,
    "fences": "```\n" * 300_000,
    "openings": "```python\n" * 150_000,
    "tags": "<answer>" * 100_000 + ("<" + "a" * 40) * 10_000,
    "broken openings": ("`" * 50_000 + "x`\n") * 20,
    "blanks": " " * 1_000_000 + "```python",
    "tabs": ("\t" * 1_000 + "```python\n") * 1_000,
    "indented lines": " " * 5_000 + "```python\n" + (" " * 5_000 + "x\n") * 300,
    "quotes": "> " * 500_000,
    "tokens": "```python\nx\n```" + "<|im_end|>" * 100_000,
    "open tokens": "```python\nx\n```" + "<|" * 300_000,
    "tag": "```" + "a" * 1_000_000 + "\nx\n```",
    "braces": "```" + "{" * 1_000_000 + "\nx\n```",
    "fences behind code": "```python\nx" + "`" * 500_000 + "x",
    "fence behind words": "words" + "`" * 500_000 + "python",
    "nul": "```python\n\x00\n```" * 50_000,
    "surrogates": "```python\n" + "\ud800" * 500_000 + "\n```",
    "white space": "x" + "\n " * 500_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("bare", [False, True])
def test_a_hostile_answer_costs_little(name, bare):
    begun = time.process_time()
    program(HOSTILE[name], bare=bare)
    assert time.process_time() - begun < 3.0
