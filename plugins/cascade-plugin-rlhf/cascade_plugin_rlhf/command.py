"""The command `cascade rm serve`: scores of reward models over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from cascade_core.cli.output import print_json
from cascade_plugin_rlhf.serving.encoding import TEMPLATES


def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="PATH|NAME=PATH",
            help="A folder or hub name of a reward model; repeatable, each is then asked under /v1/NAME.",
        ),
    ],
    device: Annotated[str, typer.Option(help="auto is the first GPU, or the processor.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    value_head_prefix: Annotated[
        str, typer.Option(help="The name of an OpenRLHF value head, where config.json does not say it.")
    ] = "",
    template: Annotated[str, typer.Option(help=f"How prompt and response are put: {', '.join(TEMPLATES)}.")] = "auto",
    max_tokens: Annotated[int, typer.Option(min=0, help="The longest sequence; 0 is what the model allows.")] = 0,
    max_tokens_per_batch: Annotated[
        int, typer.Option(min=0, help="Padding included; 0 is 16384 on a GPU, 2048 on a processor.")
    ] = 0,
    threads: Annotated[int, typer.Option(min=0, help="Of torch on a processor; 0 leaves it to torch.")] = 0,
    host: Annotated[
        str, typer.Option(help="The address to listen at; another than this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 5001,
    token_env: Annotated[
        str, typer.Option("--token-env", metavar="NAME", help="The variable that holds the token.")
    ] = "",
    token_file: Annotated[
        str, typer.Option("--token-file", metavar="PATH", help="The file that holds the token.")
    ] = "",
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Items that may wait for a model; more are refused with 503.")
    ] = 16_384,
    max_body_mib: Annotated[int, typer.Option(min=1, max=1024, help="The longest body of a request.")] = 16,
    drain_seconds: Annotated[float, typer.Option(min=1, help="How long SIGTERM waits for what is in flight.")] = 60.0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the address and the models' names as one JSON object.")
    ] = False,
) -> None:
    """Serve the scores of reward models over HTTP until SIGTERM or Ctrl-C, which let requests in flight be answered.

    Example: [bold]cascade rm serve --model runs/r/stages/02-rm/checkpoint --port 5001[/bold]
    """
    from cascade_core.cli.serve import access_token
    from cascade_core.errors import UsageError
    from cascade_core.serve.needed import check_installed

    check_installed()
    from cascade_plugin_rlhf.serving.model import Source
    from cascade_plugin_rlhf.serving.process import Bounds, named, run

    for name, given, allowed in (("template", template, TEMPLATES), ("dtype", dtype, _DTYPES)):
        if given not in allowed:
            raise UsageError(f"--{name} {given!r} is not known (allowed: {', '.join(allowed)})")
    sources = {
        name: Source(path, device, dtype, value_head_prefix, max_tokens, max_tokens_per_batch, template)
        for name, path in named(model).items()
    }

    def ready(where: str, names: Sequence[str]) -> None:
        if json:
            print_json({"address": where, "models": list(names)})
        else:
            typer.echo(f"serving {', '.join(names)} at {where} (Ctrl-C or SIGTERM ends it)")

    token = access_token(host, token_env, token_file)
    run(sources, host, port, token, Bounds(max_waiting, max_body_mib, drain_seconds, threads), ready)


_DTYPES = ("auto", "float32", "bfloat16", "float16")


def app() -> typer.Typer:
    """The app, with its one command under its name."""
    made = typer.Typer(
        name="rm",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Reward models.",
    )
    made.callback()(lambda: None)
    made.command("serve")(serve)
    return made
