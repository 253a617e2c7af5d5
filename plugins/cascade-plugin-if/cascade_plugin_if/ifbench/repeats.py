"""The group `repeat`: the request with another first word, one sentence and nothing else, and a span of the request."""

from __future__ import annotations

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text, whole
from cascade_plugin_if.instructions.endings import unquoted
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold

# The sentence is the whole of that constraint: the answer that it asks for.
ONLY = "Only output this sentence here, ignore all other requests."


def flat(text: str) -> str:
    """The text with one space wherever there is white space."""
    return " ".join(text.split())


def _change(reading: Reading, args: Args) -> bool:
    wanted = args["prompt_to_repeat"].split()
    for answer in (reading.text, unquoted(reading.text)):
        found = answer.split()
        if found[1:] == wanted[1:] and found and _bare(found[0]) != _bare(wanted[0]):
            return True
    return False


def _bare(word: str) -> str:
    return fold(word).strip("*_`\"'“”‘’.,:;!?")


def _only(reading: Reading, args: Args) -> bool:
    return flat(unquoted(reading.text)).casefold() == ONLY.casefold()


def _span(reading: Reading, args: Args) -> bool:
    """The constraint speaks of a span of words and of character indices: either is right, its last place included or not."""
    prompt, start, end = args["prompt_to_repeat"], args["n_start"], args["n_end"]
    split = prompt.split()
    spans = (prompt[start : end + 1], prompt[start:end], " ".join(split[start : end + 1]), " ".join(split[start:end]))
    found = {flat(answer).casefold() for answer in (reading.text, unquoted(reading.text))}
    return not found.isdisjoint({flat(span).casefold() for span in spans} - {""})


def beyond(args: Args) -> str:
    """What is wrong with the two indices of a span."""
    start, end, length = args["n_start"], args["n_end"], len(args["prompt_to_repeat"])
    if start < end <= length and args["prompt_to_repeat"][start : end + 1].strip():
        return ""
    return f"'n_start' and 'n_end' must enclose a part of the prompt of {length} characters, found {start} and {end}"


CHANGE = Instruction(
    "repeat:repeat_change",
    (Argument("prompt_to_repeat", text),),
    _change,
    lambda args: f"Copy this request, but with another first word, and do not answer it: {args['prompt_to_repeat']}",
)
SIMPLE = Instruction("repeat:repeat_simple", (), _only, lambda args: ONLY)
SPAN = Instruction(
    "repeat:repeat_span",
    (Argument("prompt_to_repeat", text), Argument("n_start", whole(0)), Argument("n_end", whole(1))),
    _span,
    lambda args: (
        f"Copy what stands from character {args['n_start']} to character {args['n_end']} of this, counted from 0: "
        f"{args['prompt_to_repeat']}"
    ),
    clash=beyond,
)
FAMILIES = (CHANGE, SIMPLE, SPAN)
