"""Unicode to the plain ASCII and LaTeX that the reader knows: `２×10⁻³ ≤ √½` and its like.

One pass over the characters; nothing is dropped that carries a value (a superscript stays an exponent). Letters that
only look Latin (Cyrillic `х`) become Latin. What is not known stays as it is, and makes the answer unreadable.
"""

from __future__ import annotations

import re
import unicodedata

_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩϕϵϑµ",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Upsilon",
            "Phi",
            "Psi",
            "Omega",
            "phi",
            "epsilon",
            "theta",
            "mu",
        ],
        strict=True,
    )
)
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "×": r"\times ", "✕": r"\times ", "·": r"\cdot ",
    "⋅": r"\cdot ", "∙": r"\cdot ", "∗": "*", "÷": r"\div ", "∕": "/", "⁄": "/", "≤": r"\le ", "⩽": r"\le ",
    "≦": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≧": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≡": r"\equiv ",
    "∼": r"\sim ", "∞": r"\infty ", "±": r"\pm ", "∓": r"\mp ", "°": r"^{\circ}", "º": r"^{\circ}", "˚": r"^{\circ}",
    "∪": r"\cup ", "∩": r"\cap ", "∖": r"\setminus ", "∈": r"\in ", "∉": r"\notin ", "∅": r"\emptyset ",
    "⌀": r"\emptyset ", "⊂": r"\subset ", "⊆": r"\subseteq ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}",
    "ℚ": r"\mathbb{Q}", "ℕ": r"\mathbb{N}", "ℂ": r"\mathbb{C}", "∀": r"\forall ", "∃": r"\exists ", "∧": r"\wedge ",
    "∨": r"\vee ", "¬": r"\neg ", "→": r"\to ", "⇒": r"\Rightarrow ", "⇔": r"\iff ", "∑": r"\sum ", "∏": r"\prod ",
    "∫": r"\int ", "∂": r"\partial ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "〈": r"\langle ", "〉": r"\rangle ", "′": "'", "’": "'", "‘": "'", "″": "''",
    "“": '"', "”": '"', "…": r"\ldots ", "⋯": r"\ldots ", "∠": r"\angle ", "△": r"\triangle ", "∣": "|", "∥": r"\parallel ",
    "⊥": r"\perp ", "€": r"\text{€}", "£": r"\text{£}", "¥": r"\text{¥}", "₹": r"\text{₹}", "、": ",", "。": ".",
    "ℯ": "e", "ⅈ": "i", "ℓ": r"\ell ", "Ω": r"\Omega ", "∆": r"\Delta ", "∶": ":", "％": r"\%", "‰": r"\permil ",
    "【": "[", "】": "]", "（": "(", "）": ")", "\u00a0": " ", "\u2007": r"\,", "\u2009": r"\,", "\u202f": r"\,",
    "\u200a": " ", "\u2002": " ", "\u2003": " ", "\u2004": " ", "\u2005": " ", "\u2006": " ", "\u2008": " ",
    "\u3000": " ", "\u205f": " ",
}  # fmt: skip
_LOOKALIKES = dict(zip("асеоркхуіјԁһВАСЕНІЈКМОРТХУѕ", "aceopkxyijdhBACEHIJKMOPTXYs", strict=True))
_INVISIBLE = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)], ""
)
_TABLE = str.maketrans(
    {**{k: f"\\{v} " for k, v in _GREEK.items()}, **_SIGNS, **_LOOKALIKES, **{chr(k): v for k, v in _INVISIBLE.items()}}
)

_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣʸᵃᵇᵏᵐᵗ", "0123456789+-()nixyabkmt", strict=True))
_SUB = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙₐₓᵢⱼₖₘ", "0123456789+-()naxijkm", strict=True))
_RAISED = re.compile(f"[{''.join(map(re.escape, _SUPER))}]+")
_LOWERED = re.compile(f"[{''.join(map(re.escape, _SUB))}]+")
_ROOT = re.compile(r"([√∛∜])\s*(\d+(?:\.\d+)?|\\?[A-Za-z]+)?")
_ROOTS = {"√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]"}


def plain(text: str) -> str:
    """The text with every known character spelt in ASCII or LaTeX."""
    if text.isascii():
        return text
    text = _RAISED.sub(lambda match: "^{" + "".join(_SUPER[char] for char in match[0]) + "}", text)
    text = _LOWERED.sub(lambda match: "_{" + "".join(_SUB[char] for char in match[0]) + "}", text)
    text = text.translate(_TABLE)
    text = _ROOT.sub(lambda match: _ROOTS[match[1]] + (f"{{{match[2]}}}" if match[2] else ""), text)
    return text if text.isascii() else "".join(map(_one, text))


def _one(char: str) -> str:
    """One remaining character: full-width and mathematical letters, digits of other scripts, fractions such as `½`."""
    if char.isascii():
        return char
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if 0xD800 <= ord(char) <= 0xDFFF:
        return "\ufffd"
    folded = unicodedata.normalize("NFKC", char)
    if "\u2044" in folded:
        top, bottom = folded.split("\u2044")
        return rf"\frac{{{top}}}{{{bottom}}}"
    return folded.translate(_TABLE) if folded != char and unicodedata.category(char)[0] in "LPSN" else char
