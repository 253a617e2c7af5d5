"""Values of the standard library that travel beside the plain ones: what each is made of, and how it is made anew.

A kind is known by a name of this table, never by one that the other side sends: who unpacks makes the value from plain parts of exactly the types
that stand here, so no method of another's is called and nothing is imported that is not listed. Only values of the very class are of a kind; one of a
subclass may do anything. Sizes are bounded where making or using a value costs more than its bytes. A module that nobody imported has no values,
so packing imports nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

MOST_BITS = 1 << 18
"""Of a fraction's two parts: to make it, their greatest common divisor is taken."""
MOST_DIGITS = 100_000
"""Of a decimal, the zeros that its exponent stands for included."""
MOST_LONG = 1_000_000
"""Numbers of a range."""
_TYPES = (int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, type(None))
_BY_NAME = {kind.__name__: kind for kind in _TYPES}
_FUNCTIONS = (abs, all, any, bin, chr, divmod, hex, len, max, min, oct, ord, pow, repr, round, sorted, sum)
_BY_FUNCTION = {function.__name__: function for function in _FUNCTIONS}


class Kind:
    """A class, its parts, and the value that is made of such parts; `shape` is what their types must be, `()` where any may be there."""

    def __init__(
        self, module: str, name: str, parts: Callable[[Any], Any], make: Callable[..., Any], shape: Any = ()
    ) -> None:
        self.module, self.name, self.parts, self.make, self.shape = module, name, parts, make, shape


class _Lazy:
    """A class of a module that is imported when a value of it is made."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __import__(self._module)
        return getattr(sys.modules[self._module], self._name)(*args, **kwargs)


_NONE = type(None)
_DAY, _CLOCK = (int, int, int), (int, int, int, int, int)
_SAYS = ("PosixPath", "PurePosixPath", "PureWindowsPath")
_ADDRESSES = ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network")


def _fraction(above: int, below: int) -> Any:
    return _Lazy("fractions", "Fraction")(*_small(above, below))


def _small(*whole: int) -> tuple[int, ...]:
    if any(number.bit_length() > MOST_BITS for number in whole):
        raise ValueError("too large")
    return whole


def _decimal(text: str) -> Any:
    value = _Lazy("decimal", "Decimal")(text) if len(text) <= MOST_DIGITS else None
    if value is None or (value.is_finite() and abs(value.as_tuple().exponent) > MOST_DIGITS):
        raise ValueError("too large")
    return value


def _digits(value: Any) -> tuple[str]:
    text = str(value)
    _decimal(text)
    return (text,)


def _bounds(value: range) -> tuple[int, ...]:
    _range(value.start, value.stop, value.step)
    return (value.start, value.stop, value.step)


def _range(first: int, end: int, step: int) -> range:
    made = range(first, end, step)
    if len(made) > MOST_LONG:
        raise ValueError("too long")
    return made


def _clock(value: Any) -> tuple[Any, ...]:
    return (value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo)


def _time(hour: int, minute: int, second: int, micro: int, fold: int, zone: Any) -> Any:
    return _Lazy("datetime", "time")(hour, minute, second, micro, _zone(zone), fold=fold)


def _datetime(*parts: Any) -> Any:
    *whole, fold, zone = parts
    return _Lazy("datetime", "datetime")(*whole, _zone(zone), fold=fold)


def _zone(zone: Any) -> Any:
    if zone is not None and type(zone) is not getattr(sys.modules.get("datetime"), "timezone", None):
        raise TypeError("no time zone")
    return zone


def _timezone(days: int, seconds: int, micro: int, name: str | None) -> Any:
    offset = _Lazy("datetime", "timedelta")(days, seconds, micro)
    return _Lazy("datetime", "timezone")(*((offset,) if name is None else (offset, name)))


def _offset(value: Any) -> tuple[Any, ...]:
    offset, name = (*value.__getinitargs__(), None)[:2]
    return (offset.days, offset.seconds, offset.microseconds, name)


def _pairs(value: Any) -> tuple[Any, ...]:
    return tuple(value.items())


def _filled(made: Any, pairs: tuple[Any, ...]) -> Any:
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:
            raise TypeError("no pair")
        made[pair[0]] = pair[1]
    return made


def _factory(value: Any) -> tuple[Any, ...]:
    factory = value.default_factory
    if factory is not None and not (type(factory) is type and _BY_NAME.get(factory.__name__) is factory):
        raise ValueError("a default that is a function")
    return (None if factory is None else factory.__name__, *value.items())


def _defaults(name: Any, *pairs: Any) -> Any:
    return _filled(_Lazy("collections", "defaultdict")(None if name is None else _type(name)), pairs)


def _type(name: str) -> Any:
    if name not in _BY_NAME:
        raise ValueError("no built-in type")
    return _BY_NAME[name]


KINDS = {
    "fraction": Kind("fractions", "Fraction", lambda v: _small(v.numerator, v.denominator), _fraction, (int, int)),
    "decimal": Kind("decimal", "Decimal", _digits, _decimal, (str,)),
    "range": Kind("builtins", "range", _bounds, _range, (int, int, int)),
    "ellipsis": Kind("builtins", "ellipsis", lambda v: (), lambda: ...),
    "date": Kind("datetime", "date", lambda v: (v.year, v.month, v.day), _Lazy("datetime", "date"), _DAY),
    "time": Kind("datetime", "time", _clock, _time, (*_CLOCK, object)),
    "datetime": Kind("datetime", "datetime", lambda v: (v.year, v.month, v.day, *_clock(v)), _datetime, (*_DAY, *_CLOCK, object)),
    "timedelta": Kind("datetime", "timedelta", lambda v: (v.days, v.seconds, v.microseconds), _Lazy("datetime", "timedelta"), _DAY),
    "timezone": Kind("datetime", "timezone", _offset, _timezone, (*_DAY, (str, _NONE))),
    "uuid": Kind("uuid", "UUID", lambda v: (v.int,), lambda n: _Lazy("uuid", "UUID")(int=n), (int,)),
    **{name: Kind("pathlib", name, lambda v: (str(v),), _Lazy("pathlib", name), (str,)) for name in _SAYS},
    **{name: Kind("ipaddress", name, lambda v: (str(v),), _Lazy("ipaddress", name), (str,)) for name in _ADDRESSES},
    "bytearray": Kind("builtins", "bytearray", lambda v: (bytes(v),), bytearray, (bytes,)),
    "deque": Kind("collections", "deque", lambda v: (v.maxlen, *v), lambda most, *items: _Lazy("collections", "deque")(items, most)),
    "counter": Kind("collections", "Counter", _pairs, lambda *pairs: _filled(_Lazy("collections", "Counter")(), pairs)),
    "ordered": Kind("collections", "OrderedDict", _pairs, lambda *pairs: _filled(_Lazy("collections", "OrderedDict")(), pairs)),
    "defaultdict": Kind("collections", "defaultdict", _factory, _defaults),
    "keys": Kind("builtins", "dict_keys", tuple, lambda *keys: dict.fromkeys(keys).keys()),
    "items": Kind("builtins", "dict_items", tuple, lambda *pairs: _filled({}, pairs).items()),
    "values": Kind("builtins", "dict_values", tuple, lambda *values: dict(enumerate(values)).values()),
    "type": Kind("builtins", "type", lambda v: (v.__name__,), _type, (str,)),
    "function": Kind("builtins", "builtin_function_or_method", lambda v: (v.__name__,), lambda name: _BY_FUNCTION[name], (str,)),
}  # fmt: skip
_BUILT_IN = {type(...): "ellipsis", range: "range", bytearray: "bytearray", type({}.keys()): "keys", type({}.items()): "items", type({}.values()): "values"}  # fmt: skip
_OF_ORDERED = {"odict_keys": "keys", "odict_items": "items", "odict_values": "values"}
_IMPORTED = {kind.name: (kind.module, name) for name, kind in KINDS.items() if kind.module != "builtins"}


def kind_of(value: Any) -> str:
    """The name of the kind that a value is of; `""` if of none."""
    own = type(value)
    if own in _BUILT_IN:
        return _BUILT_IN[own]
    if own is type(len):
        return "function" if _BY_FUNCTION.get(value.__name__) is value else ""
    if own is type:
        return "type" if _BY_NAME.get(value.__name__) is value else ""
    if own.__name__ in _OF_ORDERED and "collections" in sys.modules:
        view = _OF_ORDERED[own.__name__]
        return view if type(getattr(sys.modules["collections"].OrderedDict(), view)()) is own else ""
    return _imported(own)


def _imported(own: type) -> str:
    module, name = _IMPORTED.get(own.__name__, ("", ""))
    return name if module in sys.modules and vars(sys.modules[module]).get(own.__name__) is own else ""


def is_class_of_a_kind(value: Any) -> bool:
    """Whether it is the class of a kind, or of such a class."""
    return isinstance(value, type) and (value in _BUILT_IN or value in (type, type(len)) or bool(_imported(value)))


def parts_of(name: str, value: Any) -> tuple[Any, ...]:
    """What a value of a kind is made of.

    Raises:
        ValueError, TypeError, ArithmeticError: it is too large, or holds what cannot be said.
    """
    return tuple(KINDS[name].parts(value))


def made_of(name: str, parts: Any) -> Any:
    """The value of a kind.

    Raises:
        ValueError, TypeError, ArithmeticError, LookupError: there is no such value.
    """
    kind = KINDS[name]
    if type(parts) is not tuple or (kind.shape and len(parts) != len(kind.shape)):
        raise TypeError("other parts")
    for place, allowed in enumerate(kind.shape):
        among = allowed if type(allowed) is tuple else (allowed,)
        if object not in among and type(parts[place]) not in among:
            raise TypeError("a part of another type")
    return kind.make(*parts)
