"""`cascade explain`: why a row has its verdict."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cascade_core.cli.limits import CPU_SECONDS, MEMORY_MIB, WALL_SECONDS, CpuSeconds, MemoryMib, WallSeconds, limits
from cascade_core.cli.output import Json, Option, brief, console, foreign, print_json, table
from cascade_core.cli.resources import Resource, running
from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from cascade_core.explanation import Explanation

_SHOWN = 300  # characters of a response in the table


def explain(
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="JSON lines with domain, id, prompt, answer, response.")],
    id: Annotated[str | None, typer.Option("--id", help="Only rows of this task.")] = None,
    sample: Annotated[int | None, typer.Option("--sample", min=0, help="Only this sample of a task.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many rows at most.")] = 5,
    domain: Annotated[str, typer.Option("--domain", help="The domain of rows that name none, and of --option.")] = "",
    option: Option = None,
    resource: Resource = None,
    cpu_seconds: CpuSeconds = CPU_SECONDS,
    wall_seconds: WallSeconds = WALL_SECONDS,
    memory_mib: MemoryMib = MEMORY_MIB,
    json: Json = False,
) -> None:
    """Say why rows have their verdicts: the rule, what was read, the time it took, the plugin, the stored verdict and the one of now.

    Rows are judged anew; nothing is written. Rows of a run are judged with the options of its spec; for others, give those that
    they were scored with.

    Example: [bold]cascade explain rows.scored.jsonl --id aime-3 --sample 2[/bold]
    """
    from cascade_core import explanation
    from cascade_core.plugins import registry
    from cascade_core.score_file import references, references_of_run
    from cascade_core.scoring import Scorer
    from cascade_core.spec import read_options

    if not rows.is_file():
        raise UsageError(f"{rows} is no file: rows to explain are JSON lines")
    known = references(domain, read_options(option or ())) | ({} if domain else references_of_run(rows))
    settings = limits(cpu_seconds, wall_seconds, memory_mib)
    chosen, count = explanation.select(rows, id=id, sample=sample, limit=limit)
    named = {str(row.get("domain", domain)) for row in chosen}
    judges = [registry().domain(ref.name) for name, ref in known.items() if name in named]
    with running(judges, resource) as started, Scorer(known, settings, started.addresses) as scorer:
        found = explanation.explain(rows, chosen, scorer, domain=domain)
    if json:
        print_json({"rows": count, "explained": [one.json() for one in found]})
        return
    screen = console()
    for one in found:
        _print(one)
    if count > len(found):
        screen.print(f"and {count - len(found)} more rows; choose with --id and --sample, or raise --limit")


def _print(one: Explanation) -> None:
    title = one.id + ("" if one.sample is None else f" #{one.sample}")
    shown = table(foreign(title).plain, "", "")
    shown.show_header = False  # a name and what it is: nothing stands above them
    for name, value in _lines(one):
        shown.add_row(foreign(name), foreign(value))
    console().print(shown)


def _lines(one: Explanation) -> Iterator[tuple[str, str]]:
    cut = len(one.response) > _SHOWN
    yield "response", one.response[:_SHOWN] + ("…" if cut else "")
    yield "verdict now", _verdict(one.now)
    if one.stored is not None:
        yield "verdict stored", _verdict(one.stored) + ("  (changed)" if one.changed else "  (the same)")
    if one.domain:
        yield "judged by", _domain(one.domain)
    if one.stored_by and one.stored_by != one.domain:
        yield "stored by", _domain(one.stored_by)
    if one.wall_seconds is not None and one.cpu_seconds is not None:
        yield "time", f"{1000 * one.wall_seconds:.2f} ms, CPU {1000 * one.cpu_seconds:.2f} ms"
    for name, value in (one.reasons or {}).items():
        yield from _reason(name, value)
    if one.trouble:
        yield "not explained", one.trouble
    elif one.reasons is None:
        yield "not explained", "the domain gives no reasons beyond its note"


def _reason(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """One line, or one per entry of a list of objects."""
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        for number, entry in enumerate(value, 1):
            yield f"{name} {number}", "; ".join(f"{key}: {_text(inner)}" for key, inner in entry.items())
    else:
        yield name, _text(value)


def _text(value: Any) -> str:
    if value in (None, [], {}, ""):
        return "none"
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return "  |  ".join(value)
    return value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)


def _verdict(score: Mapping[str, Any]) -> str:
    if score.get("error"):
        return f"could not be judged: {score['error']}"
    parts = [f"{score.get('value')}"]
    if score.get("reward") is not None:
        parts.append(f"reward {score['reward']}")
    parts += [str(score["note"])] if score.get("note") else []
    parts += [brief(score["metrics"])] if score.get("metrics") else []
    return "; ".join(parts)


def _domain(domain: Mapping[str, Any]) -> str:
    options = brief(domain["options"]) if domain["options"] else "default options"
    return f"{domain['name']} of {domain['distribution']} {domain['version']}, {options}"
