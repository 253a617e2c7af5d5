"""What of a text is read: not formulas, code, addresses, tags, quotations, names in brackets, and words that are talked about.

`clean` drops invisible characters (a joiner between two letters hides nothing); `prose` blanks what is not read, keeping every
place, so that a word found in the one stands there in the other. Each rule is one regular expression whose repetitions
cannot be tried in two ways or are bounded: time grows with the length of the text.

A quotation is up to 400 characters of one line: longer ones, and quotation marks that never close, are read.
"""

from __future__ import annotations

import re
import unicodedata

import regex

from cascade_plugin_language.phrases import OPENERS, TONGUES
from cascade_plugin_language.scripts import LETTER, script
from cascade_plugin_language.vocabulary import english

_INVISIBLE = regex.compile(r"[\p{Cf}\x00\u034f\u115f\u1160\u3164\ufe00-\ufe0f]++")
_MARKS = regex.compile(r"(\p{M}{6})\p{M}++")
_TONGUE = "|".join(name.capitalize() for name in TONGUES)
_ASIDE = 60  # characters in brackets
_COMMON = 5.3  # the Zipf value from which a capitalised word opens a sentence and is no name
_STEM = 3.0  # the Zipf value from which what stands before `-ly` or `-ing` is an English word
_THING, _PLURAL = 3.0, 0.8  # the least Zipf value of a noun, and how much rarer its plural may be
_NEAR = 8  # characters before a name that are looked at

_BLOCK = regex.compile(
    r"(?m)^[ \t]*+(?P<fence>```|~~~)[^\n]*+\n(?s:.*?)(?:^[ \t]*+(?P=fence)[^\n]*+$|\Z)"
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)[^`\n]{1,400}(?P=ticks)(?!`)"
    r"|^[ \t]{0,3}>[^\n]*+$"
    r"|^(?:[ ]{4}|\t)[ \t]*+(?![-*+•] |\d+[.)] )(?=[^\n]*[(){}\[\]=;<>#\\|/])[^\n]*+$"
)
_FORMULA = regex.compile(
    r"\$\$[^$]{1,2000}\$\$"
    r"|(?<![\\$\w])\$(?![\s$])[^$\n]{1,400}(?<!\s)\$(?![\d$])"
    r"|\\\([^\n]{1,400}?\\\)"
    r"|\\\[(?s:.{1,2000}?)\\\]"
    r"|\\begin\{(\w+\*?)\}(?s:.{0,2000}?)\\end\{\1\}"
)
_TEXT_IN_FORMULA = regex.compile(
    rf"\\(?:text[a-z]{{0,6}}|mbox|hbox|intertext|emph)\{{(?P<text>[^{{}}]{{1,200}})\}}|(?P<text>(?:(?!\p{{Greek}}){LETTER}){{2,}}+)"
)
_ADDRESS = regex.compile(
    r"(?i:https?://|www\.)[^\s<>，。；、]++"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]++(?:\.[\w-]++)++"
    r"|(?<!\S)[@#][\p{L}\w]{1,40}"
    r"|(?<![\w/])~?\.{0,2}/?[A-Za-z0-9_.-]++(?:/[A-Za-z0-9_.%-]++){2,}+"
    r"|(?<=\d)[ ]?(?:[kcmnμ]?m[²³]?|[kmμ]?g|[kmn]?s|ms|min|h|l|ml|[kMG]?Hz|[kMG]?W|[kM]?J|[kmM]?V|[KMG]?B)(?:/(?:h|s|m[²³]?|l|kg))?(?!\w)"
    r"|<[/!]?[A-Za-z][^<>\n]{0,200}>"
    r"|\\[A-Za-z]++|\[[^\[\]\s]{1,30}-[^\[\]\s]{1,30}\]"
    r"|(?<![A-Za-z0-9_])[A-Za-z]*+[_0-9][A-Za-z0-9_]*+"
)
_FUNCTION = regex.compile(
    r"\b(?:a?(?:sin|cos|tan)h?|arc(?:sin|cos|tan)|sec|csc|cot|log|ln|exp|max|min|mod|gcd|det|dim|ker|arg|sup|inf|lim)"
    r"(?=[ ]?[\p{Greek}(\d²^|]|[ ][a-z]\b)"
)
_QUOTED = regex.compile(
    r"“[^“”\n]{1,400}”|„[^„“”\n]{1,400}[“”]|«[^«»\n]{1,400}»|‹[^‹›\n]{1,400}›|「[^「」\n]{1,400}」|『[^『』\n]{1,400}』|《[^《》\n]{1,400}》"
    r"|(?<![\w\"])\"(?![\s\"])[^\"\n]{1,400}(?<!\s)\"(?!\w)"
    r"|‘[^‘’\n]{1,120}’(?!\w)|(?<!\w)'(?![\s'])[^'\n]{1,120}(?<!\s)'(?!\w)"
    r"|(?<![\w*])\*(?![\s*])[^*\n]{1,80}(?<![\s*])\*(?![\w*])|(?<![\w_])_(?![\s_])[^_\n]{1,80}(?<![\s_])_(?![\w_])"
)
_CAPITALISED = r"\p{Lu}[\p{L}\p{M}'’.-]{0,40}+"
_NAMED = regex.compile(
    rf"(?:(?<![\p{{L}}\p{{M}}])(?P<name>{_CAPITALISED}(?:[ ]{_CAPITALISED}){{0,3}}+)[*_]{{0,3}}+|[”\"»'’]|(?<![:*_])[*_]{{1,3}}+)"
    rf"[ ]?[(（](?P<aside>[^()（）\n]{{1,{_ASIDE}}})[)）]"
)
_OPEN = re.compile(r"[.!?:;\n][\s*_#-]*$")
_SUFFIX = re.compile(r"(\w{4,})(?:ly|ing)")  # four letters before it: Italy and Emily are names
_LABELLED = regex.compile(
    rf"[(（\[](?:[a-z]{{1,12}} )?(?:{_TONGUE})\b[^()（）\[\]\n]{{1,{_ASIDE}}}[)）\]]"
    rf"|\b(?:{_TONGUE}):? {LETTER}{{1,12}}"
)
_MENTION = regex.compile(
    rf"(?i)\b(?:words?|terms?|characters?|letters?|kanji|hanzi|symbols?|glyphs?|radicals?|particle|suffix|prefix|called|named|spelled|written)"
    rf"(?: as)? {LETTER}{{1,8}}(?:(?:,| and| or|, and|, or)? {LETTER}{{1,8}}){{0,4}}"
    rf"|(?<!\p{{L}}){LETTER}{{1,8}}(?= (?:means|denotes|is pronounced|is the (?:word|term|character|symbol|letter)|\(meaning))"
)
_FACE = regex.compile(r"(?<!\S)[^\sA-Za-z0-9]{3,24}(?!\S)|༼[^༽\n]{1,30}༽\S{0,3}")
_OTHER = regex.compile(LETTER)
_OTHERS = regex.compile(f"{LETTER}{{2}}")
_PICTURE = regex.compile(r"[^\w\s.,;:!?'\"“”‘’()\[\]{}（）［］《》「」『』«»，。；：！？、…—–-]")
_NO_FACE = frozenset(("Han", "Hangul"))


def clean(text: str) -> str:
    """The text without invisible characters, accents composed; more than six marks on one letter are cut to six."""
    if "\x00" in text or not text.isascii():
        text = _INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _MARKS.sub(r"\1", text))


def prose(text: str) -> str:
    """The text with everything that is not read replaced by blanks, as long as it was; `text` comes from `clean`."""
    text = _BLOCK.sub(_blank, text)
    text = _FORMULA.sub(_formula, text)
    text = _LABELLED.sub(_blank, _NAMED.sub(_named, text))
    text = _QUOTED.sub(_blank, text)
    if not text.isascii():
        text = _FACE.sub(_face, _MENTION.sub(_blank, text))
    return _FUNCTION.sub(_blank, _ADDRESS.sub(_blank, text))


def _blank(match: regex.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _formula(match: regex.Match[str]) -> str:
    r"""Blanks with the words of `\text{…}` kept, and two letters or more of another script than Greek: no formula has them."""
    kept = [" "] * len(match.group())
    for said in _TEXT_IN_FORMULA.finditer(match.group()):
        kept[said.start("text") : said.end("text")] = said.group("text")
    return "".join(kept)


def _named(match: regex.Match[str]) -> str:
    """Brackets after a name (`Tokyo (東京)`) are blanked; after a word that merely opens a sentence (`So (因此)`) they are not."""
    name = match.group("name")
    if name:
        before = match.string[max(0, match.start() - _NEAR) : match.start()]
        is_first = _OPEN.search(before if match.start() > _NEAR else "\n" + before) is not None
        words = [word.rstrip(".") for word in name.lower().split(" ")]
        if all(map(_only_opens, words)) or (is_first and len(words) == 1 and _is_thing(words[0])):
            return match.group()
    start = match.start("aside") - match.start()
    return match.group()[:start] + " " * (match.end() - match.start() - start)


def _only_opens(word: str) -> bool:
    """Whether a word that has a capital has it for its place: common, an opener, or made from an English word (`clearly`, `using`)."""
    known = english()
    if word in OPENERS or (known.get(word, 0.0) >= _COMMON and "." not in word):
        return True
    made = _SUFFIX.fullmatch(word)
    return made is not None and any(known.get(made[1] + end, 0.0) >= _STEM for end in ("", "e", "le"))


def _is_thing(word: str) -> bool:
    """Whether a word has a common plural, as `diagram` has and Moscow has not; short ones and rare ones say nothing."""
    known = english()
    own = known.get(word, 0.0)
    plural = max(known.get(word + "s", 0.0), known.get(word + "es", 0.0), known.get(word[:-1] + "ies", 0.0))
    return len(word) > 4 and own >= _THING and plural >= own - _PLURAL


def _face(match: regex.Match[str]) -> str:
    """A face made of signs (`ಠ_ಠ`, `¯\\_(ツ)_/¯`) is blanked: lone letters among signs that no sentence has."""
    face = match.group()
    letters = _OTHER.findall(face)
    is_face = letters and not _OTHERS.search(face) and len(letters) <= 4 and _PICTURE.search(face.replace("_", "¯"))
    return _blank(match) if is_face and not _NO_FACE & {script(letter) for letter in letters} else face
