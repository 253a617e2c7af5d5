r"""The shape of OpenRLHF's reward servers: `{query, prompts, labels}` to `{rewards, scores, extra_logs}`, lists of one length.

A query is prompt and response as one text with all special tokens, so the response is what follows the prompt, up to the first token
that ends a turn (what a model writes behind it is not its answer). A query that does not begin with its prompt, because an engine has cut
it, cannot be judged.

A label says which task it is: `{"domain": …, "id": …}` of a prompts file, a whole row, or, where the service has one domain, the answer
itself (text, number, list) or an object with `answer`. `any_of` in place of `answer` is a list of answers, the best verdict counts. An
object may come as JSON text; keys of it that are null count as absent, since all objects in a column of a Parquet file have the same
keys. A sample that could not be judged has its `errors`, and `null` as reward and score unless the service was told another number: a
client that knows no other shape may need one, and then it is its user who said what that is worth.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cascade_core.domain import Score
from cascade_core.rows import Row
from cascade_core.serve.index import Index
from cascade_core.serve.wire import Refused, a_list, a_name, a_row, an_object, parse, wrong

_KEYS = ("query", "prompts", "labels", "request_id")
_MOST_ANSWERS = 16
_END = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|end_of_text|end|eom_id|return)\|>|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>"
)
_LAST = re.compile(r"(?:\s*(?:</s>|<pad>|<\|pad\|>))+\s*\Z")
_HEADER = re.compile(
    r"\A\s*(?:<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\s*|<start_of_turn>model\n)"
)


def own_turn(text: str) -> str:
    r"""What the model said in its turn: without a role header before it, and up to the token that ends it.

    >>> own_turn("\\boxed{4}<|im_end|>\n<|im_start|>user\nAre you sure?<|im_end|>")
    '\\boxed{4}'
    """
    end = _END.search(text)
    return _LAST.sub("", _HEADER.sub("", text[: end.start()] if end else text))


def read(data: Any, domains: Collection[str], index: Index) -> list[list[Row] | Score]:
    """The rows of each sample, more than one where any of several answers is accepted; a failed score for one that cannot be judged.

    Raises:
        Refused: the request is not of this shape.
    """
    request = an_object(data, _KEYS)
    queries, prompts, labels = (a_list(request.get(name), f"body.{name}") for name in _KEYS[:3])
    if not len(queries) == len(prompts) == len(labels):
        counts = f"{len(queries)}, {len(prompts)} and {len(labels)}"
        raise wrong("body", data, f"lists of one length, found {counts} of query, prompts and labels")
    name = a_name(request["request_id"], "body.request_id") if request.get("request_id") is not None else ""
    found: list[list[Row] | Score] = []
    for number, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True)):
        for field, text in (("query", query), ("prompts", prompt)):
            if not isinstance(text, str):
                raise wrong(f"body.{field}[{number}]", text, "a text")
        where = f"body.labels[{number}]"
        rows = [
            a_row({**row, "response": own_turn(query[len(prompt) :])}, where, domains, index)
            for row in _labelled(label, prompt, where, domains)
        ]
        if not query.startswith(prompt):
            found.append(Score.failed("the query does not begin with its prompt, which an engine has cut or changed"))
        else:
            named = [{**row, "request_id": f"{name}#{number}.{place}"} for place, row in enumerate(rows)]
            found.append(named if name else rows)
    return found


def _labelled(label: Any, prompt: str, where: str, domains: Collection[str]) -> list[Row]:
    """The rows that a label stands for, without a response; their id is the prompt's digest where it has none."""
    label = _opened(label, where)
    if label is None or isinstance(label, bool):
        raise wrong(where, label, "a text, a number, a list or an object")
    given = label if isinstance(label, Mapping) else {"answer": label}
    row: Row = {key: value for key, value in given.items() if value is not None}
    if len(domains) != 1 and "domain" not in row:
        raise wrong(where, label, f"an object with a domain, one of {', '.join(sorted(domains))}")
    if "any_of" in row:
        answers = a_list(row.pop("any_of"), f"{where}.any_of")
        if len(answers) > _MOST_ANSWERS:
            raise wrong(f"{where}.any_of", answers, f"a list of 1 … {_MOST_ANSWERS}")
        return [_complete({**row, "answer": one}, prompt, where) for one in answers]
    return [_complete(row, prompt, where)]


def _complete(row: Row, prompt: str, where: str) -> Row:
    if "answer" not in row:
        if "id" not in row:
            raise wrong(where, row, "an object with an id or an answer")
        return row
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {"prompt": prompt, "id": digest, **row}


def _opened(label: Any, where: str) -> Any:
    """A label that is JSON text of an object (or of such a text) as that object; other texts are answers."""
    for _ in range(2):
        if not isinstance(label, str) or not re.match(r'\s*(?:\{\s*"|"\s*\{)', label):
            return label
        try:
            label = parse(label.encode("utf-8", "surrogatepass"))
        except Refused as cause:
            raise wrong(where, label, f"whole where it is JSON text ({cause})") from None
    return label


def best(verdicts: Sequence[Score]) -> Score:
    """The verdict on a sample that was judged by several answers; an error counts where no answer was right."""
    judged = [score for score in verdicts if score.is_judged]
    highest = max(judged, key=lambda score: score.trained, default=None)
    failed = next((score for score in verdicts if not score.is_judged), None)
    return highest if highest is not None and (failed is None or highest.value == 1.0) else failed or Score.failed("")


def answer(verdicts: Sequence[Score], unjudged: float | None) -> dict[str, Any]:
    """The reply; `unjudged` is what stands for a sample without verdict."""
    rewards = [score.trained if score.is_judged else unjudged for score in verdicts]
    values = [score.value if score.is_judged else unjudged for score in verdicts]
    logs = {
        "cascade_judged": [float(score.is_judged) for score in verdicts],
        "cascade_limit": [float(score.is_limit) for score in verdicts],
        "cascade_value": [score.value if score.is_judged else 0.0 for score in verdicts],
    }
    told: dict[str, Any] = {"rewards": rewards, "scores": values, "extra_logs": logs}
    return {**told, "errors": [score.error for score in verdicts]} if any(s.error for s in verdicts) else told
