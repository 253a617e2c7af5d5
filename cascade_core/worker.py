"""What runs inside a scoring process: it rebuilds domains by name, judges one request at a time, and limits each.

Requests and replies are frames on one socket, which only this module and `process.py` know. What a verifier prints goes
to file descriptors 1 and 2, a pipe that the parent drains: it cannot be mistaken for a verdict.

A call may use `cpu_seconds` of CPU time (its own and that of children it waited for) and `memory_mib` beyond what the
process held when the call began. CPU time is limited by the kernel (`RLIMIT_CPU`, whose signal nobody handles, so that a
loop inside C code ends too), memory by `RLIMIT_DATA`. Wall-clock time, lost processes and retries are the parent's. This
contains mistakes and runaway inputs; it is no sandbox for code that a model wrote.
"""

from __future__ import annotations

import contextlib
import json
import math
import numbers
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from cascade_core.conversation import converses
from cascade_core.domain import BatchStats, Domain, DomainRef, Group, Score
from cascade_core.errors import ContractError, RowError, TaskError
from cascade_core.rows import json_score, row_response, row_task, score_json

REQUEST = struct.Struct("!cQ")
"""Kind and length of the JSON body that follows.

Kinds: `o` open a domain, `s` score a row, `r` rewards of a group, `x` score a row and tell time, memory and explanation, `c` the
environment's next turn of a conversation, or how many turns of the model one may have.
"""

REPLY = struct.Struct("!cd?Q")
"""Kind, CPU seconds of the process so far, whether it is worn out, length of the UTF-8 body.

Kinds: `o` opened and `k` done (body: JSON), `l` a limit was reached, `t` the task is broken, `e` anything else went wrong
(body: one line of text).
"""

Outcome = tuple[bytes, str, bool]  # kind, body, worn out

_PR_SET_PDEATHSIG = 1
_PAGE = resource.getpagesize()


def main(descriptor: int, parent: int, cpu_seconds: float, memory_mib: int) -> None:
    """Serves requests on the socket `descriptor` until it is closed by the process `parent`, or that one is gone."""
    _prepare(parent)
    with socket.socket(fileno=descriptor) as channel:
        host = Host(cpu_seconds, memory_mib * 2**20)
        with contextlib.suppress(ConnectionError):  # nobody wants the answer any more
            for kind, body in _requests(channel):
                outcome, text, worn = host.answer(kind, body)
                data = text.encode("utf-8", "backslashreplace")
                channel.sendall(REPLY.pack(outcome, cpu(), worn, len(data)) + data)
        host.close()


def _prepare(parent: int) -> None:
    """Signals as at first, no core files, and death with the parent, even where that one was killed."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _requests(channel: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    inbox = bytearray()
    while _fill(inbox, channel, REQUEST.size):
        kind, length = REQUEST.unpack_from(inbox)
        end = REQUEST.size + length
        if not _fill(inbox, channel, end):
            return
        body = bytes(inbox[REQUEST.size : end])
        del inbox[:end]
        yield kind, body


def _fill(inbox: bytearray, channel: socket.socket, length: int) -> bool:
    """Reads until there are `length` bytes, and what has come behind them; false where the other end is closed."""
    while len(inbox) < length:
        part = channel.recv(max(2**16, min(length - len(inbox), 2**20)))
        if not part:
            return False
        inbox += part
    return True


def cpu() -> float:
    """CPU seconds of this process and of the children that it waited for: what `wait4` will tell the parent."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Host:
    """The domains of one process, and the limits of each call into them."""

    def __init__(self, cpu_seconds: float, memory: int) -> None:
        self._cpu_seconds, self._memory = cpu_seconds, memory
        self._domains: dict[str, Domain] = {}
        self._base: int | None = None

    def answer(self, kind: bytes, body: bytes) -> Outcome:
        """The reply to one request; whatever a domain raises is part of it."""
        request = json.loads(body)
        if kind == b"o":
            return self._open(request)
        domain = self._domains[request["domain"]]
        if kind == b"s":
            return self._limited(lambda: _score(domain, request["row"]))
        if kind == b"x":
            return self._limited(lambda: _look(domain, request["row"], request["explain"]))
        if kind == b"c":
            return self._limited(lambda: _reply(domain, request))
        return self._limited(lambda: _rewards(domain, request["group"], BatchStats(**request["batch"])))

    def close(self) -> None:
        """Closes the domains; one that fails at it is told on standard error and stops nothing."""
        for domain in self._domains.values():
            try:
                domain.close()
            except BaseException:  # noqa: BLE001 - a stranger's code; the process ends anyway
                traceback.print_exc()

    def _open(self, request: dict[str, Any]) -> Outcome:
        _limit(resource.RLIMIT_DATA, resource.RLIM_INFINITY)
        _limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
        try:
            domain = _build(DomainRef(**request["ref"]))
            domain.open(request["resources"])
        except BaseException as cause:  # noqa: BLE001 - a stranger's code; becomes the error of every sample
            return b"e", f"domain {request['ref']['name']!r} cannot be opened: {told(cause)}", False
        self._domains[request["domain"]] = domain
        return b"o", json.dumps({"rewards": type(domain).rewards is not Domain.rewards}), False

    def _limited(self, call: Callable[[], str]) -> Outcome:
        """Runs `call` under both limits, which stay until the next call or until a domain is opened."""
        held, used = _held(), cpu()
        self._base = held if self._base is None else self._base
        worn = held - self._base > self._memory  # what earlier calls left behind is about to crowd the machine
        _limit(resource.RLIMIT_DATA, held + self._memory)
        _limit(resource.RLIMIT_CPU, math.ceil(used + self._cpu_seconds))
        try:
            outcome: Outcome = (b"k", call(), worn)
        except MemoryError:
            outcome = (b"l", f"limit: {self._memory // 2**20} MiB of memory", True)
        except (TaskError, RowError) as cause:
            outcome = (b"t", _line(cause), worn)
        except BaseException as cause:  # noqa: BLE001 - SystemExit and the like must not end the process
            outcome = (b"e", told(cause), worn)
        if cpu() - used > self._cpu_seconds:
            return b"l", f"limit: {self._cpu_seconds:g} s of CPU time", worn
        return outcome


def _build(ref: DomainRef) -> Domain:
    """The domain, from its own distribution where that is known: the plugins of others need not be loaded here."""
    from importlib.metadata import PackageNotFoundError, distribution

    from cascade_core.hookspecs import PROJECT
    from cascade_core.plugins import Registry

    own = None
    if ref.distribution:
        with contextlib.suppress(PackageNotFoundError):
            own = distribution(ref.distribution).entry_points.select(group=PROJECT)
    return Registry(own or None).build(ref)


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = hard if value == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, hard))


def _held() -> int:
    """Bytes that `RLIMIT_DATA` counts against this process; 0 where the system does not say."""
    try:
        pages = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(pages, 256).split()[5]) * _PAGE
    finally:
        os.close(pages)


def _score(domain: Domain, row: dict[str, Any]) -> str:
    score = domain.score(row_task(row), row_response(row))
    if not isinstance(score, Score):
        raise ContractError(f"{type(domain).__name__}.score must return a Score, found {_shown(score)}")
    if not isinstance(score.note, str) or not isinstance(score.error, str):
        raise ContractError(
            f"Score.note and Score.error must be text, found {_shown(score.note)}, {_shown(score.error)}"
        )
    return json.dumps(score_json(score), allow_nan=False)


def _reply(domain: Domain, request: dict[str, Any]) -> str:
    if "turns" not in request:
        most = domain.most_turns
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ContractError(f"{type(domain).__name__}.most_turns must be a number from 1, found {_shown(most)}")
        return json.dumps(most if converses(domain) else 0)
    said = domain.reply(row_task(request["row"]), request["turns"])
    if said is not None and not isinstance(said, str):
        raise ContractError(f"{type(domain).__name__}.reply must return a text or None, found {_shown(said)}")
    return json.dumps(said)


def _look(domain: Domain, row: dict[str, Any], explain: bool) -> str:
    """The score with the time it took, what the process holds after it, and the domain's own explanation if it is asked for."""
    began, used = time.perf_counter(), cpu()
    score = json.loads(_score(domain, row))
    found = {
        "score": score,
        "wall_seconds": time.perf_counter() - began,
        "cpu_seconds": cpu() - used,
        "held_bytes": _held(),
    }
    if explain:
        found.update(_explanation(domain, row))
    return json.dumps(found, allow_nan=False)


def _explanation(domain: Domain, row: dict[str, Any]) -> dict[str, Any]:
    """What the domain explains, or why it could not: an explanation that fails is no verdict that failed."""
    try:
        told_by_domain = domain.explain(row_task(row), row_response(row))
        if told_by_domain is not None and not isinstance(told_by_domain, Mapping):
            raise ContractError(
                f"{type(domain).__name__}.explain must return a mapping, found {_shown(told_by_domain)}"
            )
        value = None if told_by_domain is None else dict(told_by_domain)
        return {"explanation": json.loads(json.dumps(value, allow_nan=False))}
    except MemoryError:
        raise
    except Exception as cause:  # noqa: BLE001 - a stranger's code; said beside the verdict
        return {"explanation": None, "trouble": told(cause)}


def _rewards(domain: Domain, rows: list[dict[str, Any]], batch: BatchStats) -> str:
    responses = [row_response(row) for row in rows]
    group = Group(row_task(rows[0]), responses, [json_score(row["score"]) for row in rows])
    returned = domain.rewards(group, batch)
    try:
        rewards = list(returned)
    except TypeError as cause:
        raise ContractError(f"{type(domain).__name__}.rewards must return a list, found {_shown(returned)}") from cause
    for reward in rewards:
        if isinstance(reward, bool) or not isinstance(reward, numbers.Real) or not math.isfinite(reward):
            raise ContractError(f"{type(domain).__name__}.rewards must return finite numbers, found {_shown(reward)}")
    if len(rewards) != len(rows):
        raise ContractError(f"{type(domain).__name__}.rewards gave {len(rewards)} rewards for {len(rows)} responses")
    return json.dumps([float(reward) for reward in rewards])


def told(cause: BaseException) -> str:
    """An exception in one line: type, first line of the message, and where it was raised."""
    frames = traceback.extract_tb(cause.__traceback__, limit=-1)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(cause).__name__}: {_line(cause)}{where}"


def _line(cause: BaseException) -> str:
    try:
        text = str(cause)
    except BaseException:  # noqa: BLE001 - a stranger's __str__
        text = "its message cannot be shown"
    return (text.strip().splitlines() or ["no message"])[0][:300]


def _shown(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return f"{value!r:.80}" if plain else f"a {type(value).__name__}"


def run() -> NoReturn:
    """The process's entry: arguments are those of `main`, as text."""
    main(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    sys.exit(0)
