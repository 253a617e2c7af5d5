"""`python -m cascade_core.rehearsal FOLDER`: makes the environment in which OpenRLHF runs on a CPU, and prints its Python."""

from __future__ import annotations

import sys
from pathlib import Path

from cascade_core.errors import TrainerError
from cascade_core.rehearsal import install


def main(arguments: list[str]) -> int:
    """The status of the process: 2 for another number of arguments, 1 where pip failed."""
    if len(arguments) != 1:
        print("usage: python -m cascade_core.rehearsal FOLDER", file=sys.stderr)
        return 2
    try:
        print(install(Path(arguments[0])))
    except TrainerError as cause:
        print(f"cascade: {cause}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
