"""Typed values as bytes, on their way into and out of a process that nobody trusts.

`n`, `t`, `f` are None, True and False. `i-1f;` is an integer in hexadecimal, `d0x1.8p+0;` a float and `c…,…;` a complex number as
`float.hex` writes them. `s5:hello` is a text of five bytes of UTF-8, `b2:..` are bytes. `L2;` begins a list of two values, `T` a tuple,
`S` a set, `Z` a frozen set and `D` a dictionary of so many pairs. A value of a subclass travels as one of the base. Depth and
number of values are bounded on both sides, so nothing that comes back can exhaust who reads it.

Packing runs beside the solution, which may make it say anything; unpacking builds plain values and nothing else. It is not JSON
because JSON has no tuples, sets, bytes or NaN, and because importing `json` would cost every call six milliseconds.
"""

from __future__ import annotations

from typing import Any

DEEPEST = 100
MOST_VALUES = 1_000_000
_CONSTANTS = {b"n": None, b"t": True, b"f": False}
_MAKERS = {b"L": list, b"T": tuple, b"S": set, b"Z": frozenset}
_LETTERS = ((list, b"L"), (tuple, b"T"), (set, b"S"), (frozenset, b"Z"))


class Unplain(ValueError):
    """No plain data: of another type, too deep, too large; or bytes that no `dumps` made."""


class Foreign(Unplain):
    """Of a type that cannot travel."""


def dumps(value: Any) -> bytes:
    """The value as bytes.

    Raises:
        Unplain: it is no plain value.
    """
    return Packing().whole(value)


def loads(data: bytes) -> Any:
    """The value of what `dumps` made.

    Raises:
        Unplain: these are no such bytes.
    """
    return Unpacking(data).whole()


class Counted:
    """Counts values, and says when they are too many or too deep."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def count(self, depth: int, values: int = 1) -> None:
        """So many more values, down to this depth.

        Raises:
            Unplain: this is too much.
        """
        self.left -= values
        if depth > DEEPEST:
            raise Unplain(f"nested more than {DEEPEST} deep")
        if self.left < 0:
            raise Unplain(f"more than {MOST_VALUES} values")


class Packing(Counted):
    """Plain values as pieces of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def pack(self, value: Any, depth: int) -> None:
        """Adds the pieces of a value.

        Raises:
            Unplain: it is no plain value.
        """
        self.count(depth)
        if value is None:
            self.pieces.append(b"n")
        elif value is True or value is False:
            self.pieces.append(b"t" if value else b"f")
        elif isinstance(value, str):
            text = str.__str__(value).encode("utf-8", "surrogatepass")
            self.pieces.append(b"s%d:%b" % (len(text), text))
        elif isinstance(value, (bytes, bytearray)):
            self.pieces.append(b"b%d:%b" % (len(value), bytes(value)))
        elif isinstance(value, (int, float, complex)):
            self.pieces.append(_number(value).encode("ascii"))
        else:
            self._pack_items(value, depth)

    def whole(self, value: Any) -> bytes:
        """The value as bytes.

        Raises:
            Unplain: it is no plain value.
        """
        self.pack(value, 0)
        return b"".join(self.pieces)

    def _pack_items(self, value: Any, depth: int) -> None:
        if isinstance(value, dict):
            items = [part for pair in value.items() for part in pair]
            self.pieces.append(b"D%d;" % (len(items) // 2))
        else:
            letter = next((letter for kind, letter in _LETTERS if isinstance(value, kind)), None)
            if letter is None:
                raise Foreign("an object of type " + type(value).__name__[:80])
            items = list(value)
            self.pieces.append(b"%b%d;" % (letter, len(items)))
        for item in items:
            self.pack(item, depth + 1)


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"i{int(value):x};"
    if isinstance(value, float):
        return f"d{float(value).hex()};"
    whole = complex(value)
    return f"c{whole.real.hex()},{whole.imag.hex()};"


class Unpacking(Counted):
    """Plain values from bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data
        self.place = 0

    def unpack(self, depth: int) -> Any:
        """The next value.

        Raises:
            Unplain, ValueError, TypeError, OverflowError: there is none.
        """
        self.count(depth)
        letter = self.data[self.place : self.place + 1]
        self.place += 1
        if letter in _CONSTANTS:
            return _CONSTANTS[letter]
        if letter == b"i":
            return int(self.until(b";"), 16)
        if letter == b"d":
            return float.fromhex(self.until(b";"))
        if letter == b"c":
            real, imaginary = self.until(b";").split(",")
            return complex(float.fromhex(real), float.fromhex(imaginary))
        if letter == b"s":
            return self._raw().decode("utf-8", "surrogatepass")
        if letter == b"b":
            return self._raw()
        return self._items(letter, depth)

    def whole(self) -> Any:
        """The one value that there is.

        Raises:
            Unplain: there is none, or more than one.
        """
        try:
            value = self.unpack(0)
        except Unplain:
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError) as cause:
            raise Unplain("no typed value: " + type(cause).__name__) from None
        if self.place != len(self.data):
            raise Unplain("more than one value")
        return value

    def _items(self, letter: bytes, depth: int) -> Any:
        if letter != b"D" and letter not in _MAKERS:
            raise Unplain("no kind of value")
        count = self.size(b";")
        if letter != b"D":
            return _MAKERS[letter](self.unpack(depth + 1) for _ in range(count))
        made: dict[Any, Any] = {}
        for _ in range(count):
            key = self.unpack(depth + 1)
            made[key] = self.unpack(depth + 1)
        if len(made) != count:
            raise Unplain("a key comes twice")
        return made

    def until(self, end: bytes) -> str:
        """What comes before this sign, which is passed over."""
        stop = self.data.find(end, self.place)
        if stop < 0:
            raise Unplain("a value without its end")
        text = self.data[self.place : stop]
        self.place = stop + 1
        return text.decode("ascii")

    def size(self, end: bytes) -> int:
        """A number before this sign, at least 0."""
        text = self.until(end)
        if len(text) > 12 or not text.isdigit():
            raise Unplain("no size")
        return int(text)

    def _raw(self) -> bytes:
        size = self.size(b":")
        raw = self.data[self.place : self.place + size]
        if len(raw) != size:
            raise Unplain("less than announced")
        self.place += size
        return raw
