"""A Ray cluster that runs already: its nodes, whether each would judge as this machine does, and what each can reach.

Nothing here starts a cluster, and a connection that somebody else made in this process is used and left alone. Courier actors ask for no
CPU of Ray's count: whoever trains on the cluster is never refused a place because of them, nor do they wait for one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.settings import RayWorkers

CORE = "cascade-rl"
_ANSWER_SECONDS = (
    60.0  # in which a node must say what is installed there: a worker is started, perhaps for the first time
)

_KNOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Node:
    """One machine, or what Ray takes for one: `workers` processes compute there."""

    id: str
    host: str
    workers: int

    def __str__(self) -> str:
        return f"node {self.host} ({self.id[:8]})"


@dataclass(frozen=True)
class Refusal:
    """Why a node must not judge; `final` where asking again would not help."""

    why: str
    final: bool


class Cluster:
    """A connection to a cluster. Several may share it: the last that is closed disconnects, unless it was there before.

    Raises:
        ScoringError: Ray is not installed, or no cluster answers at the address.
    """

    _lock = threading.Lock()
    _holders = 0
    _foreign = False

    def __init__(self, where: RayWorkers) -> None:
        self.where = where
        self._open = True
        with Cluster._lock:
            if Cluster._holders == 0:
                Cluster._foreign = _connect(where.address)
            Cluster._holders += 1

    def share(self) -> Cluster:
        """Another holder of this connection."""
        return Cluster(self.where)

    def close(self) -> None:
        """Safe to repeat."""
        import ray

        with Cluster._lock:
            if not self._open:
                return
            self._open = False
            Cluster._holders -= 1
            if Cluster._holders == 0 and not Cluster._foreign:
                ray.shutdown()

    def nodes(self) -> list[Node]:
        """Every node that is alive and offers Ray cores, in the order of their ids."""
        import ray

        found = []
        for node in ray.nodes():
            cores = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
            if cores:
                host = node.get("NodeManagerHostname") or node["NodeManagerAddress"]
                found.append(Node(node["NodeID"], host, self.where.per_node or cores))
        return sorted(found, key=lambda node: node.id)

    def ready(self, domains: Iterable[DomainRef], resources: Mapping[str, str]) -> list[Node]:
        """The nodes, each of which has been asked.

        Raises:
            ScoringError: see `fleets`.
        """
        wanted, until = list(domains), time.monotonic() + _ANSWER_SECONDS
        while True:
            nodes = self.nodes()
            if not nodes:
                raise ScoringError("no node of the Ray cluster offers any CPU, so none can judge")
            check_addresses(resources, [node.host for node in nodes])
            refused = self.refusals(nodes, wanted)
            if not refused:
                return nodes
            if any(refusal.final for refusal in refused.values()) or time.monotonic() > until:
                raise ScoringError("; ".join(refusal.why for refusal in refused.values()))
            time.sleep(1.0)  # a node that has just gone counts as alive for some seconds

    def refusals(self, nodes: Sequence[Node], domains: Iterable[DomainRef]) -> dict[Node, Refusal]:
        """Which nodes must not judge: another version there, none, or no answer."""
        import ray

        wanted = distributions(domains)
        task = ray.remote(num_cpus=0, max_retries=0)(_versions())
        asked = [task.options(scheduling_strategy=pinned(node)).remote(sorted(wanted)) for node in nodes]
        ray.wait(asked, num_returns=len(asked), timeout=_ANSWER_SECONDS)
        found: dict[Node, Refusal] = {}
        for node, answer in zip(nodes, asked, strict=True):
            try:
                why, final = difference(wanted, ray.get(answer, timeout=0)), True
            except ray.exceptions.GetTimeoutError:
                why, final = f"does not answer within {_ANSWER_SECONDS:g} s", False
            except ray.exceptions.RayError as cause:
                why, final = f"cannot be asked what is installed there: {line(cause)}", False
            if why:
                found[node] = Refusal(f"{node} {why}", final)
        return found


def pinned(node: Node) -> Any:
    """Ray's word for: on this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node.id, soft=False)


def line(cause: BaseException) -> str:
    """The last line of an exception of Ray's, which carries another's traceback before it."""
    lines = [part.strip() for part in str(cause).splitlines() if part.strip()]
    return (lines[-1] if lines else type(cause).__name__)[:300]


def distributions(domains: Iterable[DomainRef]) -> dict[str, str]:
    """What a node must have to judge these: distributions and their versions, those of this machine."""
    wanted = {CORE: version(CORE)}
    for ref in domains:
        if ref.distribution:
            wanted[ref.distribution] = ref.version or _here(ref.distribution)
    return wanted


def difference(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    """What of it is missing or other there, in words; `""` where all is well."""
    wrong = [
        f"has {name} {found[name]}, and {expected} judges here" if found[name] else f"has no {name} (here: {expected})"
        for name, expected in wanted.items()
        if found[name] != expected
    ]
    return " and ".join(wrong) + ": install the same on every node" if wrong else ""


def check_addresses(resources: Mapping[str, str], hosts: Iterable[str]) -> None:
    """Insists that nodes on other machines can reach what domains need.

    Raises:
        ScoringError: an address is good on this machine alone, and a node is another one.
    """
    others = sorted(set(hosts) - {socket.gethostname()})
    for need, address in resources.items():
        if others and _is_local(address):
            raise ScoringError(
                f"{address}, which provides {need!r}, can be reached from this machine alone, and {', '.join(others[:3])}"
                " judges too: give an address that every node reaches, or let this machine judge (scoring.workers: a number)"
            )


def _is_local(address: str) -> bool:
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme in ("unix", "npipe", "file") or (not host and address.startswith("/")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _here(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _versions() -> Callable[[Sequence[str]], dict[str, str]]:
    """A function that travels whole: a node where this project is missing must be able to say so."""

    def versions(names: Sequence[str]) -> dict[str, str]:
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for name in names:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = ""
        return found

    return versions


def _knock(address: str) -> None:
    """Whether anybody listens at `host:port`: Ray would try for minutes. Other forms of an address are left to Ray.

    Raises:
        OSError: nobody does.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "//" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


def _connect(address: str) -> bool:
    """Connects this process; whether it already was.

    Raises:
        ScoringError: see `Cluster`.
    """
    try:
        import ray
    except ImportError as cause:
        raise ScoringError(
            f"scoring on Ray needs ray, which cannot be imported ({cause}): pip install 'cascade-rl[ray]'"
        ) from cause
    if ray.is_initialized():
        return True
    named = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    if named == "local":
        raise ScoringError(
            "RAY_ADDRESS is 'local', a Ray that would be started anew: say in it where a cluster is joined"
        )
    if named.startswith(("http://", "https://")):
        raise ScoringError(
            f"RAY_ADDRESS is {named!r}, where jobs are submitted, and judging joins a cluster: name host:port, such as"
            " head:6379 (scoring.workers: {ray: {address: …}})"
        )
    held = _handler()
    try:
        _knock(named)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tips for those who write programs for Ray
            ray.init(address=address, log_to_driver=False, logging_level="error", configure_logging=False)
    except Exception as cause:
        with contextlib.suppress(Exception):
            ray.shutdown()  # what it had begun
        raise ScoringError(_unjoined(address, named, cause)) from cause
    finally:
        if held is not None:  # Ray would end the process in its own way, past what is to be ended first
            signal.signal(signal.SIGTERM, held)
    return False


def _unjoined(address: str, named: str, cause: Exception) -> str:
    """Why there is no connection, and what helps: another cluster does not where one answers that is of other versions."""
    where = f"at {named!r}" + (" (RAY_ADDRESS)" if address == "auto" else "") if named else "on this machine"
    told = " ".join(str(cause).split()).rstrip(".")
    if told.startswith("Version mismatch"):
        return f"the Ray cluster {where} cannot be joined: {told[:400]}; install here what is there"
    if not named and isinstance(cause, ConnectionError):
        told = "none runs, and RAY_ADDRESS names none elsewhere"
    else:
        told = line(cause).rstrip(".")
    return (
        f"no Ray cluster can be joined {where}: {told}; start one (ray start --head), or let processes of this machine judge"
        " (scoring.workers: a number)"
    )


def _handler() -> Any:
    """What SIGTERM does now; `None` where nobody can change it: in another thread than the main one."""
    return signal.getsignal(signal.SIGTERM) if threading.current_thread() is threading.main_thread() else None
