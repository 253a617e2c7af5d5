"""What the checks know about English words: stop words, pronouns, conjunctions, minor words of titles, verbs.

Short lists of our own, since the public ones are downloaded with a library. They are closed classes but for the verbs:
`opens_with_verb` knows some 600 common ones and the endings of English verbs, and looks at the next word where one word can
be several things (`Plan ahead` and `Plan B`). It parses nothing; a rare verb without such an ending is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from cascade_plugin_if.words import listed

# fmt: off
PRONOUNS = listed("""
i me my mine myself we us our ours ourselves ourself you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves themself who whom whoever whomever someone somebody something anyone
anybody anything everyone everybody everything nobody nothing oneself
""")
CONJUNCTIONS = listed("for and nor but or yet so")
_AUXILIARIES = listed("""
am is are was were be been being do does did doing have has had having can could may might must shall should will would
""")
_CLITICS = ("'s", "'re", "'ve", "'ll", "'d", "'m", "n't")
STOP_WORDS = frozenset(
    listed("""
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
    itself they them their theirs themselves what which who whom this that these those am is are was were be been being
    have has had having do does did doing a an the and but if or because as until while of at by for with about against
    between into through during before after above below to from up down in out on off over under again further then
    once here there when where why how all any both each few more most other some such no nor not only own same so than
    too very can will just should now don't cannot
    """)
    | {"ain't", "aren't", "can't", "couldn't", "didn't", "doesn't", "hadn't", "hasn't", "haven't", "isn't", "mightn't"}
    | {"mustn't", "needn't", "shan't", "shouldn't", "wasn't", "weren't", "won't", "wouldn't", "should've"}
    | {who + end for who in ("i", "you", "he", "she", "it", "we", "they", "that", "who") for end in _CLITICS}
)
MINOR = listed("""
a an the and but or nor for so yet as at by in of off on per to up via with from into onto over than if off down near like
vs v about above after along amid among below under until upon within past
""")
_NOT_AFTER_NOUN = listed("""
a an the this that these those my your his her its our their me him us them it you one ones some any every each all both
what how why when where who which whether if no not up out down away back off into from with about for ahead carefully
""")
_FINITE = _AUXILIARIES | listed("of and or seems seem looks makes make takes gives shows means helps becomes comes goes works")
_VERBS = listed("""
accept access achieve act adapt add address adjust admire admit adopt advise agree aim align allow alter amend amuse
analyse analyze announce answer anticipate apologise apologize appear apply appoint appreciate approach approve argue
arise arrange arrive ask assemble assert assess assign assist assume attach attempt attend attract avoid awake award bake
balance ban bathe be bear beat become beg begin behave believe belong bend bet beware bind bite blame blend bless blow boil
book boost borrow bounce bow break breathe breed bring broadcast browse brush build burn bury buy calculate call calm cancel
capture care carry carve cast catch cause celebrate challenge change charge chase check cheer chew choose chop cite claim
clarify clean clear click climb cling close collaborate collect combine come comfort command comment commit communicate
compare compete compile complain complete compose compute conceive concentrate conclude conduct confess confirm confuse
connect conquer consider consist construct consult consume contact contain continue contrast contribute control convert
convey convince cook cool cope copy correct cost count cover crash crawl create cross cry cultivate cure cut dance dare deal
decide declare decline decorate decrease dedicate defeat defend define delay delete deliver demand demonstrate deny depend
derive describe deserve design desire destroy detect determine develop devote die differ dig diminish dine dip direct
disagree disappear discard discover discuss dismiss display dissolve distinguish dive divide donate doubt download draft drag
draw dream dress drift drink drive drop dry earn eat edit educate elect elevate eliminate embark embed embrace emerge
emphasise emphasize employ empower enable encounter encourage end endure engage enhance enjoy enlist ensure enter entertain
envision escape establish estimate evaluate evolve examine exceed excel exchange execute exercise exist expand expect
experience experiment explain explore express extend face fade fail fall familiarise familiarize fasten favor favour fear feed
feel fetch fight file fill film filter find finish fit fix flee float flow fly focus fold follow force forecast forget forgive
form format foster frame free freeze fry fulfil fulfill gain gather gaze generate get give glance go grab grant grasp greet
grind grip grow guarantee guard guess guide handle hang happen harness hate head heal hear heat help hesitate hide highlight
hike hire hit hold honor honour hop hope host hug hunt hurry hurt identify ignore illustrate imagine immerse implement imply
import impress improve include incorporate increase indulge infer influence inform inherit initiate inject insert insist
inspect inspire install instruct integrate intend interact interpret introduce invent invest investigate invite involve
iterate join journey judge jump justify keep kick kill kiss knit knock know label lack land last laugh launch lay lead lean leap
learn leave lend let leverage lie lift light like limit link list listen live load locate lock log look lose love lower
maintain make manage march mark marry master match mean measure meet melt memorise memorize mention merge mind minimise
minimize mix modify monitor motivate mount move multiply name navigate need neglect negotiate note notice obey observe obtain
occur offer omit open operate opt optimise optimize order organise organize outline overcome overlook owe own pack paint park
participate pass pause pay perceive perform permit persist persuade pick picture pinpoint place plan plant play plead please
plot point polish ponder possess pour practice practise praise pray preach predict prefer prepare present preserve press
pretend prevent print prioritise prioritize proceed process produce promise promote pronounce propose protect prove provide
publish pull pump punish purchase pursue push put qualify question quit quote race raise range rate reach react read realise
realize rearrange recall receive recognise recognize recommend reconsider record recover reduce refer refine reflect refuse
regard register regret reject relate relax release rely remain remember remind remove render rent repair repeat replace reply
report represent request require research resemble reserve resist resolve respect respond rest restart restore restrict
resume retain retire return reveal review revise reward rewrite ride ring rinse rise roam roast roll rub run rush sail save say
scale scan schedule scream search season secure see seek select sell send sense separate serve set settle sew shake shape
share shed shift shine shoot shop show shrink shut sign simplify sing sink sip sit skip sleep slice slide slip smell smile
snap soak solve sort sow speak specify spell spend spill spin split spot spray spread spring sprinkle squeeze stand stare start
state stay steal step stick stir stop store strengthen stretch strike strive structure study submit subscribe substitute
subtract succeed suffer suggest suit summarise summarize supply support suppose surprise surrender surround survive suspect
swap swear sweep swell swim swing switch take talk taste teach tear tell tend test thank think thrive throw tie toss touch
tour trace track trade train transfer transform translate travel treat trick trust try tune turn twist type uncover
understand undertake unleash unlock update upgrade upload urge use utilise utilize validate value vary venture verify view visit
visualise visualize vote wait wake walk wander want warm warn wash waste watch water weave weigh welcome whisk whisper win wipe
wish witness wonder work worry wrap write yell yield
arose ate beat became began bent bit blew bought bound broke brought built came caught chose clung cost crept cut dealt did
drank drew drove dug fed fell felt fled flew forgot fought found froze gave got grew ground heard held hid hit hung hurt kept
knelt knew laid lay led left lent lit lost made meant met paid put quit ran rang read rode rose said sang sank sat saw sent set
shone shook shot shut slept slid sold sought spent spoke spread sprang spun stole stood struck stuck swam swept swore swung
taught thought threw told took tore understood went wept woke won wore wound wrote given taken written made done seen known
""")
_NOUNS_TOO = listed("""
access act aim answer approach attempt award balance ban bet blame book boost bow break broadcast brush call care cast cause
challenge change charge check claim click close comfort command comment contact contrast control cook copy cost count
cover crash cross cry cure cut dance deal decline delay demand design desire display doubt download draft dream dress drift
drink drive drop end exchange exercise experience experiment express face fail fall fear feed fight file fill film filter find
fit fix float flow fly focus fold force forecast form format frame free gain grant grip ground guarantee guard guess guide head
heat help hike hit hold honor honour hope host hug hunt import increase influence journey judge jump kick kiss knock label lack
land last laugh launch lead leap leave lie lift light like limit link list load lock log look love lower march mark master match
mean measure mind mix monitor mount move name need note notice offer open order outline own pack paint park pass pause pay pick
picture place plan plant play plot point polish practice praise present press print process produce promise pull pump
purchase push question quote race raise range rate reach record regard register regret release rent repair reply report
request research reserve respect rest return review reward ride ring rise roast roll run rush sail save scale schedule scream
search season secure sense set shape share shift shop show sign sink sleep slice slide slip smell smile snap sort spell spill spin
split spot spray spread spring stand stare start state stay step stick stop store stretch strike structure study suit supply
support surprise suspect swap sweep swing switch talk taste tear test thank tie touch tour trace track trade train transfer
travel treat trick trust try turn twist type update upgrade urge use value view visit vote wait wake walk warm wash waste watch
water welcome whisper win wish witness wonder work worry wrap yield dry clean clear cool correct direct free light lower open
own secure separate slow warm welcome found ground left lay saw wound felt spoke rose sat lead set bit
""")
_ING_NOUNS = listed("""
bring cling ding evening fling king morning nothing ring sibling sling spring sting string swing thing wing ceiling clothing
during herring pudding viking wedding sterling
""")
_ED_OTHERS = listed("bed red bleed breed creed deed feed greed need reed seed shed sled speed steed weed hundred indeed naked wicked sacred")
# fmt: on


def is_stop_word(word: str) -> bool:
    """Whether a folded word is one that carries little meaning of its own."""
    return word in STOP_WORDS


def is_pronoun(word: str) -> bool:
    """Whether a folded word is a pronoun, a contraction of one (`they've`) included."""
    if word in PRONOUNS:
        return True
    return word.partition("'")[0] in PRONOUNS if word.endswith(_CLITICS) else False


def opens_with_verb(folded: Sequence[str]) -> bool:
    """Whether the first of these folded words is a verb, as far as the word itself and the next one tell.

    >>> opens_with_verb(["plan", "your", "day"]), opens_with_verb(["plan", "b", "is", "simple"])
    (True, False)
    """
    if not folded:
        return False
    word, following = folded[0], folded[1] if len(folded) > 1 else ""
    bare = word[:-3] if word.endswith("n't") else word.partition("'")[0]
    if bare in _AUXILIARIES or bare in ("ca", "wo", "sha", "let"):
        return bare not in ("may", "will", "can", "might") or following not in _AUXILIARIES
    if word in _VERBS:
        return word not in _NOUNS_TOO or following in _NOT_AFTER_NOUN or not _reads_on_as_noun(following)
    if following in _FINITE - {"of", "and", "or"} and not word.endswith("ing"):
        return False
    return _has_verb_ending(word)


def _reads_on_as_noun(following: str) -> bool:
    """Whether the next word makes a noun of a word that may be one: `Work is`, `Plan B`, `Love of`."""
    return following in _FINITE or len(following) == 1 or following.isdigit()


def _has_verb_ending(word: str) -> bool:
    if word.endswith("ing") and len(word) > 4:
        return word not in _ING_NOUNS
    if word.endswith("ed") and len(word) > 3:
        return word not in _ED_OTHERS
    if word.endswith("es") and (word[:-2] in _VERBS or word[:-1] in _VERBS):
        return True
    if word.endswith("ies") and word[:-3] + "y" in _VERBS:
        return True
    if word.endswith("s") and not word.endswith("ss") and word[:-1] in _VERBS:
        return word[:-1] not in _NOUNS_TOO
    return (
        word.endswith(("ize", "ise", "ify", "ate"))
        and len(word) > 6
        and (word[:2] in ("re", "de", "un") or word[-3:] == "ify")
    )
