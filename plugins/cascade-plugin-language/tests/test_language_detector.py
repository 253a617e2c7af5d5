"""What counts as another language and what does not, rule by rule; properties that hold for any clean answer."""

from __future__ import annotations

import pytest
from cascade_plugin_language.detector import find
from cascade_plugin_language.prompt import is_english, leave
from hypothesis import given, settings
from hypothesis import strategies as st

CLEAN = [
    "We fix one person and let the others sit in any order, which gives 120 ways in all.",
    "The train leaves at noon, and since it is slow the trip takes about three hours.",
    "Every even number above two is the sum of two primes, or so it is believed.",
    "First we sort the list, then we look at each pair of neighbours in turn.",
]
# fmt: off
FOREIGN = [
    "Mañana iremos al mercado con mi hermana.", "Esto no tiene ningún sentido.", "Nous sommes arrivés hier soir.", "Elle ne veut pas venir.",
    "Ich habe heute keine Zeit.", "Das Ergebnis stimmt leider nicht.", "Domani andiamo tutti al mare.", "Non so cosa dire.",
    "Amanhã vamos todos à praia.", "Ele não quer comer agora.", "Jutro pójdziemy razem do kina.", "Nie wiem co powiedzieć.",
    "Yarın hep birlikte sinemaya gideceğiz.", "Ngày mai chúng tôi đi chợ.", "Morgen gaan wij naar het strand.", "Imorgon ska vi gå hem.",
    "Zítra půjdeme všichni domů.", "Besok kami akan pergi ke pasar.", "我们明天去市场。", "明日は市場に行きます。", "내일 우리는 시장에 간다.",
    "Завтра мы пойдём на рынок.", "غدا سنذهب إلى السوق.", "कल हम बाज़ार जाएँगे।", "Αύριο θα πάμε στην αγορά.", "מחר נלך כולנו לשוק.", "พรุ่งนี้เราจะไปตลาด",
]
ADDED = [
    "$x^2 + \\alpha \\le \\beta$", "\\(\\sin θ = y\\)", "$$\\sum_{i=1}^n λ_i$$", "`größe = wert und nicht`", "αβ", "Δx", "5 kΩ", "10 μF", "∀ε > 0 ∃δ > 0",
    "\n```python\nfür = 'das ist nicht gut'  # все хорошо\n```\n", "\n~~~\nнет\n~~~\n", "https://ru.wikipedia.org/wiki/Мир", "f(α, β)", "🎉👨‍👩‍👧", "¯\\_(ツ)_/¯", "3 €",
    "\n    String s = \"hola a todos los amigos\";\n",
]
# fmt: on


def said(text: str, prompt: str = "Explain your answer.") -> list[str]:
    return [word.text for word in find(text, leave(prompt, prompt)).words]


@settings(deadline=None)
@given(st.sampled_from(CLEAN), st.lists(st.tuples(st.integers(0, 15), st.sampled_from(ADDED)), max_size=5))
def test_formulas_and_code_never_make_a_clean_answer_foreign(text: str, added: list[tuple[int, str]]) -> None:
    words = text.split(" ")
    for place, piece in added:
        words.insert(place, piece)
    assert said(" ".join(words)) == []


@settings(deadline=None)
@given(st.sampled_from(FOREIGN), st.sampled_from(CLEAN), st.integers(0, 15), st.sampled_from(ADDED[:4]))
def test_a_foreign_sentence_is_always_found(sentence: str, text: str, place: int, formula: str) -> None:
    words = text.split(" ")
    assert said(" ".join([*words[:place], sentence, *words[place:], formula]))


@pytest.mark.parametrize("sentence", FOREIGN)
def test_a_foreign_sentence_is_found_alone_and_in_english(sentence: str) -> None:
    assert said(sentence)
    assert all(said(f"{text} {sentence} {text}") for text in CLEAN)


@pytest.mark.parametrize("text", [f"{text} {piece}" for text in CLEAN[:1] for piece in ADDED])
def test_notation_is_no_language(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tokyo (東京) is large.", []),
        ("So (因此) it is even.", ["因此"]),
        ("Therefore (因此) it is even.", ["因此"]),
        ("Clearly (显然) it is even.", ["显然"]),
        ("It is even. Diagram (图) and text agree.", ["图"]),
        ("We saw the Dragon (龙) of Moscow (Москва). Moscow (Москва) is cold.", []),
        ("**Final answer:** (最终答案) it is even.", ["最终答案"]),
        ("The value f(x) (显然) is even.", ["显然"]),
        ("Italy (Италия), the Great Wall (长城) and the U.S. (美国).", []),
        ("Set $\\text{因此} = 3$ here.", ["因此"]),
        ("Set $因此 x = 3$ here.", ["因此"]),
        ("Set \\[ x = 3 \\; 因此 \\] here.", ["因此"]),
        ("Set $\\mathrm{поэтому} = 3$ here.", ["поэтому"]),
        ("Set $よ(C) = Ш[2] αβγδεζ$ here.", []),
        ("He said “no hay nada que hacer” and left.", []),
        ("He said “因此 and left.", ["因此"]),
        ("The word λόγος means speech.", []),
        ("We take the λόγος of both.", ["λόγος"]),
        ("A schadenfreude of sorts, naïve and café-like.", []),
        ("The use of und here is a slip.", []),
        ("Johann Wolfgang von Goethe and Universidade de São Paulo.", []),
        ("Buy harina de maíz, queso fresco and crema mexicana.", []),
        ("Order ropa vieja and tres leches.", []),
        ("Try bacalhau à brás or crêpe de Chine here.", []),
        ("The bar is marked allegro ma non troppo, then andante con moto.", []),
        ("The rule is de minimis non curat lex.", []),
        ("We read Cien años de soledad and Comptes rendus de l'Académie.", []),
        ("We note que le résultat, donc, est dix.", ["que", "le", "résultat", "donc", "est", "dix"]),
        ("So x = 2. La respuesta es cuatro.", ["La", "respuesta", "es", "cuatro"]),
        ("> Wir müssen alles neu berechnen.\nThat was quoted.", []),
        ("The weight is 15 кг here.", ["кг"]),
    ],
)
def test_each_rule_decides_its_case(text: str, words: list[str]) -> None:
    assert said(text) == words


@pytest.mark.parametrize(
    ("prompt", "text", "words"),
    [
        ("Answer in Spanish: what is two plus two?", "La respuesta es muy sencilla: cuatro.", []),
        ("Answer in Spanish: what is two plus two?", "因此 cuatro.", ["因此"]),
        ("Use the Chinese remainder theorem.", "因此 x = 2.", ["因此"]),
        ("What does 因此 mean?", "因此 is like 所以.", []),
        ("Polish this sentence.", "To jest bardzo dobre zdanie.", ["To", "jest", "bardzo", "dobre", "zdanie"]),
        ("Name greetings in other languages.", "你好, привет, hola a todos mis amigos.", []),
        ("Which programming languages do you know?", "因此 Python.", ["因此"]),
        ("Wie viele Tage hat ein Jahr in diesem Kalender?", "Ein Jahr hat 365 Tage und nicht mehr.", []),
        ("请问一年有多少天？", "一年有三百六十五天。", []),
    ],
)
def test_a_prompt_allows_what_it_asks_for(prompt: str, text: str, words: list[str]) -> None:
    assert said(text, prompt) == words


@pytest.mark.parametrize(
    "prompt", ["", "2 + 2 = ?", "$\\int_0^1 x\\,dx$", "def f(x): return x", "Compute it.", "Résumé tips?"]
)
def test_a_prompt_with_few_words_counts_as_english(prompt: str) -> None:
    assert is_english(prompt)


@pytest.mark.parametrize(
    "prompt",
    ["Was ist Photosynthese?", "Apa kabar?", "Merhaba, nasılsın?", "Xin chào", "Hola", "Calcula $3+4$", "Qui est-ce ?"],
)
def test_a_few_words_of_another_language_are_a_prompt_in_it(prompt: str) -> None:
    assert not is_english(prompt)


@pytest.mark.parametrize("prompt", ["Factorise $x$.", "gcd(4, 6)", "Explain déjà vu.", "Who was Goethe?", "Hi!", "Pi"])
def test_a_few_words_that_english_has_too_are_english(prompt: str) -> None:
    assert is_english(prompt)


def test_places_and_share_are_those_of_the_text() -> None:
    text = "ab 因此 cd"
    (word,) = find(text).words
    assert (text[word.start : word.end], word.kind, find(text).share) == ("因此", "Han", 1 / 3)


def test_a_system_turn_in_another_language_allows_it() -> None:
    prompt = [{"role": "system", "content": "Отвечай кратко и по делу."}, {"role": "user", "content": "Who are you?"}]
    assert find("Я помощник.", leave(prompt, "Who are you?")).words == ()
