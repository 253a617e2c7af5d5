"""The commands `cascade sandbox build`, `doctor` and `gc`, as a typer app.

What people read goes to standard output; progress and errors go to standard error. Each command has `--json`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from cascade_sandbox.errors import SandboxError

Address = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ADDRESS",
        help="The engine, such as unix:///var/run/docker.sock; by default DOCKER_HOST, else the usual sockets.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def build(
    kind: Annotated[
        Literal["python", "cpp", "all"], typer.Argument(help="python, cpp (which has Python too), or all.")
    ] = "all",
    engine: Address = "",
    again: Annotated[bool, typer.Option("--again", help="Build what is there already, too.")] = False,
    dockerfile: Annotated[bool, typer.Option("--dockerfile", help="Print a recipe for docker build instead.")] = False,
    as_json: Json = False,
) -> None:
    """Make the images of the Docker sandbox, without a registry; what is there already is left as it is.

    Example: [bold]cascade sandbox build python[/bold] packs the Python that runs this, in seconds.
    """
    from cascade_sandbox import images

    kinds = list(images.KINDS) if kind == "all" else [kind]
    if dockerfile:
        typer.echo(images.dockerfile(kinds[-1]), nl=False)
        return
    done = []
    with _told():
        for one in kinds:
            begin = time.monotonic()
            made = images.build(_engine(engine), one, _progress, again=again)
            done.append({"kind": one, "image": images.name(one), "built": made, "seconds": time.monotonic() - begin})
    if as_json:
        _print_json({"images": done})
        return
    for entry in done:
        how = f"built in {entry['seconds']:.0f} s" if entry["built"] else "was there already"
        typer.echo(f"{entry['image']} {how}")


def doctor(engine: Address = "", as_json: Json = False) -> None:
    """Say what the Docker sandbox needs here, what is missing, and how to get it; ends with status 1 if it cannot work.

    Example: [bold]cascade sandbox doctor --json[/bold] is for programs.
    """
    from cascade_sandbox.doctor import examine

    findings = examine(_engine(engine))
    healthy = all(finding.ok for finding in findings if finding.needed)
    if as_json:
        _print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            state = "ok" if finding.ok else "missing" if finding.needed else "note"
            typer.echo(f"{state:8}{finding.what:16}{finding.found}")
            if not finding.ok and finding.remedy:
                typer.echo(f"{'':24}-> {finding.remedy}")
    if not healthy:
        raise typer.Exit(1)


def gc(
    engine: Address = "",
    old_images: Annotated[bool, typer.Option("--images", help="Remove the images of other versions, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the containers and folders that a crash left behind: only those of ours whose owner has ended.

    Example: [bold]cascade sandbox gc --dry-run[/bold] shows what that would be.
    """
    from cascade_sandbox import rubbish

    with _told():
        found = rubbish.find(_engine(engine), old_images=old_images)
        if not dry_run:
            rubbish.remove(_engine(engine), found)
    names = {
        "containers": list(found.containers),
        "folders": [str(one) for one in found.folders],
        "images": list(found.images),
    }
    if as_json:
        _print_json({"removed": not dry_run, **names})
        return
    for what, entries in names.items():
        for entry in entries:
            typer.echo(f"{what.removesuffix('s')} {entry}")
    typer.echo(f"{len(found)} {'would be removed' if dry_run else 'removed'}")


def app() -> typer.Typer:
    """The app with all three."""
    made = typer.Typer(
        name="sandbox",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Where programs run that nobody trusts: its images, what it needs, and what it left behind.",
    )
    for command in (build, doctor, gc):
        made.command(command.__name__)(command)
    return made


def _engine(address: str) -> Any:
    from cascade_sandbox.engine import Engine

    return Engine(address)


def _progress(line: str) -> None:
    typer.echo(f"{line} ...", err=True)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False))


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """An error of the sandbox is one line and status 1."""
    try:
        yield
    except SandboxError as error:
        sys.stderr.write(f"cascade: {error}\n")
        raise typer.Exit(1) from None
