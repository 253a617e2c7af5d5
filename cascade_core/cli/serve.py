"""`cascade serve`: verdicts and rewards over HTTP, for trainers that are other processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.limits import (
    CPU_SECONDS,
    MEMORY_MIB,
    WALL_SECONDS,
    Concurrency,
    CpuSeconds,
    MemoryMib,
    WallSeconds,
    Workers,
    limits,
)
from cascade_core.cli.output import Json, Option, Set, print_json
from cascade_core.cli.resources import Resource
from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from cascade_core.domain import DomainRef
    from cascade_core.provision import Provision
    from cascade_core.settings import Scoring


def serve(
    spec: Annotated[
        Path | None, typer.Argument(metavar="[SPEC]", help="A spec, whose domains and scoring are served.")
    ] = None,
    set_: Set = None,
    domain: Annotated[
        list[str] | None, typer.Option("--domain", help="Without a spec: a domain to serve; repeatable.")
    ] = None,
    option: Option = None,
    resource: Resource = None,
    prompts: Annotated[
        list[Path] | None,
        typer.Option("--prompts", help="A prompts.jsonl: its tasks can be named by domain and id; repeatable."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; another than this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 5000,
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="NAME", help="The variable that holds the token.")
    ] = "",
    token_file: Annotated[
        str, typer.Option("--token-file", metavar="PATH", help="The file that holds the token.")
    ] = "",
    workers: Workers = 0,
    concurrency: Concurrency = 0,
    cpu_seconds: CpuSeconds = CPU_SECONDS,
    wall_seconds: WallSeconds = WALL_SECONDS,
    memory_mib: MemoryMib = MEMORY_MIB,
    max_waiting: Annotated[int, typer.Option(min=1, help="Rows that may wait; more are refused with 503.")] = 16_384,
    max_body_mib: Annotated[int, typer.Option(min=1, max=1024, help="The longest body of a request.")] = 16,
    keep: Annotated[int, typer.Option(min=0, help="Answers kept for requests that are sent again.")] = 100_000,
    keep_seconds: Annotated[float, typer.Option(min=0, help="How long they are kept.")] = 3600.0,
    slow_seconds: Annotated[float, typer.Option(min=0.1, help="Rows that hang longer are named.")] = 60.0,
    batch_seconds: Annotated[float, typer.Option(min=0.1, help="How long a batch may be incomplete.")] = 600.0,
    drain_seconds: Annotated[
        float, typer.Option(min=1, max=86_400, help="How long SIGTERM waits for what is in flight.")
    ] = 60.0,
    unjudged: Annotated[
        float | None,
        typer.Option(
            min=-1e100,
            max=1e100,
            help="What /get_reward says for a sample that could not be judged.  \\[default: null]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Serve verdicts and rewards over HTTP until SIGTERM or Ctrl-C, which let requests in flight be answered.

    Example: [bold]cascade serve --domain math --option answer=stated --prompts runs/r/stages/01-math/prompts.jsonl[/bold]
    """
    from cascade_core.serve.needed import check_installed

    check_installed()
    from cascade_core.provision import running
    from cascade_core.scoring import Scorer
    from cascade_core.serve.access import Access
    from cascade_core.serve.app import Limits, Service
    from cascade_core.serve.index import Index
    from cascade_core.serve.listen import address, bound
    from cascade_core.serve.listen import serve as listen

    token = access_token(host, token_env, token_file)
    if spec is None:
        scoring = limits(cpu_seconds, wall_seconds, memory_mib, workers=workers, concurrency=concurrency)
        refs, resources = _named(domain, option, resource, set_)
    else:
        given = (domain, option, resource, workers, concurrency)
        if any(given) or (cpu_seconds, wall_seconds, memory_mib) != (CPU_SECONDS, WALL_SECONDS, MEMORY_MIB):
            raise UsageError("a spec says which domains, resources and limits there are; change it with --set")
        scoring, refs, resources = _of_spec(spec, set_)
    for path in prompts or ():
        if not path.is_file():
            raise UsageError(f"--prompts {path} is no file; it is the prompts.jsonl of a stage")
    index = Index(prompts or ())
    if any(row_domain not in refs for row_domain, _ in index.tasks):
        absent = sorted({name for name, _ in index.tasks} - set(refs))
        raise UsageError(f"--prompts has tasks of {', '.join(absent)}, served are {', '.join(sorted(refs))}")
    bounds = Limits(max_waiting, max_body_mib, keep, keep_seconds, slow_seconds, batch_seconds, unjudged)
    channel = bound(host, port)
    with channel, running(resources.values()) as started, Scorer(refs, scoring, started.addresses) as scorer:
        service = Service(scorer, index, bounds, Access(token), _batchwise(refs))
        where = address(channel)

        def ready() -> None:
            if json:
                print_json({"address": where, "domains": sorted(refs)})
            else:
                typer.echo(f"serving {', '.join(sorted(refs))} at {where} (Ctrl-C or SIGTERM ends it)")

        listen(service, channel, ready, drain_seconds)


def access_token(host: str, env: str, file: str) -> str:
    """The token that requests must know; `""` on the loopback address without one."""
    from cascade_core.secret import Secret
    from cascade_core.serve.access import LOOPBACK

    if env or file:
        return Secret(env or None, file or None).reveal()
    if host not in LOOPBACK:
        raise UsageError(f"--host {host} can be reached from elsewhere: give a token with --token-env or --token-file")
    return ""


def _named(
    names: list[str] | None, option: list[str] | None, resource: list[str] | None, set_: list[str] | None
) -> tuple[Mapping[str, DomainRef], Mapping[str, Provision]]:
    from cascade_core.cli.resources import provided
    from cascade_core.plugins import registry
    from cascade_core.spec import read_options

    if set_:
        raise UsageError("--set replaces a value of a spec, and no spec is given")
    if not names:
        raise UsageError("say what is served: a spec or --domain")
    if option and len(names) > 1:
        raise UsageError("--option is for one domain; write a spec to serve several with options")
    options = read_options(option or ())
    refs = {name: registry().reference(name, options) for name in names}
    return refs, provided([registry().build(ref) for ref in refs.values()], resource)


def _of_spec(path: Path, set_: list[str] | None) -> tuple[Scoring, Mapping[str, DomainRef], Mapping[str, Provision]]:
    from cascade_core.plugins import registry
    from cascade_core.provision import chosen
    from cascade_core.spec import check, load

    loaded = load(path, set_ or ())
    domains = check(loaded, path, set_ or ())
    refs = {name: registry().reference(name, options) for name, options in loaded.domains.items()}
    return loaded.scoring, refs, chosen(domains.values(), loaded.resources)


def _batchwise(refs: Mapping[str, DomainRef]) -> frozenset[str]:
    from cascade_core.plugins import registry

    return frozenset(name for name, ref in refs.items() if registry().domain(ref.name).needs_batch)
