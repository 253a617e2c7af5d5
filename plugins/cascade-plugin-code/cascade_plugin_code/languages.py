"""Names of languages as models and data sets write them: which block is a program of which language.

What can be run is the sandbox's to say; this module only reads names.
"""

from __future__ import annotations

import re

from cascade_sandbox.languages import LANGUAGES

from cascade_core.errors import TaskError
from cascade_core.nearest import suggestion

_FAMILIES = {
    "python": ("python", "py", "py3", "pypy", "pypy3", "cpython", "ipython"),
    "c++": ("c++", "cpp", "cc", "cxx", "hpp", "c++11", "c++14", "c++17", "c++20", "c++23", "cpp11", "cpp14", "cpp17", "cpp20", "cpp23", "g++"),
}  # fmt: skip
_PYTHON = re.compile(r"python-?[23]?(?:\.\d+)*")  # python, python3, python3.11
_RUN_AS = {"python": "python", "c++": "c++17"}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names}

# Names of other languages, and of blocks that are no program: a session, an output, data.
_WORDS = """
    ada apl asm assembly awk bat bash c c# clojure cobol coffeescript console csharp css csv cmd cmake d dart diff
    dockerfile elixir elm erlang f# fish fortran fsharp go golang groovy haskell hs html http ini input java
    javascript js json jsonl jsx julia kotlin latex less log lua make makefile markdown math mathematica matlab md
    mermaid nasm nim objective-c objectivec ocaml octave out output pascal patch perl php plain plaintext plantuml
    powershell prolog properties protobuf ps1 pseudo pseudocode pycon pytb r racket raw rb regex result rs rst ruby
    rust sample scala scheme scss session sh sh-session shell shell-session shellsession sql stderr stdin stdout svg
    swift tcl terminal tex text toml traceback ts tsx txt typescript vb verilog vhdl vim wasm xml yaml yml zig zsh
"""
_OTHERS = frozenset(_WORDS.split())


def family(name: str) -> str:
    """`python` or `c++` for the names of these; any other name as it is, in lower case."""
    lowered = name.strip().lower().removeprefix("language-").removeprefix("lang-")
    return "python" if _PYTHON.fullmatch(lowered) else _FAMILY.get(lowered, lowered)


def run_as(name: str, where: str) -> str:
    """What the sandbox calls a language of a task: `python3` is `python`, `cpp` is `c++17`, `cpp20` is `c++20`.

    Raises:
        TaskError: the sandbox has no such language.
    """
    lowered = name.strip().lower().replace("cpp", "c++")
    known = lowered if lowered in LANGUAGES else _RUN_AS.get(family(lowered), lowered)
    if known not in LANGUAGES:
        raise TaskError(f"{where} is {name[:60]!r}, which is no language of the sandbox{suggestion(known, LANGUAGES)}")
    return known


def is_known(tag: str) -> bool:
    """Whether a tag names a language that this module knows by all its names."""
    return family(tag) in _FAMILIES


def is_other(tag: str, language: str) -> bool:
    """Whether a block with this tag is known to be something else than a program in the language."""
    return family(tag) != family(language) and (tag in _OTHERS or family(tag) in _FAMILIES)
