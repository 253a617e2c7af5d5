"""Judges a file of sampled rows, for `cascade score`: streams, can be interrupted, and says what it found.

Every row is written to the output as it was read, with its `score`, in the same order. The output is only ever appended to: what
an interrupted command has judged stays, a line that was cut short is dropped, and the same command goes on behind it. For
that it must be the same work: the rows are compared, and the domains (options, version, source) and limits stand
in a small file beside the output. Samples that could not be judged stay so; to try them again, remove the output.

Which domains there are and how many processes judge is the `Scorer`'s; the command line is in `cli`.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from cascade_core.domain import DomainRef, Score
from cascade_core.errors import RowError, RunChanged, RunLocked, UsageError
from cascade_core.provision import Provision
from cascade_core.rows import Row, dump, json_score, read, score_json, write_json
from cascade_core.scoring import Scorer
from cascade_core.tally import Summary, Tally

Progress = Callable[[int], None]


def references(domain: str = "", options: Mapping[str, Any] | None = None) -> dict[str, DomainRef]:
    """All installed domains under their own names, `domain` with `options`: what a `Scorer` of a file needs.

    A name that two plugins offer is left out, so that only rows that need it fail, unless it is `domain` itself.

    Raises:
        PluginError: `domain` is not installed, or offered twice.
        SpecError: an option that it does not have.
        UsageError: options without a domain.
    """
    from cascade_core.errors import PluginConflict
    from cascade_core.plugins import registry

    if options and not domain:
        raise UsageError("options are for a domain: name it with --domain")
    found = {}
    for name in registry().names("domain"):
        try:
            found[name] = registry().reference(name)
        except PluginConflict:
            continue
    if domain:
        found[domain] = registry().reference(domain, options)
        registry().build(found[domain])
    return found


def references_of_run(rows: Path) -> dict[str, DomainRef]:
    """The domains of the run whose folder the file lies in, with the options of its spec; none where it lies in no run."""
    from cascade_core.plugins import registry
    from cascade_core.spec import load

    for folder in rows.resolve().parents:
        if (folder / "spec.yaml").is_file() and (folder / "lock.json").is_file():
            spec = load(folder / "spec.yaml")
            return {name: registry().reference(name, options) for name, options in spec.domains.items()}
    return {}


def domains_in(path: Path, domain: str = "") -> set[str]:
    """The domains that the rows name (`domain` where one names none), as far as the lines are rows."""
    found: set[str] = set()
    with suppress(RowError):  # told in its turn, when what stands before it has been judged
        found.update(str(row.get("domain", domain)) for row in read(path))
    return found


def output_of(path: Path) -> Path:
    """Where the scored rows go unless said otherwise: `rows.jsonl` to `rows.scored.jsonl`."""
    return path.with_name(f"{path.stem}.scored{path.suffix or '.jsonl'}")


def score_file(
    path: Path,
    out: Path,
    scorer: Scorer,
    *,
    domain: str = "",
    progress: Progress | None = None,
    resources: Mapping[str, Provision] | None = None,
) -> Summary:
    """Judges the rows of `path` into `out`, or goes on with it; a finished `out` is only summed up.

    Args:
        domain: for rows that name none.
        resources: what provides the needs of the domains, to be pinned.
        progress: is told how many more rows are done, those of an earlier command too.

    Raises:
        RowError: a line that is no row; what stands before it has been judged and written.
        RunChanged: `out` was written from other rows, domains or limits, or not by this.
        RunLocked: another process is writing `out`.
        UsageError: `out` is `path`.
        OSError: the disk that `out` is on, or that of temporary data.
    """
    if out.exists() and out.samefile(path):
        raise UsageError(f"{out} would be overwritten with itself; name another output")
    if out.exists() and not _sidecar(out).exists() and out.stat().st_size:
        raise RunChanged(f"{out} exists and was not written by cascade score; remove it or name another output")
    out.parent.mkdir(parents=True, exist_ok=True)
    tally, report = Tally(), progress or (lambda rows: None)
    with _named(out), out.open("a+b") as file, _alone(file, out):
        source = _rows(path, domain)
        kept = 0
        for row, score in _kept(file, out, source):
            tally.add(row, score)
            report(1)
            kept += 1
        _check_sidecar(out, _pins(scorer, resources or {}), tally.domains() if kept else set())
        for row, score in scorer.stream(source):
            file.write((dump({**row, "score": score_json(score)}) + "\n").encode("ascii"))
            file.flush()
            tally.add(row, score)
            report(1)
    return tally.summary()


def _rows(path: Path, domain: str) -> Iterator[Row]:
    """The rows to judge; `domain` where one names none."""
    number = 0
    try:
        for row in read(path):
            number += 1
            dump(row)
            yield row if "domain" in row or not domain else {"domain": domain, **row}
    except ValueError as cause:
        if isinstance(cause, RowError):
            raise
        raise RowError(f"{path}: row {number} holds NaN or infinity, which JSON has not") from cause


def _kept(file: BinaryIO, out: Path, source: Iterator[Row]) -> Iterator[tuple[Row, Score]]:
    """The rows that `out` already has, taken off `source`; what follows the last whole line is cut off."""
    end = number = 0
    file.seek(0)
    while (line := file.readline()).endswith(b"\n"):
        number += 1
        try:
            old = json.loads(line)
            score = json_score(old.pop("score"))
        except (ValueError, KeyError, TypeError, AttributeError) as cause:
            raise RunChanged(f"{out}:{number} is no scored row; remove {out} or name another output") from cause
        row = next(source, None)
        if row is None or {key: value for key, value in row.items() if key != "score"} != old:
            found = "there is no such row any more" if row is None else "the row has changed"
            raise RunChanged(f"{out}:{number} was scored and {found}; remove {out} or name another output")
        end = file.tell()
        yield row, score
    file.truncate(end)
    file.seek(end)


def _sidecar(out: Path) -> Path:
    return out.with_name(out.name + ".lock.json")


def _check_sidecar(out: Path, now: Mapping[str, Any], used: Iterable[str]) -> None:
    """Compares what `out` was begun with, for the domains whose rows it has; then pins what it goes on with."""
    path = _sidecar(out)
    for name in sorted(used):
        try:
            then = json.loads(path.read_text(encoding="utf-8"))
            before = {**then["limits"], **then["domains"].get(name, {})}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as cause:
            raise RunChanged(f"{path} is missing or damaged; remove {out} to begin again") from cause
        for key, value in {**now["limits"], **now["domains"].get(name, {})}.items():
            if before.get(key) != value:
                what = f"{key} {before.get(key)!r}, now {value!r}" if key != "source" else "another state of its source"
                raise RunChanged(
                    f"{out} was begun with domain {name!r} at {what}; use the same again, or remove the output"
                )
    write_json(path, now)


def _pins(scorer: Scorer, resources: Mapping[str, Provision]) -> dict[str, Any]:
    from cascade_core.lock import source_hash
    from cascade_core.plugins import registry
    from cascade_core.provision import judge_of

    domains = {}
    for name, ref in scorer.domains.items():
        judge, module = judge_of(ref), registry().domain(ref.name).__module__
        domains[name] = {**asdict(ref), "source": source_hash(module.partition(".")[0])}
        del domains[name]["lane"]  # where it is judged, not how
        if judge.needs:
            needs = {need: dict(resources[need].pinned) for need in judge.needs if need in resources}
            domains[name]["resources"] = needs
    limits = {"cpu_seconds": scorer.settings.cpu_seconds, "memory_mib": scorer.settings.memory_mib}
    return {"domains": json.loads(json.dumps(domains)), "limits": limits}


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """A full disk is told with the file that it stopped; what was written of it stays."""
    try:
        yield
    except OSError as cause:
        if cause.filename is not None or cause.errno is None:
            raise
        raise OSError(cause.errno, cause.strerror, str(out)) from cause


@contextmanager
def _alone(file: BinaryIO, out: Path) -> Iterator[None]:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as cause:
        raise RunLocked(f"another process is writing {out}") from cause
    yield
