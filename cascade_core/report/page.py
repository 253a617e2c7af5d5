"""The page: everything that the template shows, put together, and the one HTML file that comes of it.

Jinja2 with autoescape on; styles and script are the package's own files, inlined. A Content-Security-Policy in the page
allows these two by their hash and nothing else, so that a response that slipped through could neither run nor fetch. A page
that follows a run (`version` is given) may ask the server that it came from, and nobody else, whether there is a newer one.
Nothing here reads a clock: the same folder gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cascade_core.report import answers, axis, browser, curves, matrix, plot, responses, text, verdict
from cascade_core.report.matrix import Change, Matrix
from cascade_core.report.record import Record, mapping

TINTS = (0.02, 0.05, 0.1)
"""Where the tint of a change gets stronger, in parts of the benchmark's scale."""
HEAT_STEPS = 10
"""Steps of the heat map's scale above 0."""
MOST_LOCK = 100_000
"""Characters of the lock, and of the spec, that a page shows."""


def render(record: Record, version: str = "") -> str:
    """The report of a run as one HTML file; with a `version`, a page that follows the run through `serve`."""
    rows = answers.read_all(record.stages)
    table = matrix.build(record, rows)
    trainings = [curves.training(stage) for stage in record.stages]
    spent = curves.spent(record)
    sheets = responses.sheets(table, rows)
    scripts = ["report.js", "browser.js", *(["live.js"] if version else [])]
    style, script = _asset("report.css"), "".join(map(_asset, scripts))
    template = _environment().get_template("report.html")
    page = template.render(
        record=record,
        facts=_facts(record, table, trainings, spent),
        matrix=table,
        verdicts=verdict.verdicts(table, record.stages),
        warnings=list(_warnings(record)),
        charts=[(name, _stages_chart(table, name)) for name in table.benchmarks],
        trainings=[one for one in trainings if one.is_open],
        spent=spent,
        kinds=curves.Spent.KINDS,
        sheets=sheets,
        browser=browser.build(sheets, table.stages),
        notes=[*record.notes, *_damage(rows)],
        spec_text=text.clip(record.spec_text, MOST_LOCK),
        lock_text=text.clip(json.dumps(dict(record.lock), indent=1, ensure_ascii=False), MOST_LOCK),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script, is_live=bool(version)),
        version=version,
        paper=axis,
    )
    return text.visible(page)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cascade_core.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": text.plain,
        "signed": text.signed,
        "duration": text.duration,
        "decimals": text.decimals,
        "tint": _tint,
        "heat": _heat,
    }
    return environment


def _asset(name: str) -> str:
    """A file of the templates folder, exactly as the browser will hash it."""
    return (files("cascade_core.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _policy(style: str, script: str, *, is_live: bool) -> str:
    """What a browser may do with the page: use these two, fetch nothing, send nothing; ask its own server where it follows a run."""
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    allowed += "; connect-src 'self'" if is_live else ""
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _tint(change: Change | None, scale: float) -> str:
    """The class of a cell: which way and how far, only where the interval leaves out 0."""
    if change is None or not change.direction:
        return "still"
    strength = 1 + sum(abs(change.difference) >= part * scale for part in TINTS)
    return f"{'rise' if change.direction > 0 else 'fall'}{strength}"


def _heat(value: float, scale: float) -> str:
    """The class of a cell in the heat map of values: from 0 to the benchmark's scale in equal steps."""
    return f"heat{max(0, min(HEAT_STEPS, round(HEAT_STEPS * value / scale)))}"


def _stages_chart(table: Matrix, name: str) -> plot.Chart:
    row = table.row(name)
    values = [(cell.value, cell.stderr) if cell else None for _, cell in row]
    return plot.errorbars(name, [stage.id for stage, _ in row], values, [bool(cell and cell.is_own) for _, cell in row])


def _facts(
    record: Record, table: Matrix, trainings: Sequence[curves.Training], spent: Sequence[curves.Spent]
) -> list[tuple[str, str]]:
    """Name and value of what stands under the title; what is unknown is left out."""
    evaluated = sum((cell.counts for cell in table.cells.values()), matrix.Counts(0, 0, 0, 0))
    trained = sum((one.counts for one in trainings), matrix.Counts(0, 0, 0, 0))
    seconds = sum(one.total for one in spent)
    facts = [
        ("state", "finished" if record.is_finished else "under way or interrupted"),
        ("model", _model(mapping(record.spec.get("model")))),
        ("seed", text.shown(record.spec.get("seed", ""))),
        ("started", text.moment(record.started)),
        ("last event", text.moment(record.last_event)),
        ("working time", text.duration(seconds) if seconds else ""),
        ("rollouts", _told(trained)),
        ("evaluated responses", _told(evaluated)),
    ]
    return [(name, value) for name, value in facts if value]


def _warnings(record: Record) -> Iterator[tuple[str, str, str]]:
    """Stage, domain and line of what domains want a person to look at."""
    for stage in record.stages:
        for event in stage.events:
            if event["kind"] == "warning":
                yield stage.name, text.shown(event.get("domain", "")), text.shown(event.get("text", ""))


def _told(counts: matrix.Counts) -> str:
    if not counts.total:
        return ""
    return f"{counts.total:,}: {counts.scored:,} scored, of those {counts.limit:,} limit; {counts.failed:,} not judged"


def _model(model: Mapping[str, Any]) -> str:
    """A path or hub name, or the architecture that the run made itself."""
    init = mapping(model.get("init"))
    if not init:
        return text.shown(model.get("path") or "")
    return (
        f"made by the run: {init.get('layers')} layers, {init.get('hidden_size')} wide, {init.get('heads')} heads, "
        f"context {init.get('context')} tokens"
    )


def _damage(rows: answers.Answers) -> list[str]:
    """One note for every file of rows that holds damaged lines."""
    return [
        f"{stage}/eval/{name}.jsonl: {file.damaged} damaged line(s) left out"
        for (stage, name), file in rows.items()
        if file.damaged
    ]
