"""The groups `copy` and `new`: the request copied once, several times or in part, and a phrase repeated with one word changed."""

from __future__ import annotations

from random import Random

from cascade_plugin_if.ifbench.repeats import beyond, flat
from cascade_plugin_if.ifbench.sequences import as_words
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, text, whole
from cascade_plugin_if.instructions.combinations import SEPARATOR
from cascade_plugin_if.instructions.endings import unquoted
from cascade_plugin_if.reading import Reading

_SPARE = ("calm", "old", "bright", "long", "warm", "green")


def _is_copy(text: str, wanted: str) -> bool:
    """Word for word and in its case; spacing may differ, and quotation marks may stand around it."""
    return flat(text) == flat(wanted) or flat(unquoted(text.strip())) == flat(wanted)


def _copy(reading: Reading, args: Args) -> bool:
    return _is_copy(reading.text, args["prompt_to_repeat"])


def _multiple(reading: Reading, args: Args) -> bool:
    parts = reading.text.split(SEPARATOR)
    return len(parts) == args["N"] and all(_is_copy(part, args["prompt_to_repeat"]) for part in parts)


def _span(reading: Reading, args: Args) -> bool:
    """The characters between the two places; whether the last one belongs to it makes no difference."""
    prompt, start, end = args["prompt_to_repeat"], args["n_start"], args["n_end"]
    return any(span.strip() and _is_copy(reading.text, span) for span in (prompt[start : end + 1], prompt[start:end]))


def _phrases(reading: Reading, args: Args) -> bool:
    """So many runs of words that differ from the phrase in one inner word, and the phrase itself nowhere."""
    wanted, found = as_words(args["phrase"]), reading.folded_words
    size, place, changed = len(wanted), 0, 0
    while place + size <= len(found):
        if found[place] == wanted[0] and found[place + size - 1] == wanted[-1]:
            differing = sum(one != other for one, other in zip(found[place : place + size], wanted, strict=True))
            if differing == 0:
                return False
            if differing == 1:
                changed, place = changed + 1, place + size - 1
        place += 1
    return changed == int(args["small_n"])


def _too_short(args: Args) -> str:
    if len(as_words(args["phrase"])) > 2:
        return ""
    return f"'phrase' must have three words or more, one of which can be replaced, found {args['phrase']!r}"


def _edit_copy(draft: str, args: Args, rng: Random) -> str:
    return str(args["prompt_to_repeat"])


def _edit_multiple(draft: str, args: Args, rng: Random) -> str:
    return f"\n{SEPARATOR}\n".join([args["prompt_to_repeat"]] * args["N"])


def _edit_span(draft: str, args: Args, rng: Random) -> str:
    return str(args["prompt_to_repeat"][args["n_start"] : args["n_end"] + 1].strip())


def _edit_phrases(draft: str, args: Args, rng: Random) -> str:
    words = args["phrase"].split()
    place = len(words) // 2
    changed = [[*words[:place], rng.choice(_SPARE), *words[place + 1 :]] for _ in range(args["small_n"])]
    return " ".join([draft, *(f"So it goes: {' '.join(one)}." for one in changed)])


REQUEST = Argument("prompt_to_repeat", text)
COPY = Instruction(
    "copy:copy",
    (REQUEST,),
    _copy,
    lambda args: f"Copy the following, do nothing of what it says, and add nothing: {args['prompt_to_repeat']}",
    _edit_copy,
)
SIMPLE = Instruction(
    "copy:copying_simple",
    (REQUEST,),
    _copy,
    lambda args: f"Repeat this request as it stands instead of answering it: {args['prompt_to_repeat']}",
    _edit_copy,
)
MULTIPLE = Instruction(
    "copy:copying_multiple",
    (REQUEST, Argument("N", whole(1))),
    _multiple,
    lambda args: (
        f"Instead of an answer repeat this request {counted(args['N'], 'time')}, with {SEPARATOR} between two copies: "
        f"{args['prompt_to_repeat']}"
    ),
    _edit_multiple,
)
SPAN = Instruction(
    "new:copy_span_idx",
    (REQUEST, Argument("n_start", whole(0)), Argument("n_end", whole(1))),
    _span,
    lambda args: (
        f"Copy only what stands from character {args['n_start']} to character {args['n_end']} of this text, counted from 0: "
        f"{args['prompt_to_repeat']}"
    ),
    _edit_span,
    clash=beyond,
)
PHRASES = Instruction(
    "copy:repeat_phrase",
    (Argument("phrase", text), Argument("small_n", whole(1))),
    _phrases,
    lambda args: (
        f'Repeat the phrase "{args["phrase"]}" {counted(args["small_n"], "time")}, each time with another word in place of one in '
        "its middle."
    ),
    _edit_phrases,
    27,
    _too_short,
)
FAMILIES = (COPY, SIMPLE, MULTIPLE, SPAN, PHRASES)
