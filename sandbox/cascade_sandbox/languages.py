"""The languages, as data: `LANGUAGES`. A new one is an entry here, and an image that has its compiler or interpreter.

A command is a list of words. `{source}` stands for the path of the source file, `{program}` for that of what the compiler makes,
`{folder}` for the folder of both. Before a sandbox offers a language, the language's self-test must have passed in it
(`trouble`): it uses what programs use, so that a missing header or module is found before the first reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cascade_sandbox.contract import Input, Limits, Program, Sandbox

_CPP_SELF_TEST = """\
#include <bits/stdc++.h>
int main() {
    long long sum = 0, x;
    while (std::cin >> x) sum += x;
    std::vector<std::string> words{"sum", std::to_string(sum)};
    std::sort(words.begin(), words.end());
    std::cout << words[0] << std::endl;
#if __cplusplus < %s
    return 1;
#endif
}
"""

_PYTHON_SELF_TEST = """\
import bisect, collections, decimal, fractions, functools, heapq, itertools, json, math, random, re, string, sys
print(sum(map(int, sys.stdin.read().split())))
"""


@dataclass(frozen=True)
class Language:
    """How a program of this language is written, compiled and run.

    `file` is the name of the source file. `stack_bytes` bounds the stack of a run (and is never above half of its memory).
    `self_test` is a program that prints the sum of the numbers that it reads.
    """

    name: str
    file: str
    run: tuple[str, ...]
    self_test: str
    compile: tuple[str, ...] | None = None
    stack_bytes: int = 64 << 20
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def wire(self) -> dict[str, Any]:
        """The language as a supervisor reads it: it knows none by itself."""
        return {
            "name": self.name,
            "file": self.file,
            "compile": list(self.compile) if self.compile else None,
            "run": list(self.run),
            "stack_bytes": self.stack_bytes,
            "environment": dict(self.environment),
        }


def _cpp(name: str, standard: str, value: str) -> Language:
    return Language(
        name=name,
        file="main.cpp",
        # -pipe would save nothing on a tmpfs; -w: warnings are nobody's to read
        compile=("g++", f"-std={standard}", "-O2", "-w", "-o", "{program}", "{source}"),
        run=("{program}",),
        self_test=_CPP_SELF_TEST % value,
        stack_bytes=256 << 20,
    )


_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        language.name: language
        for language in (
            Language(
                name="python",
                file="main.py",
                run=("python3", "{source}"),
                self_test=_PYTHON_SELF_TEST,
                environment=_ONE_THREAD,
            ),
            _cpp("c++17", "gnu++17", "201703L"),
            _cpp("c++20", "gnu++20", "202002L"),
        )
    }
)
"""By name. The dialects are GNU's, which is what the programs of contests are written in."""

_SELF_TEST_LIMITS = Limits(cpu_seconds=10.0, memory_bytes=512 << 20)


def trouble(name: str, sandbox: Sandbox) -> str:
    """Runs a language's self-test in a sandbox: empty if it passed, else why not.

    Raises:
        SandboxError: it could not be run, for example because nothing there compiles or interprets the language.
        KeyError: no such language.
    """
    with sandbox.open(Program(LANGUAGES[name].self_test, name), _SELF_TEST_LIMITS) as session:
        result = session.run(Input(b"20\n22\n"))
    if result.verdict == "ok" and result.stdout == b"42\n":
        return ""
    said = result.stderr.strip() or result.stdout[:200].decode("utf-8", "replace").strip()
    return f"its self-test ended with {result.verdict}: {said}"
