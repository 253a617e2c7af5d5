"""Units of measure: reading them off a product, converting, and telling a wrong unit from a missing one.

A quantity is a value and a `Unit`: powers of base dimensions with one exact factor (pi for degrees is the symbol kept
apart), or counted things (`10 apples`). Conversions are right (`500 cm` is `5 m`), another dimension is wrong, and a
missing unit is fine. Temperatures have an offset and never convert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from cascade_plugin_math.verifier.node import Node, make, num
from cascade_plugin_math.verifier.tables import spaced

_BASE: dict[str, tuple[str, Fraction | int]] = {
    "m": ("length", 1), "meter": ("length", 1), "metre": ("length", 1), "cm": ("length", Fraction(1, 100)),
    "centimeter": ("length", Fraction(1, 100)), "centimetre": ("length", Fraction(1, 100)),
    "mm": ("length", Fraction(1, 1000)), "millimeter": ("length", Fraction(1, 1000)),
    "millimetre": ("length", Fraction(1, 1000)), "dm": ("length", Fraction(1, 10)), "km": ("length", 1000),
    "kilometer": ("length", 1000), "kilometre": ("length", 1000), "nm": ("length", Fraction(1, 10**9)),
    "microm": ("length", Fraction(1, 10**6)), "micrometer": ("length", Fraction(1, 10**6)),
    "micrometre": ("length", Fraction(1, 10**6)), "micron": ("length", Fraction(1, 10**6)),
    "microg": ("mass", Fraction(1, 10**6)), "microgram": ("mass", Fraction(1, 10**6)),
    "micros": ("time", Fraction(1, 10**6)), "microsecond": ("time", Fraction(1, 10**6)),
    "inch": ("length", Fraction(254, 10000)), "inches": ("length", Fraction(254, 10000)),
    "foot": ("length", Fraction(3048, 10000)), "feet": ("length", Fraction(3048, 10000)),
    "ft": ("length", Fraction(3048, 10000)), "yard": ("length", Fraction(9144, 10000)),
    "yd": ("length", Fraction(9144, 10000)), "mile": ("length", Fraction(1609344, 1000)),
    "mi": ("length", Fraction(1609344, 1000)), "g": ("mass", 1), "gram": ("mass", 1), "gramme": ("mass", 1),
    "kg": ("mass", 1000), "kilogram": ("mass", 1000), "mg": ("mass", Fraction(1, 1000)),
    "milligram": ("mass", Fraction(1, 1000)), "tonne": ("mass", 10**6), "lb": ("mass", Fraction(45359237, 100000)),
    "lbs": ("mass", Fraction(45359237, 100000)), "pound": ("mass", Fraction(45359237, 100000)),
    "oz": ("mass", Fraction(45359237, 1600000)), "ounce": ("mass", Fraction(45359237, 1600000)), "s": ("time", 1),
    "sec": ("time", 1), "secs": ("time", 1), "second": ("time", 1), "ms": ("time", Fraction(1, 1000)),
    "min": ("time", 60), "mins": ("time", 60), "minute": ("time", 60), "h": ("time", 3600), "hr": ("time", 3600),
    "hrs": ("time", 3600), "hour": ("time", 3600), "day": ("time", 86400), "week": ("time", 604800),
    "month": ("month", 1), "year": ("month", 12), "yr": ("month", 12), "A": ("current", 1), "ampere": ("current", 1),
    "amp": ("current", 1), "mA": ("current", Fraction(1, 1000)), "mol": ("amount", 1), "K": ("kelvin", 1),
    "kelvin": ("kelvin", 1), "celsius": ("celsius", 1), "fahrenheit": ("fahrenheit", 1), "rad": ("angle", 1),
    "radian": ("angle", 1), "rev": ("turn", 1), "revolution": ("turn", 1), "$": ("dollar", 1), "dollar": ("dollar", 1),
    "USD": ("dollar", 1), "cent": ("dollar", Fraction(1, 100)), "¢": ("dollar", Fraction(1, 100)), "buck": ("dollar", 1), "€": ("euro", 1),
    "euro": ("euro", 1), "EUR": ("euro", 1), "£": ("sterling", 1), "GBP": ("sterling", 1), "¥": ("yen", 1),
    "yen": ("yen", 1), "JPY": ("yen", 1), "₹": ("rupee", 1), "rupee": ("rupee", 1), "Rs": ("rupee", 1),
    "INR": ("rupee", 1), "yuan": ("yuan", 1), "bit": ("bit", 1), "byte": ("bit", 8), "KB": ("bit", 8000),
    "MB": ("bit", 8 * 10**6), "GB": ("bit", 8 * 10**9), "unit": ("unit", 1), "dB": ("decibel", 1), "degree": ("degree", 1),
    "deg": ("degree", 1),
}  # fmt: skip
_MADE: dict[str, tuple[Mapping[str, int], Fraction | int]] = {
    "L": ({"length": 3}, Fraction(1, 1000)), "l": ({"length": 3}, Fraction(1, 1000)),
    "liter": ({"length": 3}, Fraction(1, 1000)), "litre": ({"length": 3}, Fraction(1, 1000)),
    "ml": ({"length": 3}, Fraction(1, 10**6)), "mL": ({"length": 3}, Fraction(1, 10**6)),
    "milliliter": ({"length": 3}, Fraction(1, 10**6)), "millilitre": ({"length": 3}, Fraction(1, 10**6)),
    "microL": ({"length": 3}, Fraction(1, 10**9)), "microl": ({"length": 3}, Fraction(1, 10**9)),
    "cc": ({"length": 3}, Fraction(1, 10**6)), "ha": ({"length": 2}, 10**4), "hectare": ({"length": 2}, 10**4),
    "acre": ({"length": 2}, Fraction(40468564224, 10**7)), "mph": ({"length": 1, "time": -1}, Fraction(1609344, 3600000)),
    "kph": ({"length": 1, "time": -1}, Fraction(1000, 3600)), "kmh": ({"length": 1, "time": -1}, Fraction(1000, 3600)),
    "mps": ({"length": 1, "time": -1}, 1), "N": ({"mass": 1, "length": 1, "time": -2}, 1000),
    "newton": ({"mass": 1, "length": 1, "time": -2}, 1000), "kN": ({"mass": 1, "length": 1, "time": -2}, 10**6),
    "J": ({"mass": 1, "length": 2, "time": -2}, 1000), "joule": ({"mass": 1, "length": 2, "time": -2}, 1000),
    "kJ": ({"mass": 1, "length": 2, "time": -2}, 10**6), "W": ({"mass": 1, "length": 2, "time": -3}, 1000),
    "watt": ({"mass": 1, "length": 2, "time": -3}, 1000), "kW": ({"mass": 1, "length": 2, "time": -3}, 10**6),
    "kWh": ({"mass": 1, "length": 2, "time": -2}, 36 * 10**8), "Pa": ({"mass": 1, "length": -1, "time": -2}, 1000),
    "pascal": ({"mass": 1, "length": -1, "time": -2}, 1000), "kPa": ({"mass": 1, "length": -1, "time": -2}, 10**6),
    "Hz": ({"time": -1}, 1), "hertz": ({"time": -1}, 1), "kHz": ({"time": -1}, 1000), "MHz": ({"time": -1}, 10**6),
    "C": ({"current": 1, "time": 1}, 1), "coulomb": ({"current": 1, "time": 1}, 1),
    "V": ({"mass": 1, "length": 2, "time": -3, "current": -1}, 1000),
    "volt": ({"mass": 1, "length": 2, "time": -3, "current": -1}, 1000),
    "ohm": ({"mass": 1, "length": 2, "time": -3, "current": -2}, 1000),
}  # fmt: skip
KNOWN_UNITS = frozenset(_BASE) | frozenset(_MADE)
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_SCALES = {"C": "celsius", "c": "celsius", "F": "fahrenheit", "f": "fahrenheit"}
_NOT_A_SYMBOL = spaced("A C K N J W V L l")


@dataclass(frozen=True)
class Unit:
    """Powers of base dimensions, an exact factor to them, and the counted things left over."""

    powers: tuple[tuple[str, int], ...] = ()
    factor: Fraction = Fraction(1)
    things: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_none(self) -> bool:
        return not self.powers and not self.things


def known(word: str) -> str | None:
    """The table's spelling of a unit word: as it is, in lower case, or without its plural."""
    for form in (word, word.lower(), word.rstrip("."), word.lower().removesuffix("s"), word.lower().removesuffix("es")):
        if form in KNOWN_UNITS and (len(form) > 1 or form == word):
            return form
    return None


def is_unit(word: str) -> bool:
    """Whether a word belongs to a unit of measure: `square`, `cm`, `per`."""
    return word.lower() in (*_POWERS, "per") or known(word) is not None


def split(node: Node) -> tuple[Node, Unit]:
    """A value and the unit that it carries; the unit is empty for a bare value."""
    if node.op == "neg":
        value, unit = split(node.args[0])
        return make("neg", value), unit
    if node.op == "degree":
        return node.args[0], Unit((("degree", 1),))
    factors = node.args if node.op == "mul" else (node,)
    if (temperature := _temperature(factors)) is not None:
        return temperature
    words = [factor for factor in factors if _is_unit(factor)]
    values = [factor for factor in factors if not _is_unit(factor)]
    if not words or not values:
        return node, Unit()
    return make("mul", *values), _combine(words)


def _temperature(factors: tuple[Node, ...]) -> tuple[Node, Unit] | None:
    """`-15^\\circ C`: a degree sign and the letter of its scale."""
    if len(factors) != 2 or factors[1].op not in ("word", "sym") or factors[1].value not in _SCALES:
        return None
    size = factors[0].args[0] if factors[0].op == "neg" else factors[0]
    if size.op != "degree":
        return None
    return (make("neg", *size.args) if size is not factors[0] else size.args[0]), Unit(
        ((_SCALES[factors[1].value], 1),)
    )


def _is_unit(node: Node) -> bool:
    """Whether a factor is made of words only."""
    if node.op == "word":
        return True
    if node.op == "pow":
        return _is_unit(node.args[0]) and node.args[1].op in ("num", "neg")
    return node.op in ("inv", "mul") and all(_is_unit(arg) for arg in node.args)


def _combine(words: list[Node]) -> Unit:
    powers: dict[str, int] = {}
    factor, things, exponent = Fraction(1), set(), 1
    for word, power in _flat(words):
        if word.lower() in _POWERS:
            if word.lower() in ("squared", "cubed") and powers:
                last = next(reversed(powers))
                powers[last] *= _POWERS[word.lower()]
            else:
                exponent = _POWERS[word.lower()]
            continue
        name = known(word)
        if name is None:
            things.add(stem(word))
            continue
        parts, scale = _MADE[name] if name in _MADE else ({_BASE[name][0]: 1}, _BASE[name][1])
        for base, count in parts.items():
            powers[base] = powers.get(base, 0) + count * power * exponent
        factor *= Fraction(scale) ** (power * exponent)
        exponent = 1
    if "degree" in powers and powers.keys() & {"celsius", "fahrenheit"}:
        del powers["degree"]
    kept = tuple(sorted((base, count) for base, count in powers.items() if count))
    return Unit(kept, factor, frozenset(things))


def _flat(words: list[Node], power: int = 1) -> list[tuple[str, int]]:
    out: list[tuple[str, int]] = []
    for node in words:
        if node.op == "word":
            out.append((node.value, power))
        elif node.op == "pow":
            sign = -1 if node.args[1].op == "neg" else 1
            exponent = node.args[1].args[0] if sign < 0 else node.args[1]
            count = exponent.value if exponent.op == "num" and exponent.value.denominator == 1 else Fraction(1)
            out += _flat([node.args[0]], power * sign * min(int(count), 9))
        else:
            out += _flat(list(node.args), -power if node.op == "inv" else power)
    return out


def stem(word: str) -> str:
    """A noun without its plural, in lower case."""
    low = word.lower()
    if low.endswith("ies") and len(low) > 4:
        return low[:-3] + "y"
    if low.endswith(("ses", "xes", "ches", "shes")):
        return low[:-2]
    return low[:-1] if low.endswith("s") and not low.endswith("ss") and len(low) > 3 else low


def convert(value: Node, unit: Unit, wanted: Unit) -> Node | None:
    """The value in the `wanted` unit; `None` if that is another kind of quantity.

    A missing unit on either side is no difference. Counted things must be the same things; one
    side may say more of them (`red balls`).
    """
    if unit.is_none or wanted.is_none or unit == wanted:
        return value
    if unit.things and wanted.things and not (unit.things <= wanted.things or wanted.things <= unit.things):
        return None
    if not unit.powers or not wanted.powers:
        return value if unit.things & wanted.things else None
    if unit.powers != wanted.powers:
        return _angle(value, unit, wanted)
    return value if unit.factor == wanted.factor else make("mul", num(unit.factor / wanted.factor), value)


def _angle(value: Node, unit: Unit, wanted: Unit) -> Node | None:
    kinds = (unit.powers, wanted.powers)
    degree, radian, turn = (("degree", 1),), (("angle", 1),), (("turn", 1),)
    straight = Node("const", (), "pi")
    if kinds == (degree, radian):
        return make("mul", value, straight, num(Fraction(1, 180)))
    if kinds == (radian, degree):
        return make("mul", value, num(180), make("inv", straight))
    if kinds == (turn, degree):
        return make("mul", value, num(360))
    return None
