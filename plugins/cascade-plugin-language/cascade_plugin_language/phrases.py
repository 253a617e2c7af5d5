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
a cappella|a piacere|aglio e olio|aglio olio e peperoncino|agua fresca|aguas frescas|al dente|al fresco|al pastor|alla breve|alla marcia
alea iacta est|allegro ma non troppo|allegro con brio|allegro vivace|amor vincit omnia|omnia vincit amor|andante con moto|andante cantabile
adagio sostenuto|audi alteram partem|audiatur et altera pars|basso continuo|beurre blanc|beurre noisette|bis in idem|ne bis in idem
boeuf bourguignon|bœuf bourguignon|cacio e pepe|café con leche|caldo verde|carpe noctem|cassoulet de toulouse|chiles en nogada
chiles rellenos|cochinita pibil|col legno|con amore|con brio|con fuoco|con moto|con sordino|con spirito|confit de canard
così fan tutte|crema mexicana|creme fraiche|crème anglaise|crème brûlée|crème fraîche|crème pâtissière|cui bono|cuius regio eius religio
cum hoc ergo propter hoc|post hoc ergo propter hoc|da capo al fine|da capo|dal segno|dal segno al fine|de gustibus non est disputandum
de minimis non curat lex|de minimis|dies irae|dona nobis pacem|dramatis personae|dura lex sed lex|ecce homo|errare humanum est|et al
et tu brute|et tu, brute|fiat justitia ruat caelum|fiat lux|flor de calabaza|flor de sal|fritto misto|frutti di mare|festina lente
gloria in excelsis deo|homo homini lupus|ignorantia juris non excusat|ignorantia legis non excusat|in dubio pro reo|in extremis
jus ad bellum|jus in bello|jus cogens|jus soli|jus sanguinis|lex posterior derogat priori|lex specialis derogat legi generali
la donna è mobile|ma non troppo|ma non tanto|magret de canard|masa harina|mens rea|actus reus|mens sana in corpore sano|meno mosso|più mosso
mezza voce|mezzo forte|molto vivace|moules frites|moules marinières|mozzarella di bufala|nemo dat quod non habet|nessun dorma
nemo iudex in causa sua|nihil obstat|nolle prosequi|nolo contendere|non troppo|nosce te ipsum|nulla poena sine lege
nullum crimen sine lege|obiter dicta|obiter dictum|opera buffa|opera seria|ora et labora|ora pro nobis|pacta sunt servanda
pain perdu|pan dulce|pan de muerto|panem et circenses|panna cotta|parmigiano reggiano|pastel de nata|pastéis de nata|pâte à choux
pâte brisée|pâte feuilletée|poco a poco|un poco|prima donna|prima vista|prosciutto di parma|queso fresco|queso blanco|quasi una fantasia
quis custodiet ipsos custodes|quod vide|ratio decidendi|res ipsa loquitur|res judicata|respondeat superior|risotto alla milanese
ropa vieja|salsa roja|salsa verde|saltimbocca alla romana|sancta sanctorum|senza sordino|si vis pacem para bellum|si vis pacem, para bellum
sic semper tyrannis|sic transit|soupe à l'oignon|sotto voce|stare decisis|steak frites|tarte tatin|te deum|tempo giusto|tres leches
ultra vires|urbi et orbi|vinho verde|vinho tinto|vitello tonnato|volenti non fit injuria|vox populi vox dei|vox populi, vox dei|zuppa inglese
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
factor fix form imagine integrate invert isolate label let let's letting multiply note notice observe pick plug plugging prove rearrange recall reduce remember
replace rewrite round simplify solve sort start stop substitute subtract suppose try verify write although assuming because given
granted provided since though unless until whenever whether while aim algorithm analysis answer approach argument assumption attempt
background base bonus bound calculation case caution caveat check claim clue comment comparison computation conclusion condition
construction context contradiction corollary correct correction counterexample data definition derivation description detail details
difference discussion draft equation error estimate evidence example exercise explanation expression fact false final formula function
goal guess hint hypothesis idea induction input interpretation introduction intuition key lemma limit list main meaning method mistake
number objective observation option outline output overview part plan point possibility premise principle problem procedure product
proof property proposition purpose qed question ratio reason reasoning recap reflection relation remark reminder requirement response
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

_JOINTS = """
a la|a las|a los|à|à la|ai|al|alla|alle|au|aux|avec|con|con la|da|das|de|de la|de las|de los|del|della|delle|di|do|dos|du
e|ed|en|et|mit|och|og|und|van|von|y
"""

JOINTS = frozenset(_JOINTS.strip().replace("\n", "|").split("|"))
"""What joins two words to an expression (`arroz con pollo`)."""

GENITIVES = frozenset(("da", "das", "de", "degli", "dei", "del", "della", "delle", "des", "di", "do", "dos", "du"))
"""The small words of Romance titles and names of journals (`Cien años de soledad`)."""

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
