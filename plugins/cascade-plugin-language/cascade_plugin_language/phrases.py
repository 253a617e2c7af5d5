"""Lists: phrases of several words that English has borrowed, words that open a sentence or a part, small words inside names, names of languages.

They were written by hand from general knowledge. A phrase that is missing is a false alarm of three words or more; a
borrowing of one or two words needs no entry.
"""

from __future__ import annotations

from collections.abc import Mapping

_BORROWED = """
a fait accompli|a la carte|a la mode|agnus dei|alma mater|amor fati|arroz con pollo|au bain marie|au fait|auto da fé|ave maria
bel canto|bête noire|bona fide|c'est la vie|c'est la guerre|café au lait|carne asada|carpe diem|casus belli|ceteris paribus
chile con carne|chili con carne|cogito ergo sum|comme ci comme ça|comme il faut|commedia dell'arte|coq au vin|cordon bleu
corpus delicti|coup d'état|coup d'etat|coup de grâce|coup de grace|coup de théâtre|coup d'oeil|crème de la crème|creme de la creme
crème de menthe|cri de coeur|cri de cœur|cul de sac|cum grano salis|danse macabre|de facto|de jure|de rigueur|déjà vu|dernier cri
deus ex machina|dolce far niente|double entendre|droit du seigneur|e pluribus unum|embarras de richesses|eau de cologne
eau de parfum|eau de toilette|eau de vie|enfant terrible|en plein air|esprit de corps|esprit de l'escalier|et cetera|et alii
ex ante|ex nihilo|ex post facto|ex officio|femme fatale|feu de joie|fin de siècle|fin de siecle|film noir|fleur de lis|fleur de lys
fleur de sel|foie gras|force majeure|fruits de mer|grand mal|habeas corpus|haute couture|haute cuisine|homme du monde|hors d'oeuvre
hors d'oeuvres|hors d'œuvre|hors de combat|huevos rancheros|idée fixe|in flagrante delicto|in loco parentis|in medias res
in situ|in vino veritas|in vitro|in vivo|ipso facto|je ne sais quoi|joie de vivre|l'art pour l'art|laissez faire|la dolce vita
le mot juste|lingua franca|lorem ipsum dolor sit amet|magna cum laude|maître d'hôtel|mano a mano|mardi gras|mea culpa
mea maxima culpa|memento mori|ménage à trois|menage a trois|mi casa es su casa|mise en abyme|mise en place|mise en scène
mise en scene|modus operandi|modus vivendi|mutatis mutandis|ne plus ultra|nom de guerre|nom de plume|non compos mentis
non sequitur|noblesse oblige|nouveau riche|objet d'art|objet trouvé|objets d'art|outre mer|pain au chocolat|par avion
par excellence|pas de deux|pasta e fagioli|pax romana|per aspera ad astra|per capita|per se|persona non grata|pièce de résistance
piece de resistance|pied à terre|pied a terre|pico de gallo|plus ça change|pot au feu|prêt à porter|prima facie|primus inter pares
pro bono|pro rata|quid pro quo|quod erat demonstrandum|que sera sera|raison d'état|raison d'être|raison d'etre|reductio ad absurdum
requiescat in pace|rigor mortis|roman à clef|salade niçoise|sang froid|sauve qui peut|savoir faire|savoir vivre|semper fidelis
sic transit gloria mundi|sine qua non|son et lumière|status quo ante|stupor mundi|sub judice|succès d'estime|sui generis
summa cum laude|sturm und drang|tabula rasa|table d'hôte|terra incognita|terra nullius|tour de force|tout court|trompe l'oeil
trompe l'œil|tromp l'oeil|vaya con dios|veni vidi vici|vin de pays|vis a vis|vis à vis|vol au vent|wiener schnitzel|zeitgeist
dulce de leche|leche de tigre|papas a la huancaína|mole poblano|pan con tomate|spaghetti alle vongole|penne all'arrabbiata
sola scriptura|ad astra per aspera|ad hoc|ad hominem|ad infinitum|ad nauseam|annus horribilis|annus mirabilis|ante mortem
cherchez la femme|honi soit qui mal y pense|liberté égalité fraternité|liberté, égalité, fraternité|veni, vidi, vici|dulce et decorum est
hasta la vista|hasta mañana|no pasarán|olé|tempus fugit|vox populi|que será será|tant mieux|tant pis|toute de suite|tout de suite|do, re, mi, fa, sol, la, ti|do re mi fa sol la ti|do re mi|do, re, mi
"""

BORROWED = tuple(
    sorted(
        {phrase for line in _BORROWED.split("\n") for phrase in line.split("|") if phrase}, key=lambda p: (-len(p), p)
    )
)
"""Phrases that stand in English dictionaries or menus, in lower case, longest first; blanks also stand for hyphens."""

_OPENERS = """
accordingly afterwards again ah aha alas alright also altogether anyway besides conversely earlier else eventually finally furthermore
hence henceforth hm hmm however indeed instead later likewise meanwhile moreover nay nevertheless next nonetheless now oh ok okay
otherwise overall perhaps please regardless right similarly so still sure then thereby therefore thereupon thus today together
tomorrow ultimately usually wait well whereas yeah yep yes yet add adding apply arrange assume begin calculate check choose combine compare compute conclude
consider continue convert count define denote derive determine differentiate divide draw estimate evaluate examine expand explain
factor fix form imagine integrate invert isolate label let letting multiply note notice observe pick plug prove rearrange recall reduce remember
replace rewrite round simplify solve sort start stop substitute subtract suppose try verify write although assuming because given
granted provided since though unless until whenever whether while aim algorithm analysis answer approach argument assumption attempt
background base bonus bound calculation case caution caveat check claim clue comment comparison computation conclusion condition
construction context contradiction corollary correct correction counterexample data definition derivation description detail details
difference discussion draft equation error estimate evidence example exercise explanation expression fact false final formula function
goal guess hint hypothesis idea induction input interpretation introduction intuition key lemma limit list main meaning method mistake
number objective observation option outline output overview part plan point possibility premise principle problem procedure product
proof property proposition purpose question ratio reason reasoning recap reflection relation remark reminder requirement response
result results review root rule scenario section setup sketch solution statement step strategy subtotal sum summary task theorem thought
thoughts tip total transition true unknown update value variable verdict verification warning wrong first second third fourth fifth
"""

OPENERS = frozenset(_OPENERS.split())
"""Words that open a sentence, a step or a part of an answer: where one has a capital, it is no name."""

_PARTICLES = """
a à af al am ao as at auf av aux ben bin con d da das de degli dei del della delle den der des det di do dos du e ed ei el em en et
för für i ibn il im in la las le les lez lo los na nad ne no nos och of og on para per pod por pour que saint san santa sous st sul
sur te ten ter tot um und van vom von y z za zu zum zur op l
"""

PARTICLES = frozenset(_PARTICLES.split())
"""Small words inside names of people, places and bodies: they do not make a run of capitalised words a sentence."""

_TONGUES = """
arabic:Arabic armenian:Armenian bengali:Bengali bangla:Bengali bosnian:sh bulgarian:Cyrillic catalan:ca chinese:Han mandarin:Han
cantonese:Han croatian:sh czech:cs danish:da dutch:nl farsi:Arabic persian:Arabic filipino:fil finnish:fi flemish:nl french:fr
georgian:Georgian german:de greek:Greek gujarati:Gujarati hebrew:Hebrew hindi:Devanagari hungarian:hu icelandic:is indonesian:id
italian:it japanese:Han+Hiragana+Katakana korean:Hangul+Han latvian:lv lithuanian:lt malay:ms marathi:Devanagari nepali:Devanagari
norwegian:nb polish:pl portuguese:pt brazilian:pt punjabi:Gurmukhi romanian:ro russian:Cyrillic sanskrit:Devanagari serbian:sh+Cyrillic
slovak:sk slovene:sl slovenian:sl spanish:es swedish:sv tagalog:fil tamil:Tamil telugu:Telugu thai:Thai turkish:tr ukrainian:Cyrillic
urdu:Arabic vietnamese:vi cyrillic:Cyrillic kanji:Han hanzi:Han hiragana:Hiragana katakana:Katakana hangul:Hangul devanagari:Devanagari
amharic:Ethiopic khmer:Khmer lao:Lao burmese:Myanmar sinhala:Sinhala malayalam:Malayalam kannada:Kannada tibetan:Tibetan yiddish:Hebrew
mongolian:Cyrillic belarusian:Cyrillic macedonian:Cyrillic kazakh:Cyrillic
"""

TONGUES: Mapping[str, tuple[str, ...]] = {
    name: tuple(codes.split("+")) for name, codes in (pair.split(":") for pair in _TONGUES.split())
}
"""The names of languages and scripts in English, and the languages of `vocabulary.py` or Unicode scripts that they are written in."""

KIN = tuple(
    frozenset(group.split())
    for group in (
        "es pt ca",
        "da nb sv",
        "cs sk",
        "sh sl",
        "id ms",
        "de nl",
        "Han Hiragana Katakana",
    )
)
"""Languages that share so many words that a short run may be taken for the other one: who asks for one may get either."""
