"""The command line: `cascade`. One module per command; nothing heavy is imported before a command needs it.

Errors of the tree in `errors.py` become one `cascade: …` on standard error and a status: 2 for what the caller must
mend (spec, options), 1 for everything else, 130 for Ctrl-C. A traceback is shown with `--debug` only.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `cascade` script; ends the process."""
    from cascade_core.cli.app import app

    app(prog_name="cascade")
