"""An argparse parser with the flags of one of OpenRLHF's programs, as strict as it can be."""

from __future__ import annotations

import argparse

from cascade_core.trainers.openrlhf_parser import Known

KINDS = {"int": int, "float": float, "str": str}


def parser(known: Known) -> argparse.ArgumentParser:
    """It takes no abbreviation, and raises instead of ending the process."""
    made = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for name, flag in known.flags.items():
        if flag.type == "bool":
            made.add_argument(f"--{name}", action="store_true" if flag.stores else "store_false", default=flag.default)
        else:
            choices = list(flag.choices) or None
            made.add_argument(
                f"--{name}", type=KINDS[flag.type], nargs=flag.nargs, choices=choices, default=flag.default
            )
    return made
