"""What this machine has of what runs need, and how to get the rest: `examine`, a list of findings with their remedies.

Packages are looked up by their metadata and never imported; plugins are loaded, as every command does; the Docker sandbox is
asked by its own doctor. With a spec, what that spec needs is told apart from what merely is not there. Nothing is changed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cascade_core import provision, rehearsal, versions
from cascade_core.errors import CascadeError
from cascade_core.plugins import KINDS, Registry, registry
from cascade_core.settings import Spec
from cascade_core.vllm_sampling import gpus as sampling

State = Literal["ok", "missing", "wrong", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `needed`: the spec that was asked about cannot run without it."""

    area: str
    what: str
    state: State
    found: str
    remedy: str = ""
    needed: bool = False

    @property
    def stops(self) -> bool:
        """Whether the spec that was asked about cannot run as things are."""
        return self.needed and self.state in ("missing", "wrong")


def examine(
    spec: Spec | None = None,
    path: Path | None = None,
    settings: Iterable[str] = (),
    found: Registry | None = None,
    python: str = "",
) -> list[Finding]:
    """Everything, in the order in which it should be mended.

    Args:
        spec: what is wanted; without one nothing is `needed`.
        path: its file, so that findings name its lines; `settings` as after `--set`.
        found: the plugins to look at; the default is everything installed.
        python: the interpreter of the environment in which to look for OpenRLHF; the default is the spec's `engine.python`, else this one's.
    """
    found = found or registry()
    if spec and spec.engine.python and not python:
        python = str(Path(spec.engine.python).expanduser())
    own, areas = _spec(spec, path, settings, found) if spec else ([], set[str]())
    here = [*machine(*(_asked(spec) if spec else ())), *(_sampled(spec) if spec else ())]
    findings = [*here, *plugins(found), *trl(), *openrlhf(python), *sandbox()]
    return [*own, *(replace(one, needed=one.area in areas and one.state != "note") for one in findings)]


def _spec(spec: Spec, path: Path | None, settings: Iterable[str], found: Registry) -> tuple[list[Finding], set[str]]:
    """What the plugins say of a spec, and the areas that it needs."""
    from cascade_core.spec import check

    areas = {stage.trainer or spec.trainer for stage in spec.stages}
    try:
        domains = check(spec, path, settings, found)
        chosen = provision.chosen(domains.values(), spec.resources, found)
    except CascadeError as cause:
        wrong = [Finding("spec", spec.name, "wrong", line, needed=True) for line in str(cause).splitlines()]
        return wrong, areas
    areas |= {"sandbox" for one in chosen.values() if (one.need, one.name) == ("sandbox", "docker")}
    told = f"everything that it names is installed: {', '.join([*domains, *sorted(areas)])}"
    return [Finding("spec", spec.name, "ok", told, needed=True)], areas


def _asked(spec: Spec) -> tuple[int, str, str]:
    """GPUs that a spec asks this machine for (0 where they are another's, or none), what asks, and what to do without them."""
    engine = spec.engine
    drives = any((stage.trainer or spec.trainer) == "openrlhf" for stage in spec.stages)
    if engine.ray is not None:
        return sampling.asked(spec), "evaluation samples with (evaluation.sampler vllm)", sampling.REMEDY
    remedy = "lower engine.gpus, give engine.ray a cluster that has them, or set engine.cpu; `cascade rehearse` tries the spec here as it is"
    return (engine.gpus if drives and not engine.cpu else 0), "every stage of openrlhf asks for (engine.gpus)", remedy


def _sampled(spec: Spec) -> Iterator[Finding]:
    """Where benchmarks are sampled, beside a cluster that trains."""
    if told := sampling.place(spec):
        yield Finding("machine", "evaluation", "ok", told)


def machine(asked: int = 0, by: str = "", remedy: str = "") -> Iterator[Finding]:
    """Python, cores and GPUs, of which a spec asks for so many by that setting."""
    yield Finding("machine", "python", "ok", f"{platform.python_version()} at {sys.executable}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("machine", "cores", "ok", str(cores))
    here = list(gpus())
    yield from here
    count = sum(one.state == "ok" for one in here)
    if count < asked:
        yield Finding("machine", "GPUs", "note", f"{count} of the {asked} that {by}", remedy)


def gpus() -> Iterator[Finding]:
    """What `nvidia-smi` says, a line per GPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        remedy = (
            "stages of trl train on the CPU, small models only; one of openrlhf needs the GPUs of another machine (engine.ray), or"
            " engine.cpu: true, and `cascade rehearse` tries a spec for GPUs without any"
        )
        yield Finding("machine", "GPU", "note", "no nvidia-smi, so no NVIDIA GPU", remedy)
        return
    asked = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as cause:
        yield Finding("machine", "GPU", "wrong", f"nvidia-smi fails: {cause}", "look at the driver")
        return
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        told = (done.stderr or done.stdout).strip().splitlines() or ["it names no GPU"]
        yield Finding("machine", "GPU", "wrong", f"nvidia-smi fails: {told[0]}", "look at the driver")
        return
    yield from (Finding("machine", "GPU", "ok", line) for line in lines)


def plugins(found: Registry) -> Iterator[Finding]:
    """Plugins that are broken, and names that two of them offer."""
    broken = [one for one in found.plugins if one.error]
    for one in broken:
        yield Finding(
            "plugins", one.entry or one.distribution, "wrong", f"{one}: {one.error}", "cascade plugins --trace"
        )
    for kind in KINDS:
        for name in found.names(kind):
            owners = found.owners(kind, name)
            if len(owners) > 1:
                told = " and ".join(map(str, owners))
                yield Finding(
                    "plugins", f"{kind} {name}", "wrong", f"offered by {told}", "uninstall or rename one of them"
                )
    yield Finding("plugins", "loaded", "ok", f"{len(found.plugins) - len(broken)} of {len(found.plugins)}")


def trl() -> Iterator[Finding]:
    """What the trainer `trl` needs."""
    for one in versions.extra("trl"):
        wanted = f"wants {one.wanted}" if one.wanted else "wants any version"
        yield _version("trl", one, wanted, "pip install 'cascade-rl[trl]'")


def openrlhf(python: str = "") -> Iterator[Finding]:
    """What goes with OpenRLHF, in the environment of `python`. Where it is not installed, other versions of its packages are no fault."""
    try:
        where = versions.folders(python) if python else ()
    except OSError as cause:
        remedy = "name the interpreter of an environment that has OpenRLHF (engine.python, --python); `cascade rehearse --install` makes one for a CPU"
        why = f"there is no {python}" if isinstance(cause, FileNotFoundError) else str(cause)
        yield Finding("openrlhf", "environment", "wrong", why, remedy)
        return
    newest, pip = next(iter(versions.TOGETHER)), f"{python} -m pip" if python else "pip"
    found = versions.installed("openrlhf", where)
    remedy = f"{pip} install 'openrlhf[vllm]=={newest}' (Linux, CPython 3.11, a CUDA compiler for flash-attn)"
    if not found and not python:
        yield _unnamed(newest)
    if not found:
        yield Finding("openrlhf", "openrlhf", "missing", f"not installed; {newest} is known", remedy)
    else:
        known = ", ".join(versions.TOGETHER)
        state: State = "ok" if found in versions.TOGETHER else "wrong"
        yield Finding("openrlhf", "openrlhf", state, f"{found} (known: {known})", "" if state == "ok" else remedy)
    for one in versions.openrlhf(where):
        wanted = f"openrlhf {found or newest} wants {one.wanted.removeprefix('==')}"
        if one.name == "flash-attn" and not one.found and versions.is_for_cpus(where):
            yield Finding("openrlhf", one.name, "note", f"not installed; {wanted}, this vLLM for CPUs does without")
            continue
        told = _version("openrlhf", one, wanted, f"{pip} install {one.name}{one.wanted}")
        yield replace(told, state="note") if not found and told.state == "wrong" else told


def _unnamed(newest: str) -> Finding:
    """That no environment was named in which OpenRLHF is, and how to get one."""
    told = "not given, so that OpenRLHF is looked for beside cascade, where it is not"
    own = rehearsal.place() / "bin" / "python"
    if rehearsal.is_installed(rehearsal.place()):
        cpu = f"for a CPU it is there already: {own}"
    else:
        cpu = "for a CPU `cascade rehearse --install` makes one and prints it"
    gpu = f"for GPUs: python3.11 -m venv openrlhf && openrlhf/bin/pip install 'openrlhf[vllm]=={newest}'"
    remedy = f"name the interpreter of its environment by engine.python (here: --python); {cpu}; {gpu}"
    return Finding("openrlhf", "engine.python", "note", told, remedy)


def _version(area: str, one: versions.Version, wanted: str, remedy: str) -> Finding:
    if one.fits:
        return Finding(area, one.name, "ok", one.found)
    state: State = "wrong" if one.found else "missing"
    return Finding(area, one.name, state, f"{one.found or 'not installed'}; {wanted}", remedy)


def sandbox() -> Iterator[Finding]:
    """What the Docker sandbox says of itself."""
    from cascade_sandbox.doctor import examine as ask
    from cascade_sandbox.engine import Engine

    for one in ask(Engine("")):
        state: State = "ok" if one.ok else "missing" if one.needed else "note"
        yield Finding("sandbox", one.what, state, one.found, "" if one.ok else one.remedy)
