"""Base prompts of our own: a form and a topic, no comma in either, so that any instruction can stand behind them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

FORMS = (
    "Write a short story about {topic}.",
    "Describe {topic} to someone who has never seen such a thing.",
    "Write a letter to a friend about {topic}.",
    "Explain why {topic} matters to a small town.",
    "Write a cheerful advertisement for {topic}.",
    "Give a newcomer advice about {topic}.",
    "Write a diary entry about {topic}.",
    "Tell a child something surprising about {topic}.",
    "Write a speech in praise of {topic}.",
    "Write a complaint about {topic}.",
    "Compare {topic} with your favourite place.",
    "Write a riddle whose answer is {topic}.",
    "Suggest three ways to photograph {topic}.",
    "Write a news report about {topic}.",
    "Write a postcard that mentions {topic}.",
    "Invent a legend about {topic}.",
    "Write a review of a film about {topic}.",
    "Plan a school trip that ends at {topic}.",
)
TOPICS = tuple(
    topic.strip()
    for topic in """an old lighthouse|the night train|a garden of herbs|the village bakery|a broken clock|the river ferry
    a paper lantern|the mountain hut|a lost umbrella|the music school|a wooden bridge|the winter market
    a blue bicycle|the harbour crane|a talking parrot|the town library|a field of sunflowers|the desert road
    a rusty telescope|the corner tea house|a stubborn donkey|the city fountain|a box of letters|the glass workshop
    an empty theatre|the apple orchard|a sleeping volcano|the fish auction|a secret staircase|the radio tower
    a hand-drawn map|the island post office|a runaway kite|the stone quarry|a forgotten recipe|the tram depot
    a snow globe|the weather station|a patchwork quilt|the canal lock""".replace("\n", "|").split("|")
)


@dataclass(frozen=True)
class Base:
    """A request without instructions, and the thing it is about."""

    prompt: str
    topic: str


def draw(rng: Random) -> Base:
    """One of the base prompts."""
    topic = rng.choice(TOPICS)
    return Base(rng.choice(FORMS).format(topic=topic), topic)


def question(base: Base) -> Base:
    """The base prompt turned into a question that yes, no or maybe can answer."""
    return Base(f"Should every town have something like {base.topic}?", base.topic)
