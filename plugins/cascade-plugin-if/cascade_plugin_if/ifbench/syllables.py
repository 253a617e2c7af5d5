"""How many syllables an English word has: groups of vowels, corrected by the rules of English spelling.

A word that is spoken in two ways (`fire`, `every`, `family`) has both counts. Numbers in digits are read out. No dictionary
is loaded, so names and rare loan words may be counted wrong; how often is in `docs/domains/ifbench.md`.
"""

from __future__ import annotations

import functools
import unicodedata

import regex

# Words that the rules get wrong, and words that are spoken in two ways, by their counts.
_LISTED = {
    "1": "yes yet ached asked eye eyes ewe owe owed queue queued tongue tongues rhyme rhymed dye dyed once are were scheme loved moved lived "
    "aisle",
    "2": "people peoples pm vs youtube ruins noah leo zoe mia rio yourself being doing going seeing saying trying buying flying lying dying giant science quiet client lion riot diet poet poem "
    "ruin fluid chaos create neon something someone sometimes sometime somehow someday forest business wednesday "
    "antique boutique colleague colleagues dialogue dialogues catalogue therefore evening whereas theme's maybe something's "
    "lifetime makeup naked sacred wicked rugged ragged crooked hundred cafe being's hotel moment police machine "
    "woman women create creates given even seven heaven open happen garden sudden often listen golden "
    "minute minutes",
    "3": "behavior behaviour behaviors linear ideal area areas idea ideas recipe recipes radio video radios videos studio forever museum museums created creative "
    "creating creation piano pianos karate finale moreover furthermore sesame adobe coyote romeo scientist scientists bicycle "
    "tricycle deity heroic koala oasis quietly violin violins indian opponent employee employees referee refugee guarantee "
    "various serious previous curious obvious glorious envious studious champion theory theories somebody simile eleven medium "
    "stadium premium idiom audio ratio cereal ideal violent violence diamond beautiful musical industry nuclear "
    "continue continued influence reunion unified apartment department determine understand tomorrow "
    "yesterday banana energy poetry period periods",
    "4": "variety society reality anxiety catastrophe apostrophe vigilante canadian historian comedian librarian appreciate "
    "associate initiate negotiate situation situations graduation superior interior exterior material experience experiences "
    "nevertheless ceremony technology biology geology ecology immediate mysterious ridiculous continuous obviously seriously "
    "previously community economy development anybody intelligent activity ability",
    "12": "fire fires tired hire hired wire hour hours our ours flour sour power powers tower towers shower flower flowers towel vowel "
    "bowel real deal oil boil file files while smile smiles mile miles style child wild prayer prayers drawer squirrel choir "
    "fuel cruel jewel dial trial vial iron orange toward towards meal feel years world girl",
    "23": "every favorite favourite different chocolate family camera history several average interest interests general "
    "natural factory battery victory bakery mystery surgery conference reference difference desperate separate prisoner "
    "listener jewelry loyalty royalty actual usual casual visual mutual gradual ritual annual manual virtual warrior barrier "
    "carrier theater theatre salary ivory celery memory memories opera diaper everyone everything million brilliant "
    "realize realized really evening business's traveler cruelty",
    "34": "comfortable vegetable vegetables temperature interesting interested separately actually usually gradually casually "
    "visually naturally generally library february laboratory miserable memorable favorable families histories mysteries "
    "victories batteries everybody restaurant basically typically magically logically practically physically valuable",
}
_EXCEPTIONS = {word: frozenset(map(int, counts)) for counts, text in _LISTED.items() for word in text.split()}
_SMALL = (2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 3, 1, 2, 2, 2, 2, 3, 2, 2)  # zero to nineteen
_TENS = (0, 0, 2, 2, 2, 2, 2, 3, 2, 2)
_SCALES = ((10**9, 2), (10**6, 2), (10**3, 2), (100, 2))
_VOWELS = regex.compile(r"(?!^y[aeiou])[aeiouy]+")
# Two vowels that are spoken apart: create, radio, actual, medium, museum, being, deity, science, heroic.
_APART = regex.compile(
    r"(?<![tcsg])i[ao]|(?<!s|c|t)ie(?=nc|nt|t)|(?<=sc)ie(?=nc|nt)|iu(?=m)|(?<=[cr])eat(?=[eio])|eo(?!us)|(?<![qg])ua(?=[lt])|(?<![qg])ue(?=l\b|nt|nc)"
    r"|uou|eu(?=m)|[aeiouy]ing\b|oe(?=t|m)|oi(?=c\b|ng)|ii|ao|uu|ei(?=ng|t[yi])|[aeiou]y(?=[aou]|er)|ia(?=ti|te)|(?<=[rn])ie(?=r\b|st)|uo(?=us)|iou(?<=[lrvdn]iou)"
)
_SILENT = regex.compile(
    r"(?<=[gq])ue[ds]?$|(?<![aeiouy])(?<!l(?=e))e$|(?<=[aeiouylr]l)e$"  # not the end of `little`
    r"|(?<=[^aeioutdy])(?<![^aeiouyrl]l)ed$|(?<=[aeiouyrl]l)ed$"
    r"|(?<=[^aeiousxzcgy])(?<![^aeiouyrl]l)(?<!sh|ch)es$|(?<=[aeiouyr]l)es$"
    r"|(?<=[bcdfghjkmnprstvwz])e(?=(?:ly|ments?|ful|fully|less|lessly|ness|some|work|line|time|land|wood|thing)$)"
)
_FIERY = regex.compile(r"[aeiouy]?ire[ds]?$")  # said in one syllable or two
_MURMUR = regex.compile(r"[st]hm$|sms?$")


@functools.lru_cache(maxsize=4096)
def counts(word: str) -> frozenset[int]:
    """How many syllables a word may be said to have, each at least 1.

    >>> sorted(counts("regret")), sorted(counts("every")), sorted(counts("sunshine"))
    ([2], [2, 3], [2])
    """
    plain = unicodedata.normalize("NFKD", word[:100].casefold()).encode("ascii", "ignore").decode()
    plain = plain.removesuffix("'s")
    if plain in _EXCEPTIONS:
        return _EXCEPTIONS[plain]
    parts = [part for part in regex.split(r"[^a-z0-9']+", plain) if len(part) > 1]
    if len(parts) < 2:
        count = _count(plain)
        return frozenset((count, count + (_FIERY.search(plain) is not None)))
    totals = {0}
    for part in parts[:20]:
        totals = {total + count for total in totals for count in counts(part)}
    return frozenset(totals)


def _count(word: str) -> int:
    if word.isdigit() and len(word) <= 12:
        return _in_digits(int(word))
    is_not = word.endswith("n't") and word[-4:-3] not in "aeiour"  # `didn't`, but not `don't`, `aren't`
    word = regex.sub(r"[^a-z]", "", word)
    if len(word) <= 3:
        return max(1, len(_VOWELS.findall(word)) - word.endswith("e") * (len(_VOWELS.findall(word)) > 1))
    total = len(_VOWELS.findall(word)) + len(_APART.findall(word))
    if total > 1:
        total -= len(_SILENT.findall(word))
    return max(1, total + is_not + (_MURMUR.search(word) is not None))


def _in_digits(number: int) -> int:
    """Syllables of a number read out in English."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        return _TENS[number // 10] + (_SMALL[number % 10] if number % 10 else 0)
    size, name = next(scale for scale in _SCALES if number >= scale[0])
    rest = number % size
    return _in_digits(number // size) + name + (_in_digits(rest) if rest else 0)
