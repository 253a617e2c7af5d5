"""Text for references: plain English sentences of our own about a topic, cut and lengthened to fit an instruction.

The sentences have no comma, no word in capitals and one stop each, so that most instructions can be met by adding.
They make references that are right, not good.
"""

from __future__ import annotations

import itertools
from random import Random

from cascade_plugin_if.words import words

SENTENCES = tuple(
    line.strip()
    for line in """
    There is always something new to notice about it.
    People come from far away to see it with their own eyes.
    On quiet evenings the whole place smells of rain and bread.
    Nobody remembers who had the idea in the first place.
    A neighbour once spent a whole summer taking care of it.
    The children like to gather there when school is over.
    Small repairs keep it going from one year to the next.
    It looks best in the early morning when the light is soft.
    Some visitors leave with a smile and some with a question.
    The oldest story about it is told every winter by the fire.
    You can hear the wind and a few distant bells.
    Most days pass slowly and that is part of the charm.
    A good plan and a little patience solve nearly every problem.
    The colours change with the season and with the weather.
    Every detail has been made by hand and with great care.
    Those who stay longer begin to see how it all fits together.
    A painter made three pictures of it and gave them away.
    The path that leads there is narrow but easy to follow.
    Old friends meet there to talk about the days gone by.
    It costs nothing and yet it is worth a great deal.
    When the fog lifts the view opens over the whole valley.
    A quiz about it was held in the town hall last spring.
    Even the mayor has learnt to love it over the years.
    The best time for a visit is the first week of autumn.
    """.splitlines()
    if line.strip()
)
ITEMS = (
    "a warm welcome",
    "fresh bread and honey",
    "quiet places to rest",
    "stories from the past",
    "a walk along the water",
    "music in the evening",
    "tools for small repairs",
    "a view over the roofs",
    "friendly neighbours",
    "time to think",
    "seeds for the garden",
    "a lamp in the window",
)
TITLES = ("a walk at dawn", "the long way home", "small wonders", "what the wind knows", "an open door", "quiet days")
# A few sentences a language, our own: only these languages are asked for.
LANGUAGES = {
    "fr": ("Chaque matin, les habitants ouvrent leurs fenêtres et saluent leurs voisins. Le soir, on se retrouve "
           "autour d'une grande table pour partager le repas."),
    "de": ("Jeden Morgen öffnen die Leute ihre Fenster und grüßen die Nachbarn. Am Abend sitzen alle an einem großen "
           "Tisch und essen gemeinsam."),
    "es": ("Cada mañana los vecinos abren las ventanas y se saludan con alegría. Por la noche todos se reúnen "
           "alrededor de una mesa grande para cenar."),
    "it": ("Ogni mattina gli abitanti aprono le finestre e salutano i vicini. La sera tutti si ritrovano attorno a un "
           "grande tavolo per la cena."),
    "pt": ("Todas as manhãs os moradores abrem as janelas e cumprimentam os vizinhos. À noite todos se juntam à volta "
           "de uma grande mesa para jantar."),
    "nl": ("Elke ochtend openen de mensen hun ramen en groeten ze de buren. 's Avonds zit iedereen samen aan een grote "
           "tafel om te eten."),
    "pl": ("Każdego ranka mieszkańcy otwierają okna i pozdrawiają sąsiadów. Wieczorem wszyscy spotykają się przy "
           "dużym stole na kolacji."),
    "ru": ("Каждое утро жители открывают окна и здороваются с соседями. Вечером все собираются за большим столом "
           "на ужин."),
    "fi": ("Joka aamu asukkaat avaavat ikkunansa ja tervehtivät naapureitaan. Illalla kaikki kokoontuvat suuren "
           "pöydän ääreen syömään."),
    "vi": "Mỗi buổi sáng người dân mở cửa sổ và chào hàng xóm. Buổi tối mọi người cùng ngồi ăn quanh một cái bàn lớn.",
    "hi": "हर सुबह लोग अपनी खिड़कियाँ खोलते हैं और पड़ोसियों को नमस्ते करते हैं। शाम को सब लोग एक बड़ी मेज़ पर साथ खाना खाते हैं।",
    "ko": "매일 아침 사람들은 창문을 열고 이웃에게 인사합니다. 저녁에는 모두 큰 식탁에 모여 함께 식사합니다.",
}  # fmt: skip


def opening(topic: str, rng: Random, count: int) -> str:
    """A draft about a topic: one sentence that names it, and `count - 1` others."""
    first = f"This is about {topic} and the people around it."
    return " ".join([first, *rng.sample(SENTENCES, min(count - 1, len(SENTENCES)))])


def sentences(draft: str) -> list[str]:
    """The sentences of a draft made here."""
    parts = (part.strip(" .") for part in draft.replace("\n", " ").split(". "))
    return [f"{part}." for part in parts if part]


def with_sentences(draft: str, relation: str, count: int, rng: Random) -> str:
    """The draft with `count` sentences: fewer are filled up, more are cut unless more are allowed."""
    parts = sentences(draft)
    while len(parts) < count:
        parts.append(rng.choice(SENTENCES))
    return " ".join(parts if relation in ("at least", "more than") else parts[:count])


def with_words(draft: str, relation: str, count: int, rng: Random) -> str:
    """The draft with at least, or at most, `count` words."""
    if relation in ("at least", "more than"):
        while len(words(draft)) < count:
            draft = f"{draft} {rng.choice(SENTENCES)}"
        return draft
    if len(words(draft)) <= count and relation != "exactly":
        return draft
    while len(words(draft)) < count:
        draft = f"{draft} {rng.choice(SENTENCES)}"
    return " ".join(draft.split()[:count]).rstrip(".") + "."


def split(draft: str, count: int, rng: Random) -> list[str]:
    """The draft in `count` parts that differ."""
    if "\n" in draft:
        head, _, rest = draft.partition("\n")
        return [*split(head, count, rng)[:-1], split(head, count, rng)[-1] + "\n" + rest]
    parts = sentences(draft)
    spare = [sentence for sentence in SENTENCES if sentence not in parts]
    rng.shuffle(spare)
    parts += spare[: max(0, count - len(parts))]
    size, more = divmod(len(parts), count)
    cuts = [place * size + min(place, more) for place in range(count + 1)]
    return [" ".join(parts[start:end]) for start, end in itertools.pairwise(cuts)]


def items(count: int, rng: Random) -> list[str]:
    """Short phrases that differ, for lists."""
    return rng.sample(ITEMS, min(count, len(ITEMS)))


def highlighted(draft: str, count: int) -> str:
    """The draft with its first `count` longer words between asterisks."""
    parts = draft.split(" ")
    for place, part in enumerate(parts):
        if count > 0 and len(part) > 3 and part.isalpha():
            parts[place], count = f"*{part}*", count - 1
    return " ".join(parts)


def in_language(code: str, rng: Random) -> str:
    """Two sentences in a language of `LANGUAGES`; English in any other case is not offered.

    Raises:
        KeyError: there are none in that language.
    """
    return LANGUAGES[code]
