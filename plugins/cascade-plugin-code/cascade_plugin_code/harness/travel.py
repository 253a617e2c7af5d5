"""Values between the solution and its tests: more than plain ones, and it is known which containers are the same.

Beside the letters of `typed` there are four. `Xdate;` begins the parts of a value of a kind, see `kinds`. Containers that can change have numbers, in the order in
which they are complete; `R3;` is number 3 once more, counted as what it holds, so that a few bytes cannot stand for more than `typed` lets through, and only
if it is complete, so that nothing holds itself. `O5,1;` is object 5 of the solution, which stays there and can be called; `W5;` begins what object 5, of a subclass of
a plain class, is as a value of its base.

For changes made in place, who answers goes on with the numbers of the request: its containers are then the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cascade_plugin_code.harness.kinds import kind_of, made_of, parts_of
from cascade_plugin_code.harness.typed import DEEPEST, Counted, Packing, Unpacking, Unplain

PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes))
_WHOLE = frozenset((list, tuple, dict, set, frozenset))
_CHANGING = frozenset((b"L", b"S", b"D"))
_LETTERS_MORE = frozenset((b"X", b"R", b"O", b"W"))
_CHANGING_KINDS = frozenset(("bytearray", "deque", "counter", "ordered", "defaultdict"))


class Known:
    """A container that has a number, with the number of values in it and how deep they are."""

    def __init__(self, value: Any, size: int, height: int) -> None:
        self.value, self.size, self.height = value, size, height


class _Numbered(Counted):
    """Numbers containers while they are gone through."""

    known: list[Known]
    _deepest = 0

    def count(self, depth: int, values: int = 1) -> None:
        if depth > self._deepest:
            self._deepest = depth
        if depth > DEEPEST or self.left < values:
            Counted.count(self, depth, values)
        self.left -= values

    def again(self, place: int, depth: int) -> Any:
        """The container of this number once more."""
        one = self.known[place]
        self.count(depth + one.height, one.size)
        return one.value

    def measured(self, depth: int, go: Callable[[], Any]) -> tuple[Any, int, int]:
        """What `go` gives, how many values it counted, and how many levels below this one."""
        left, outer, self._deepest = self.left, self._deepest, depth
        value = go()
        size, height = left - self.left, self._deepest - depth
        self._deepest = max(outer, self._deepest)
        return value, size, height


class Writer(_Numbered, Packing):
    """One message as bytes.

    `stays` says what is to be sent of a value of no kind: the number of an object, `-1` for none, and whether it goes as the value of its base;
    it raises `Unplain` where there is nothing.
    """

    def __init__(self, stays: Callable[[Any], tuple[int, bool]], known: Sequence[Known] = ()) -> None:
        super().__init__()
        self.known, self._stays = list(known), stays
        self._places = {id(one.value): place for place, one in enumerate(self.known)}

    def pack(self, value: Any, depth: int) -> None:
        own = type(value)
        if own in _ATOMS:
            Packing.pack(self, value, depth)
            return
        place = self._places.get(id(value))
        if place is not None:
            if place < 0:
                raise Unplain("a value that holds itself")
            self.again(place, depth)
            self.pieces.append(b"R%d;" % place)
        elif own in _WHOLE:
            self._numbered(value, depth, own not in (tuple, frozenset), lambda: Packing.pack(self, value, depth))
        elif not self._of_a_kind(value, depth):
            self._foreign(value, depth)

    def _of_a_kind(self, value: Any, depth: int) -> bool:
        name = kind_of(value)
        try:
            parts = parts_of(name, value) if name else ()
        except (ValueError, TypeError, ArithmeticError):
            return False
        if name:
            self.pieces.append(b"X%b;" % name.encode())
            self._numbered(value, depth, name in _CHANGING_KINDS, lambda: self._parts(value, parts, depth))
        return bool(name)

    def _parts(self, value: Any, parts: tuple[Any, ...], depth: int) -> None:
        self.count(depth, 1 + (len(value) if type(value) is range else 0))
        self.pack(parts, depth + 1)

    def _foreign(self, value: Any, depth: int) -> None:
        number, as_base = self._stays(value)
        if number >= 0:
            self.count(depth)
            self.pieces.append(b"W%d;" % number if as_base else b"O%d,%d;" % (number, callable(value)))
        if as_base:
            changes = isinstance(value, (list, set, dict))
            self._numbered(value, depth + 1, changes, lambda: Packing.pack(self, value, depth + 1))

    def _numbered(self, value: Any, depth: int, changes: bool, go: Callable[[], None]) -> None:
        if not changes:
            go()
            return
        self._places[id(value)] = -1
        _, size, height = self.measured(depth, go)
        self._places[id(value)] = len(self.known)
        self.known.append(Known(value, size, height))


class Reader(_Numbered, Unpacking):
    """One message from bytes.

    `object_of` gives what an object's number stands for, told whether it can be called; `more` a value that has a subclass's object behind it.
    """

    def __init__(
        self,
        data: bytes,
        object_of: Callable[[int, bool], Any],
        more: Callable[[Any, int], Any],
        known: Sequence[Known] = (),
    ) -> None:
        super().__init__(data)
        self.known, self._object_of, self._more = list(known), object_of, more

    def unpack(self, depth: int) -> Any:
        letter = self.data[self.place : self.place + 1]
        if letter in _CHANGING:
            return self._numbered(depth, lambda: Unpacking.unpack(self, depth))
        if letter not in _LETTERS_MORE:
            return Unpacking.unpack(self, depth)
        self.place += 1
        if letter == b"X":
            name = self.until(b";")
            read = lambda: self._made(name, depth)  # noqa: E731
            return self._numbered(depth, read) if name in _CHANGING_KINDS else read()
        if letter == b"R":
            return self.again(self.size(b";"), depth)
        self.count(depth)
        if letter == b"O":
            return self._object_of(self.size(b","), self.size(b";") == 1)
        return self._with_more(self.size(b";"), depth)

    def _made(self, name: str, depth: int) -> Any:
        self.count(depth)
        value = made_of(name, self.unpack(depth + 1))
        if type(value) is range:
            self.count(depth, len(value))
        return value

    def _with_more(self, number: int, depth: int) -> Any:
        base = self.unpack(depth + 1)
        value = self._more(base, number)
        if self.known and self.known[-1].value is base:
            self.known[-1].value = value
        return value

    def _numbered(self, depth: int, go: Callable[[], Any]) -> Any:
        value, size, height = self.measured(depth, go)
        self.known.append(Known(value, size, height))
        return value


def contents(value: Any) -> tuple[Any, ...]:
    """What is in a container, in one row; the keys and values of a mapping by turns."""
    if isinstance(value, bytearray):
        return (bytes(value),)
    if isinstance(value, dict):
        return tuple(part for pair in value.items() for part in pair)
    return tuple(value)


def same_contents(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether nothing was put in, taken out or exchanged."""
    return len(one) == len(other) and all(map(_is_same, one, other))


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is bytes and type(other) is bytes and one == other)


def refill(value: Any, row: Any) -> None:
    """Puts other contents into a container.

    Raises:
        Unplain: it cannot hold these.
    """
    try:
        if type(row) is not tuple or (isinstance(value, dict) and len(row) % 2):
            raise TypeError("no contents")
        if isinstance(value, bytearray):
            if [type(part) for part in row] != [bytes]:
                raise TypeError("no bytes")
            value[:] = row[0]
        elif isinstance(value, list):
            value[:] = row
        else:
            value.clear()
            if isinstance(value, dict):
                for place in range(0, len(row), 2):
                    value[row[place]] = row[place + 1]
            elif isinstance(value, set):
                value.update(row)
            else:
                value.extend(row)
    except (TypeError, ValueError) as cause:
        raise Unplain("no contents: " + type(cause).__name__) from None


def text_of(error: BaseException) -> str:
    """What an exception is made anew with: its text, of a `KeyError` the key, whose quotes come with the text."""
    key = (
        isinstance(error, KeyError)
        and type(error).__str__ is KeyError.__str__
        and [type(part) for part in error.args] == [str]
    )
    return (error.args[0] if key else str(error))[:1000]
