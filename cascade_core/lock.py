"""`lock.json`: what a run was started with, so that going on with something else is refused.

It pins the spec, the plugins' versions and source hashes, the versions of what they depend on, the trainers' flags and the
packages that they drive in an environment of their own, the files that the domains' options name, what provides the
resources that they need, and the tasks of every benchmark. What a resource is found to be once it runs (the digest of a reward
model's files, say) is added when it first starts, under `started`.
Settings that cannot change a result (how many workers, the trackers) are left out. The starting model's fingerprint is in
the first stage's `metrics.json`, as every stage's is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from cascade_core.composition import named
from cascade_core.errors import RunChanged
from cascade_core.evaluate import Exam
from cascade_core.folder import file_hash, load_json
from cascade_core.pairs import PairExam
from cascade_core.plugins import Registry
from cascade_core.provision import Provision
from cascade_core.rows import write_json
from cascade_core.settings import Spec
from cascade_core.vllm_sampling import pinned

STARTED = "started"
"""The key of a lock under which lies what resources were found to be."""

# How many processes judge, how long an unjudged sample is waited for, and how many of those are borne: of no effect on
# what is judged. Not so `evaluation.batch_size`: what a prompt is given depends on the prompts beside it.
FREE = {("scoring", key) for key in ("workers", "concurrency", "wall_seconds", "io_wall_seconds", "max_error_rate")}


def lock(
    spec: Spec,
    registry: Registry,
    flags: Mapping[str, Mapping[str, Any]],
    found: Iterable[Exam | PairExam],
    resources: Iterable[Provision] = (),
    engine: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The lock of a run; `flags` are each stage's own trainer flags, `engine` the versions of what trainers drive elsewhere."""
    provided = list(resources)
    scorers = named(spec)
    kinds = [("domain", registry.meant(name, options)[0]) for name, options in scorers.items()]
    kinds += [("resource", f"{one.need}/{one.name}") for one in provided if one.name]
    kinds += [("trainer", name) for name in sorted({stage.trainer or spec.trainer for stage in spec.stages})]
    return {
        "python": platform.python_version(),
        "spec": pinned_spec(spec),
        "core": {"version": version("cascade-rl"), "source": source_hash("cascade_core")},
        "plugins": {f"{kind} {name}": _plugin(registry, kind, name) for kind, name in kinds},
        "resources": {one.need: dict(one.pinned) for one in provided},
        "data": {name: files(options) for name, options in scorers.items()},
        "engine": dict(engine or {}),
        "trainer_flags": {name: dict(values) for name, values in flags.items()},
        "benchmarks": {exam.name: exam.fingerprint for exam in found},
    }


def pinned_spec(spec: Spec) -> dict[str, Any]:
    """The spec as JSON, without settings that cannot change a result, and without resources: what they come to is pinned."""
    whole = spec.model_dump(mode="json", exclude={"trackers"})
    whole.pop("resources")
    whole.pop("engine")  # what of it matters is among the trainer's flags
    # How vLLM is spread out, and what it holds at once, may have to change for a run to go on.
    whole["evaluation"].pop("tensor_parallel_size")
    whole["evaluation"]["vllm_args"] = pinned(whole["evaluation"]["vllm_args"])
    for section, key in FREE:
        whole[section].pop(key, None)
    return whole


def files(options: Any) -> dict[str, str]:
    """Every file that the options of a domain name, with its SHA-256."""
    if isinstance(options, Mapping | list):
        inside = options.values() if isinstance(options, Mapping) else options
        return {path: digest for value in inside for path, digest in files(value).items()}
    try:
        named = isinstance(options, str) and Path(options).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL in it
        named = False
    return {options: file_hash(Path(options))} if named else {}


def _plugin(registry: Registry, kind: str, name: str) -> dict[str, Any]:
    cls, plugin = registry.find(kind, name)
    return {
        "distribution": plugin.distribution,
        "version": plugin.version,
        "source": source_hash(cls.__module__.partition(".")[0]),
        "dependencies": _dependencies(plugin.distribution, name.partition("/")[0]),
    }


def _dependencies(distribution: str, extra: str) -> dict[str, str]:
    """The installed versions of what a distribution requires, for itself and in the extra that bears the plugin's name.

    Other extras (its development tools, say) judge and train nothing.
    """
    found = {}
    for line in sorted(requires(distribution) or ()):
        marked = re.search(r"extra\s*==\s*['\"]([^'\"]+)", line)
        if marked is None or marked[1] == extra:
            name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
            with suppress(PackageNotFoundError):
                found[name] = version(name)
    return found


def source_hash(package: str) -> str:
    """SHA-256 over a package's Python files, `""` for a module without a file."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    origin = Path(spec.origin)
    files = sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(origin.parent)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def pin_started(path: Path, decisive: Mapping[str, Mapping[str, Any]]) -> None:
    """Keeps in the lock at `path` what resources are, as they say once they run, or compares with what they were before.

    Args:
        decisive: of each that has been started, `Resource.decisive`. What is made of a stage's checkpoint is none of them: that has a
            fingerprint of its own, and may be trained anew.

    Raises:
        RunChanged: one is something else than when the run began.
        RunError: the lock is damaged.
    """
    locked = load_json(path)
    before = locked.get(STARTED) or {}
    for need, facts in decisive.items():
        if need in before:
            _refuse(path, list(_differences(before[need], facts, f"{STARTED}.{need}")))
    now = {need: dict(facts) for need, facts in decisive.items() if facts}
    if set(now) - set(before):
        write_json(path, {**locked, STARTED: {**before, **now}})


def compare(path: Path, locked: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses a run whose lock says something else than what is there now, before anything is started.

    Raises:
        RunChanged: names what differs, with both values.
    """
    _refuse(path, list(_differences({key: locked[key] for key in locked if key != STARTED}, now, "")))


def _refuse(path: Path, differences: Sequence[str]) -> None:
    if differences:
        shown = "; ".join(differences[:4]) + (f"; and {len(differences) - 4} more" if len(differences) > 4 else "")
        raise RunChanged(
            f"{path.parent} was started with something else: {shown}; put it back, or start anew with another --folder"
        )


def _differences(old: Any, new: Any, where: str) -> Iterable[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(*pair, f"{where}[{index}]")
    elif old != new:
        yield f"{where} was {_short(old)} and is {_short(new)}"


def _short(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value):
        return f"{value[:12]}…"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
