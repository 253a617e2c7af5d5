"""Values to many digits: a tree and the values of its variables to one complex number.

mpmath does the functions; this module bounds what it is asked. Magnitudes are reckoned through logarithms first, so
that a tower of powers costs nothing. What has no numeric meaning here (an unknown function, an accent, `\\ldots`) is
given a number that depends on nothing but its name and its arguments, so that equal texts have equal values.

Contexts are private to the call: no global precision is touched, and threads do not meet.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import mpmath  # type: ignore[import-untyped]

from cascade_plugin_math.verifier.exact import MAX_TERMS
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable
from cascade_plugin_math.verifier.tables import listed, spaced
from cascade_plugin_math.verifier.vocabulary import takes

MAX_LOG = 200_000.0
_BUDGET = 60_000


class Undefined(ArithmeticError):
    """The tree has no finite value at this point."""


class Evaluator:
    """Evaluates trees to `digits` significant digits.

    `log10` reads a bare `\\log` as the decimal logarithm, not the natural one: both are customary. `real` gives no value where a
    root, power or logarithm of real numbers is not real, so that `√a √b` is `√(ab)` wherever it is anything.
    """

    def __init__(self, digits: int, log10: bool = False, real: bool = False) -> None:
        self.mp: Any = mpmath.ctx_mp.MPContext()
        self.mp.dps = digits
        self.log10 = log10
        self.real = real
        self.steps = 0

    def value(self, node: Node, env: Mapping[str, Any]) -> Any:
        """The value, an mpf or mpc.

        Raises:
            Undefined: a division by zero, an infinity, a pole.
            TooMuch: a number too large to look at, or too many steps.
        """
        self.steps += 1
        if self.steps > _BUDGET:
            raise TooMuch("too many steps")
        rule = _RULES.get(node.op, Evaluator._opaque)
        try:
            return rule(self, node, env)
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            if isinstance(error, (TooMuch, Unreadable)):
                raise
            raise Undefined(str(error)) from None

    def args(self, node: Node, env: Mapping[str, Any]) -> list[Any]:
        return [self.value(arg, env) for arg in node.args]

    def _num(self, node: Node, env: Mapping[str, Any]) -> Any:
        if node.value.numerator.bit_length() > 4 * MAX_LOG or node.value.denominator.bit_length() > 4 * MAX_LOG:
            raise TooMuch("a number of too many digits")
        return self.mp.mpf(node.value.numerator) / node.value.denominator

    def _sym(self, node: Node, env: Mapping[str, Any]) -> Any:
        if node.value in env:
            return env[node.value]
        return self.hashed(f"sym {node.value}")

    def _const(self, node: Node, env: Mapping[str, Any]) -> Any:
        if node.value == "inf":
            raise Undefined("infinity")
        return {"pi": +self.mp.pi, "e": +self.mp.e, "i": self.mp.mpc(0, 1)}[node.value]

    def _add(self, node: Node, env: Mapping[str, Any]) -> Any:
        return sum(self.args(node, env), self.mp.mpf(0))

    def _mul(self, node: Node, env: Mapping[str, Any]) -> Any:
        total = self.mp.mpf(1)
        for value in self.args(node, env):
            total *= value
        return total

    def _inv(self, node: Node, env: Mapping[str, Any]) -> Any:
        value = self.value(node.args[0], env)
        if value == 0:
            raise Undefined("division by zero")
        return 1 / value

    def _pow(self, node: Node, env: Mapping[str, Any]) -> Any:
        return self.power(self.value(node.args[0], env), self.value(node.args[1], env))

    def power(self, base: Any, exponent: Any) -> Any:
        """`base` to the `exponent`, if its logarithm is within `MAX_LOG`."""
        if base == 0:
            if self.mp.re(exponent) > 0:
                return self.mp.mpf(0)
            if exponent == 0:
                return self.mp.mpf(1)
            raise Undefined("a power of zero")
        if float(min(abs(exponent), self.mp.mpf("1e30"))) * (abs(float(self.mp.log(abs(base)))) + 4) > MAX_LOG:
            raise TooMuch("a power too large to look at")
        whole = self.mp.isint(exponent) and abs(exponent) < 10**6
        return base ** int(self.mp.re(exponent)) if whole else self._kept(self.mp.power(base, exponent), base)

    def _kept(self, value: Any, *origin: Any) -> Any:
        """The value, unless it left the real numbers."""
        if self.real and self.mp.im(value) != 0 and all(self.mp.im(part) == 0 for part in origin):
            raise Undefined("not real")
        return value

    def _root(self, node: Node, env: Mapping[str, Any]) -> Any:
        body, index = self.args(node, env)
        if index == 0:
            raise Undefined("a root of index zero")
        odd = self.mp.isint(index) and int(self.mp.re(index)) % 2 == 1
        if odd and self.mp.im(body) == 0 and self.mp.re(body) < 0:
            return -self.power(-self.mp.re(body), 1 / index)
        return self._kept(self.mp.sqrt(body), body) if index == 2 else self.power(body, 1 / index)

    def _fact(self, node: Node, env: Mapping[str, Any]) -> Any:
        return self.gamma(self.value(node.args[0], env) + 1)

    def gamma(self, value: Any) -> Any:
        """The gamma function, of arguments whose size is bounded."""
        if abs(value) > 20_000:
            raise TooMuch("a factorial of too large a number")
        return self.mp.gamma(value)

    def _dfact(self, node: Node, env: Mapping[str, Any]) -> Any:
        value = self.value(node.args[0], env)
        if abs(value) > 20_000:
            raise TooMuch("a factorial of too large a number")
        return self.mp.fac2(value)

    def _fun(self, node: Node, env: Mapping[str, Any]) -> Any:
        if node.value in ("sum", "prod"):
            return self._series(node, env)
        rule = _FUNCTIONS.get(node.value)
        if rule is None or not takes(node.value, len(node.args)):
            return self._opaque(node, env)
        values = self.args(node, env)
        if node.value not in _ANY_SIZE and any(abs(value) > 10**6 for value in values):
            raise TooMuch("an argument too large to look at")
        result = rule(self, *values)
        if not self.mp.isfinite(result):
            raise Undefined("a pole")
        return result

    def _series(self, node: Node, env: Mapping[str, Any]) -> Any:
        name, low, high, body = node.args
        if name.op != "sym":
            return self._opaque(node, env)
        try:
            begin, end = self.value(low, env), self.value(high, env)
        except Undefined:
            return self._opaque(node, env)
        if not (self.mp.isint(begin) and self.mp.isint(end)):
            raise Undefined("a sum with bounds that are no integers")
        if abs(begin) > 10**9 or end - begin > MAX_TERMS:
            raise TooMuch("a sum of too many terms")
        total = self.mp.mpf(0 if node.value == "sum" else 1)
        for index in range(int(begin), int(end) + 1):
            term = self.value(body, {**env, name.value: self.mp.mpf(index)})
            total = total + term if node.value == "sum" else total * term
        return total

    def _percent(self, node: Node, env: Mapping[str, Any]) -> Any:
        return self.value(node.args[0], env) / 100

    def _degree(self, node: Node, env: Mapping[str, Any]) -> Any:
        return self.value(node.args[0], env) * self.mp.pi / 180

    def _opaque(self, node: Node, env: Mapping[str, Any]) -> Any:
        """A number for what has no numeric meaning: the same for the same name and arguments."""
        parts = [node.op, repr(node.value)]
        for arg in node.args:
            try:
                value = self.value(arg, env)
                parts += [self.mp.nstr(self.mp.re(value), 25), self.mp.nstr(self.mp.im(value), 25)]
            except Undefined:
                parts.append("undefined")
        return self.hashed(" ".join(parts))

    def hashed(self, text: str) -> Any:
        """A number between 0.3 and 2.3 that is a function of the text."""
        return self.mp.mpf(zlib.crc32(text.encode("utf-8", "replace")) % 1_999_993) / 999_979 + self.mp.mpf(3) / 10

    def log(self, value: Any) -> Any:
        if value == 0:
            raise Undefined("a logarithm of zero")
        return self._kept(self.mp.log(value), value)

    def floor(self, value: Any) -> Any:
        """The integer below; a value within a hair of an integer counts as that integer."""
        near = self.mp.nint(self.mp.re(value))
        close = abs(value - near) < self.mp.mpf(10) ** (-self.mp.dps // 2)
        return near if close else self.mp.floor(self.mp.re(value))


def _binom(ev: Evaluator, top: Any, bottom: Any) -> Any:
    if abs(top) > 20_000 or abs(bottom) > 20_000:
        raise TooMuch("a binomial coefficient of too large numbers")
    return ev.mp.binomial(top, bottom)


def _ints(ev: Evaluator, values: tuple[Any, ...]) -> list[int]:
    if not all(ev.mp.isint(value) and abs(value) < 10**40 for value in values):
        raise Undefined("no integers")
    return [int(ev.mp.re(value)) for value in values]


def _reals(ev: Evaluator, values: tuple[Any, ...]) -> list[Any]:
    if any(ev.mp.im(value) for value in values):
        raise Undefined("no real numbers")
    return [ev.mp.re(value) for value in values]


def _mod(ev: Evaluator, value: Any, modulus: Any) -> Any:
    if modulus == 0:
        raise Undefined("modulus zero")
    return value - modulus * ev.floor(value / modulus)


def _inverse(name: str) -> Callable[..., Any]:
    return lambda ev, x: getattr(ev.mp, name)(1 / x)


def _reciprocal(name: str) -> Callable[..., Any]:
    return lambda ev, x: 1 / getattr(ev.mp, name)(x)


_ANY_SIZE = spaced("ln lg log logb abs norm floor ceil sign re im arg conj gcd lcm max min mod")
_DIRECT = listed("sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh re im arg sign conj erf")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: (lambda ev, x, name=name: getattr(ev.mp, name)(x)) for name in _DIRECT},
    "cot": _reciprocal("tan"),
    "sec": _reciprocal("cos"),
    "csc": _reciprocal("sin"),
    "coth": _reciprocal("tanh"),
    "sech": _reciprocal("cosh"),
    "csch": _reciprocal("sinh"),
    "acot": lambda ev, x: ev.mp.atan(1 / x) if x != 0 else ev.mp.pi / 2,
    "asec": _inverse("acos"),
    "acsc": _inverse("asin"),
    "ln": lambda ev, x: ev.log(x),
    "lg": lambda ev, x: ev.log(x) / ev.mp.log(10),
    "log": lambda ev, x: ev.log(x) / ev.mp.log(10) if ev.log10 else ev.log(x),
    "logb": lambda ev, x, base: ev.log(x) / ev.log(base),
    "abs": lambda ev, x: abs(x),
    "norm": lambda ev, x: abs(x),
    "floor": lambda ev, x: ev.floor(x),
    "ceil": lambda ev, x: -ev.floor(-x),
    "Gamma": lambda ev, x: ev.gamma(x),
    "binom": _binom,
    "perm": lambda ev, n, k: _binom(ev, n, k) * ev.gamma(k + 1),
    "gcd": lambda ev, *xs: ev.mp.mpf(math.gcd(*_ints(ev, xs))),
    "lcm": lambda ev, *xs: ev.mp.mpf(math.lcm(*_ints(ev, xs))),
    "max": lambda ev, *xs: max(_reals(ev, xs)),
    "min": lambda ev, *xs: min(_reals(ev, xs)),
    "mod": _mod,
}
_RULES: dict[str, Callable[[Evaluator, Node, Mapping[str, Any]], Any]] = {
    "num": Evaluator._num,
    "sym": Evaluator._sym,
    "const": Evaluator._const,
    "add": Evaluator._add,
    "mul": Evaluator._mul,
    "neg": lambda ev, node, env: -ev.value(node.args[0], env),
    "inv": Evaluator._inv,
    "pow": Evaluator._pow,
    "root": Evaluator._root,
    "fact": Evaluator._fact,
    "dfact": Evaluator._dfact,
    "percent": Evaluator._percent,
    "degree": Evaluator._degree,
    "based": lambda ev, node, env: ev.value(node.args[0], env),
    "fun": Evaluator._fun,
}
