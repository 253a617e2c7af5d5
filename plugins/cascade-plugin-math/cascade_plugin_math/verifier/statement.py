"""The stated final answer of a response without a box: `Final answer: 2/3`, `<answer>7</answer>`, `So they pay $12.`

In this order: answer tags, a phrase that announces the answer, the conclusion of the last sentence. A number that merely
occurs is never taken, nor one that a sentence denies, doubts, bounds or supposes.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<answer>([^<]*(?:<(?!/?answer>)[^<]*)*)</answer>", re.I)
_TAG_JOINT = re.compile(r"[\s,;.]*(?:and|or)?[\s,;.]*", re.I)
_SKIPPED = r"(?:therefore|thus|hence|simply|just|exactly|indeed|then|also|now|clearly|equal to|given by|as follows|the following|the number|the value)"
_CUE = re.compile(
    r"(?:\b(?:final|correct|right)\s+|\b)(?:answers?|result|solutions?|antwort|r[ée]ponse|respuesta|risposta|ответ)\b(?:\s+(?:to|of|for|in)\s+[^.:=\n]{1,60}?)?"
    rf"[*_\s]*(?:\b(?:is|are|equals|comes to|becomes|would be|must be|should be|lautet|ist|es|est)\b|[:：=—–→]|-(?=\s))[*_\s]*:?[*_\s]*(?:{_SKIPPED}\b[,:\s]*)*"
    r"|\banswer\*{0,2}\s*\n+|\banswer\*{0,2}\s+(?=(?:\$\$?[^$]{1,300}\$\$?|\\\([\s\S]{1,300}?\\\)|\\\[[\s\S]{1,300}?\\\])\s*\.?\s*(?:\n|$))|####\s*|答案(?:是|为|：|:)?\s*",
    re.I,
)
_SUPPOSED = re.compile(
    r"\b(?:if|whether|suppose|assume|assuming|unless|were|imagine|once|cannot|can't|not|false|doubt|doubtful|deny|wrong|nobody|unlikely|unclear)\b"
    r"[^.!?,;\n]{0,40}$|\bno\s+(?:such\s+)?$",
    re.I,
)
_SENTENCE_END = re.compile(r"(?<![A-Z])[.!?](?=\s|$)|\n\s*\n|\n(?=\s*[A-Z*#])")
# Names of mathematics that follow a minus sign, `x - log x`, where other words begin a remark.
_NAMES = (
    "sqrt|sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|arc[a-z]+|log|exp|abs|max|min|gcd|lcm|floor|ceil|"
    "alpha|beta|gamma|delta|epsilon|theta|lambda|sigma|omega|phi|psi|rho|tau"
)
_REASON = re.compile(
    rf"[,;]?\s+(?:because|since|as|which|so|where|due to|and (?:not|so|this|that)|but|for|when)\b.*$|[,;]\s+(?:not|rather than|instead of|attained|achieved|reached|obtained|found|occurring|at|with)\b.*$|\s+—\s+.*$|\s+[–-]\s+(?:(?:an?|the|it|this|that|so|my)\s+[a-z]{{2,}}|(?!(?:{_NAMES})\b)[A-Za-z]{{3,}}\b(?!\()).*$|\s*\(\s*(?:because|since|see|as)\b.*$",
    re.S | re.I,
)
_UNSURE = re.compile(
    r"\b(?:not|n't|never|no|none|cannot|can't|could|might|may|maybe|perhaps|possibly|probably|guess|unless|if|suppose|assume|unable|unknown|unclear|"
    r"either|neither|at most|at least|less than|more than|fewer than|greater than|between|about|around|roughly|stop|wrong|incorrect|"
    r"mentioned|contradiction|impossible|example|hope|doubt|doubtful|false|whether|nobody|deny|unlikely)\b|\?|n't\b",
    re.I,
)
_CONNECTIVE = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|altogether|in total|in all|finally|overall|it follows that)\b,?\s*",
    re.I,
)
_DONE = re.compile(
    r"\b(?:earn|pay|spend|sell|save|owe|receive|need|take|travel|walk|use|make|get|paid|spent|sold|took|made|got)(?:s|d|ed)?\s+(\S{1,60}?)[\s.]*$",
    re.I,
)
_SUMMED = re.compile(r"\b(?:altogether|in total|in all)\W*$", re.I)
_COPULA = re.compile(
    r"\b(?:is|are|was|were|equals?|gives?|(?:get|obtain|have|find|conclude|deduce)(?:\s+that)?|costs?|makes?|becomes|yields?)\b\s*(?:exactly\s+|equal to\s+)?:?",
    re.I,
)
_QUANTITY = re.compile(
    r"\$(?!\d[^$\n]*(?<![\\A-Za-z])[A-Za-z]{3,}[^$\n]*\$)[^$\n]{1,200}\$|\\\(.{1,200}?\\\)|\\\[.{1,200}?\\\]|"
    r"[-−]?[$€£]?\d[\d.,/:\u202f\u00a0]*\d\s*%?|[-−]?[$€£]?\d\s*%?"
)
_BARE = re.compile(r"(?![^\d]*$)(?!.*[A-Za-z]{2})[\w\s+\-−*/^.,()\[\]{}\\$%=°π√²³]+")
_FORMULA = re.compile(
    r"(?<!\\)\$(?![\d.]+(?:\s|$|[.,;]\s|[.,;]$))[^$\n]{1,300}(?<!\\)\$|\\\(.{1,300}?\\\)|\\\[.{1,300}?\\\]", re.S
)
_THERE = re.compile(r"there\b", re.I)
_REMARK = re.compile(r"\s+\((?!or\b)[^()\d$\\]*[a-z]{3,}[^()\d$\\]*\)\s*[.!]?\s*$")
_TOTAL = re.compile(r"^(?:a|an|the)\s+(?:total|sum|value|grand total)\s+(?:of\s+)?", re.I)
_NOT_BUT = re.compile(r"^not\s+[^.]{1,60}?\s+but\s+(?:rather\s+)?", re.I)
_REVERSED = re.compile(
    r"^(.{1,80}?)\s+(?:is|are)\s+(?:the|my|our)\s+(?:final\s+|correct\s+)?(?:answer|result|solution)s?\W*$", re.I
)
_MARKDOWN = re.compile(r"(?:(?<![\w)])|(?<=[A-Za-z]{2}))\*\*|\*\*(?![\w(])|__|`+|^#+\s*", re.M)
# Words that belong to no answer: marks of a chat's turns that came out as text, and a wish at the end.
_TURN = re.compile(
    r"(?:\s*(?:<\|[a-z_]{2,24}\|>|</?s>|<(?:end|start)_of_turn>|<eos>)(?:(?:user|assistant|system|model)\b)?)+\s*$"
)
_WISH = re.compile(
    r"(?<=[.!$*\])])\s+(?:I|We)\s+hope\s+(?:(?:that|it|this|the)\s+)*(?:(?:answer|solution)\s+)?"
    r"(?:(?:is|was)\s+(?:correct|right|helpful|clear)|helps?(?:\s+you)?)\s*[.!]?\s*$"
)
_FORMULA_ALONE = re.compile(
    r"(?:\$\$([^$]+)\$\$|\$([^$]+)\$|\\\[((?:(?!\\\]).)+)\\\]|\\\(((?:(?!\\\)).)+)\\\))\s*\.?", re.S
)
_RELATIVE = re.compile(r"\b(?:that|which|who)\s+(?:could|can|might|may)\b", re.I)  # `the most that could be drawn is 5`
_OPENING = re.compile(r"[*_\s]*(?:(?:so|thus|hence|therefore),?\s+)?(?:(?:the|my|our)\s+)?[*_\s]*", re.I)
_WINDOW = 4000


def stated(text: str) -> str | None:
    """The stated final answer, cleaned of markup; `None` where none is stated."""
    text = finished(text)
    in_tags = tagged(text)
    if in_tags is not None:
        return in_tags
    announced = announcement(text)
    if announced is not None:
        return announced
    alone = _FORMULA_ALONE.fullmatch(text.strip()) if len(text) <= _WINDOW else None
    if alone:  # a formula and nothing else, also one of words
        content = next(part for part in alone.groups() if part is not None).strip()
        return None if _UNSURE.search(content) else content
    return _concluded(_MARKDOWN.sub("", _folded(text[-_WINDOW:])).strip())


def whole(text: str) -> str:
    """All of a short response that is nothing but its answer, or announces it and says no more; with its marks of turns."""
    opening = _OPENING.match(text)
    cue = _CUE.match(text, opening.end() if opening else 0)
    return text[cue.end() :] if cue else text


def finished(text: str) -> str:
    """The text without marks of turns at its end, and without a closing `I hope it is correct.`"""
    tail = text[-400:]
    shorter = _TURN.sub("", tail) if "<" in tail else tail
    shorter = _WISH.sub("", shorter) if "hope" in shorter else shorter
    return text if shorter is tail else text[:-400] + shorter


def _folded(text: str) -> str:
    """The text with runs of blanks, and of empty lines, made short."""
    return re.sub(r"\n\s*\n", "\n\n", re.sub(r"[^\S\n]+", " ", text))


def announcement(text: str) -> str | None:
    """What follows the last phrase that announces an answer, up to the end of its sentence."""
    text = _folded(text[-_WINDOW * 4 :])
    for match in reversed(list(_CUE.finditer(text))):
        if _SUPPOSED.search(text, max(0, match.start() - 60), match.start()):
            continue
        said, mark = _until_end(text[match.end() : match.end() + _WINDOW])
        if mark == "?":  # asked, not stated
            continue
        rest = _clean(_NOT_BUT.sub("", said))
        if rest:
            return _said(rest)
    return None


def _said(rest: str) -> str:
    """An announced sentence's own predicate: `The largest n is 34`."""
    if not re.match(r"[A-Za-z]{2,}\s", rest) or _UNSURE.search(_RELATIVE.sub("", rest)):
        return rest
    value = _predicate(rest)
    return value if value and value != rest and _QUANTITY.search(value) else rest


def tagged(text: str) -> str | None:
    """What stands in the last answer tag, or group of tags."""
    tags = list(_TAG.finditer(text[-200_000:]))
    return _tagged(text[-200_000:], tags) if tags else None


def _tagged(text: str, tags: list[re.Match[str]]) -> str:
    group = [tags[-1]]
    for tag in reversed(tags[:-1]):
        if not _TAG_JOINT.fullmatch(text[tag.end() : group[0].start()][:80]):
            break
        group.insert(0, tag)
    contents = list(dict.fromkeys(tag[1].strip() for tag in group))
    return ", ".join(contents) if len(contents) > 1 else _clean(contents[0])


def _until_end(text: str) -> tuple[str, str]:
    """A sentence, and the sign that ends it."""
    text = text.lstrip()
    end = _SENTENCE_END.search(text)
    return (text[: end.start()], end[0]) if end else (text, "")


def _clean(text: str) -> str:
    text = _REMARK.sub("", _REASON.sub("", _MARKDOWN.sub("", text)).strip())
    text = _TOTAL.sub("", text, count=1).strip().rstrip(".,;:!")  # before the delimiters go: `$26!$` is a factorial
    return _undelimited(text).strip().rstrip(".,;:").strip()


def _undelimited(text: str) -> str:
    """The text without the signs that delimit mathematics; a dollar sign before an amount stays."""
    text = re.sub(r"\\[()\[\]]|\$\$", " ", text)
    if text.count("$") > 1 and len(re.findall(r"(?<!\\)\$(?=\d)", text)) == text.count("$"):
        return re.sub(r"\$", r"\\$", text)  # amounts, not delimiters: `$5 + $7 = $12`
    pairs = re.findall(r"\$[^$]*\$", text)
    if any(re.search(r"(?<![\\A-Za-z])[A-Za-z]{3,}\s", pair) for pair in pairs):
        return text
    return re.sub(r"(?<!\\)\$([^$]*?)(?<!\\)\$", r" \1 ", text)


def _concluded(text: str) -> str | None:
    """The value that the last sentence concludes with, if it concludes with one."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if text[match.end() :].strip()]
    sentence = text[ends[-1] if ends else 0 :].strip()
    if not sentence or len(sentence) > 600 or _UNSURE.search(sentence):
        return None
    connectives = list(_CONNECTIVE.finditer(sentence))
    inner = [match for match in connectives if _QUANTITY.search(sentence, match.end())]
    clause = sentence[inner[-1].end() :] if inner else sentence
    reversed_ = _REVERSED.match(clause)
    if reversed_:
        return _clean(reversed_[1])
    value = _predicate(clause) if inner or not _THERE.match(clause) else None
    if value is not None:
        return value if _QUANTITY.search(value) or len(value) < 30 else None
    quantities = _QUANTITY.findall(clause)
    if (inner or _SUMMED.search(sentence)) and len(quantities) == 1:
        return _with_unit(clause, quantities[0])
    done = _DONE.search(clause) if inner else None
    if done and _QUANTITY.fullmatch(done[1].strip()):
        return _undelimited(done[1]).strip()  # `so for 8 hours she earns $72`
    return _undelimited(sentence).rstrip(".").strip() if _is_alone(sentence.rstrip("."), text) else None


def _is_alone(sentence: str, text: str) -> bool:
    """Whether a sentence is a value and nothing else; one without a sign of being one must be all of the text."""
    if _QUANTITY.fullmatch(sentence):
        return True
    if sentence.count("{") != sentence.count("}"):
        return False
    bare = re.sub(r"\\[A-Za-z]+|\b(?:percent|pct)\b", "1", sentence)
    return sentence == text.rstrip(".") and len(text) <= 200 and "\n" not in text and _BARE.fullmatch(bare) is not None


def _predicate(clause: str) -> str | None:
    """What a clause says its subject is: after its last verb, or all of it where it is nothing but formulas."""
    hidden = _FORMULA.sub(lambda match: "\0" * len(match[0]), clause)
    verbs = list(_COPULA.finditer(hidden))
    if verbs:
        return _clean(clause[verbs[-1].end() :])
    if "\0" in hidden and re.fullmatch(r"(?:[\0\s.,;$]|\b(?:and|or)\b)+", hidden):
        return _clean(clause)
    signs = [at for at, char in enumerate(hidden) if char == "="]
    if len(signs) == 1 and re.fullmatch(r"[\d\s.+*/^()−-]+", clause[: signs[0]]):
        return _clean(clause)  # `7 = 8` is no 8
    return _clean(clause[signs[-1] + 1 :]) if signs else None


def _with_unit(clause: str, quantity: str) -> str:
    after = clause[clause.index(quantity) + len(quantity) :]
    word = re.match(r"\s*([A-Za-z]{2,20})\b", after)
    keep = (
        word[1]
        if word and word[1].lower() not in ("in", "for", "on", "at", "and", "of", "to", "by", "with", "more", "each")
        else ""
    )
    return f"{_undelimited(quantity).strip().rstrip('.,')} {keep}".strip()
