"""The `cascade` command itself: which sub-commands there are, and what becomes of an error.

Sub-commands of plugins (`cascade_commands`) are listed by name and built only when one is called, so that a broken one
stops nobody else. A name that the core uses itself stays the core's.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cascade_core import signals
from cascade_core.cli import (
    audit,
    check,
    compare,
    diff,
    doctor,
    explain,
    new,
    plan,
    plugins,
    rehearse,
    report,
    run,
    schema,
    score,
    serve,
)
from cascade_core.cli import eval as evaluation
from cascade_core.errors import CascadeError, PluginBroken, PluginNotFound, UsageError

PANEL = "Commands of plugins"


class Commands(TyperGroup):
    """The core's commands, then those of plugins; errors end with one line and a status."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The core's in their own order, the plugins' by name."""
        return [*self.commands, *(name for name in _plugin_commands() if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command to be listed; a plugin's is not built for that."""
        if cmd_name in self.commands or cmd_name not in _plugin_commands():
            return super().get_command(ctx, cmd_name)
        owners = " and ".join(f"{one.distribution} {one.version}" for one in _owners(cmd_name))
        return TyperCommand(cmd_name, help=f"From {owners}.", rich_help_panel=PANEL)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A command to be called: here a plugin's is built."""
        name = args[0] if args else ""
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if name in _plugin_commands():
            return name, _build(name), args[1:]
        for broken in _broken():
            _say(f"{broken} is broken, its commands are missing: {broken.error}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Calls the command; see the package's docstring for what becomes of errors."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, signals.Ended) as cause:
            _say("interrupted" + (_GOES_ON if ctx.invoked_subcommand in ("eval", "score") else ""))
            raise typer.Exit(signals.status(cause)) from None
        except (typer.Exit, typer.Abort, BrokenPipeError, EOFError):
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):  # the command line's own: a wrong option, say
                raise
            if ctx.params.get("debug"):
                raise
            _say(_sentence(error))
            raise typer.Exit(2 if isinstance(error, UsageError | PluginNotFound) else 1) from None


_GOES_ON = "; the same command goes on from here"


def _sentence(error: Exception) -> str:
    if isinstance(error, CascadeError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror.lower()}" + (f": {error.filename}" if error.filename else "")
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"internal error: {what}; the same command after `cascade --debug` shows the traceback"


def _say(text: str) -> None:
    sys.stderr.write(f"cascade: {text}\n".encode("utf-8", "backslashreplace").decode())
    sys.stderr.flush()


def _plugin_commands() -> list[str]:
    from cascade_core.plugins import registry

    return registry().names("command")


def _broken() -> list[Any]:
    from cascade_core.plugins import registry

    return [plugin for plugin in registry().plugins if plugin.error]


def _owners(name: str) -> list[Any]:
    from cascade_core.plugins import registry

    return registry().owners("command", name)


def _build(name: str) -> Any:
    """The command that a plugin builds.

    Raises:
        PluginError: two plugins offer it, it cannot be built, or it is no typer app.
    """
    from cascade_core.offers import failure_of
    from cascade_core.plugins import registry

    build, plugin = registry().find("command", name)
    try:
        built = build()
    except CascadeError:
        raise
    except Exception as cause:
        raise PluginBroken(f"command {name!r} of {plugin} cannot be built: {failure_of(cause).error}") from cause
    if not isinstance(built, typer.Typer):
        raise PluginBroken(f"command {name!r} of {plugin} must be a typer.Typer, found {type(built).__name__}")
    command = typer.main.get_command(built)
    command.name = name
    return command


app = typer.Typer(
    name="cascade",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Reinforcement learning of language models in sequential, domain-wise stages.\n\n"
        "A spec says which model, which domains and which stages: look at what it would do with "
        "[bold]cascade plan spec.yaml[/bold], do it with [bold]cascade run spec.yaml[/bold]; "
        "give the same command again to go on after an interruption."
    ),
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"cascade-rl {version('cascade-rl')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="CASCADE_DEBUG", help="Show the traceback of an error.")
    ] = False,
) -> None:
    pass


app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("rehearse")(rehearse.rehearse)
app.command("report")(report.report)
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.command("eval")(evaluation.evaluate)
app.command("compare")(compare.compare)
app.command("diff")(diff.diff)
app.command("explain")(explain.explain)
app.command("audit")(audit.audit)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.command("new")(new.new)
app.command("plugins")(plugins.plugins)
app.command("schema")(schema.schema)
