"""The commands, functions and English words that the reader knows, as tables.

What is missing here is not an error: an unknown command is a name, an unknown word is a noun.
"""

from __future__ import annotations

from cascade_plugin_math.verifier.tables import spaced

RELATIONS = {
    "=": "=",
    "<=": "<=",
    ">=": ">=",
    "!=": "!=", "<": "<", ">": ">", "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=",
    "geqslant": ">=", "geqq": ">=", "ne": "!=", "neq": "!=", "lt": "<", "gt": ">", "in": "in", "notin": "notin",
    "approx": "approx", "thickapprox": "approx", "equiv": "equiv", "cong": "cong", "sim": "sim", "simeq": "sim",
    "propto": "propto", "ll": "ll", "gg": "gg", "to": "to", "rightarrow": "to", "longrightarrow": "to", "mapsto": "to",
    "Rightarrow": "implies", "implies": "implies", "iff": "iff", "Leftrightarrow": "iff", "perp": "perp",
    "parallel": "parallel", "subset": "subset", "subseteq": "subseteq", "supset": "supset", "supseteq": "supseteq",
    "nmid": "nmid", "coloneqq": "=", "doteq": "=", "asymp": "asymp",
}  # fmt: skip

FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "tg": "tan", "cot": "cot", "ctg": "cot", "cotg": "cot", "sec": "sec",
    "csc": "csc", "cosec": "csc", "arcsin": "asin", "asin": "asin", "arccos": "acos", "acos": "acos",
    "arctan": "atan", "atan": "atan", "arctg": "atan", "arccot": "acot", "acot": "acot", "arcctg": "acot",
    "arcsec": "asec", "asec": "asec", "arccsc": "acsc", "acsc": "acsc", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch", "arcsinh": "asinh", "arsinh": "asinh",
    "asinh": "asinh", "arccosh": "acosh", "arcosh": "acosh", "acosh": "acosh", "arctanh": "atanh", "artanh": "atanh",
    "atanh": "atanh", "ln": "ln", "log": "log", "lg": "lg", "exp": "exp", "abs": "abs", "floor": "floor",
    "ceil": "ceil", "ceiling": "ceil", "sgn": "sign", "sign": "sign", "gcd": "gcd", "lcm": "lcm", "max": "max",
    "min": "min", "Re": "re", "Im": "im", "arg": "arg", "sqrt": "sqrt", "cbrt": "cbrt", "factorial": "factorial",
    "binomial": "binom", "binom": "binom", "nCr": "binom", "comb": "binom", "nPr": "perm", "perm": "perm",
    "conjugate": "conj", "det": "det", "deg": "deg", "dim": "dim", "ker": "ker", "tr": "tr", "Pr": "Pr",
    "erf": "erf", "Gamma": "Gamma", "cis": "cis",
}  # fmt: skip
_TWO = frozenset(("logb", "binom", "perm", "mod"))
_MANY = frozenset(("gcd", "lcm", "max", "min"))


def takes(name: str, count: int) -> bool:
    """Whether a function is applied to the right number of arguments; another number means something else."""
    return count == 2 if name in _TWO else count >= 1 if name in _MANY else count == 1


INVERSES = {
    "sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc", "sinh": "asinh",
    "cosh": "acosh", "tanh": "atanh",
}  # fmt: skip

CONSTANTS = {"pi": "pi", "infty": "inf", "infinity": "inf", "inf": "inf", "oo": "inf", "Pi": "Pi"}

SPACES = spaced("quad qquad enspace thinspace , ; : ! > space nobreakspace hfill medspace thickspace negthinspace hfil")
SKIPPED = spaced(
    "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm displaystyle textstyle scriptstyle "
    "scriptscriptstyle limits nolimits large Large LARGE huge Huge small footnotesize normalsize tiny bf it rm sf tt cal mit bfseries "
    "itshape boldmath centering strut mathstrut nonumber notag relax protect allowbreak nobreak noindent par hline"
)
# Commands whose argument stays and is read as mathematics, and those whose argument is upright text.
FONTS = spaced(
    "mathbf mathit mathcal mathfrak mathsf mathtt mathscr boldsymbol bm pmb mathnormal ensuremath underline uline "
    "mathop mathord mathbin mathrel mathopen mathclose mathpunct displaylines boxed fbox framebox smash mathchoice"
)
UPRIGHT = spaced(
    "text mathrm textrm textbf textit textsf texttt textup textnormal emph mbox hbox operatorname operatorname* rm textsc unit si "
    "texorpdfstring textmd mathup"
)
# Commands that are dropped together with their first argument.
DROPPED = spaced(
    "cancel bcancel xcancel sout phantom hphantom vphantom hspace hspace* vspace tag tag* label color textcolor "
    "colorbox require footnote kern mkern vskip hskip"
)
ACCENTS = spaced(
    "overline bar vec hat widehat tilde widetilde dot ddot overrightarrow overleftarrow overleftrightarrow overset "
    "overarc wideparen overparen underbrace overbrace angle measuredangle triangle stackrel arc breve check mathring"
)
NUMBER_SETS = {"R": "R", "Z": "Z", "N": "N", "Q": "Q", "C": "C"}
OPENERS = {"{": "set", "lbrace": "set", "langle": "<", "lfloor": "floor", "lceil": "ceil", "lvert": "|", "lVert": "||"}
CLOSERS = {"}": "set", "rbrace": "set", "rangle": "<", "rfloor": "floor", "rceil": "ceil", "rvert": "|", "rVert": "||"}

# Words that turn a value into something else: a bound, a denial, a guess. None of them may pass as a unit.
HEDGES = spaced(
    "not no never none nothing maybe perhaps possibly probably likely either neither nor at most least less more than "
    "greater smaller larger fewer under over above below up if unless except think believe suppose but between from without excluding until wrong "
    "incorrect false guess guesses any all every other another unknown cannot can't isn't else instead otherwise alternatively "
    "alternative is are was were be equals depends something impossible true correct right answer reward score accept true-value "
    "would could should might may about"
)
SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
ALLOWED_BARE = spaced(
    "or and not mod div if for where when is in per no yes odd even true false none all"
)  # bare runs of two or three letters that are words
