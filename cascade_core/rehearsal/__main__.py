"""`python -m cascade_core.rehearsal FOLDER [--openrlhf VERSION]`: makes the environment in which OpenRLHF runs on a CPU, and prints its Python."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cascade_core.errors import TrainerError
from cascade_core.rehearsal import ENGINES, NEWEST, install


def main(arguments: list[str]) -> int:
    """The status of the process: 1 where pip failed; a command line that is none ends it with 2."""
    parser = argparse.ArgumentParser(prog="python -m cascade_core.rehearsal", description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path, help="where the environment is made")
    parser.add_argument("--openrlhf", choices=list(ENGINES), default=NEWEST, help="its version")
    given = parser.parse_args(arguments)
    try:
        print(install(given.folder, given.openrlhf))
    except TrainerError as cause:
        print(f"cascade: {cause}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
