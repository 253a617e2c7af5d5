"""Did every rl stage of a finished run raise its own benchmarks? Prints each gain; status 1 where an interval does not leave out 0.

python tools/gains.py RUN
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(run: Path) -> int:
    """The number of stages that did not raise a benchmark of their own domains; a run without any rl stage is one too."""
    idle, told = 0, 0
    for path in sorted(run.glob("stages/*/metrics.json")):
        stage = json.loads(path.read_text("utf-8"))
        if stage.get("kind") != "rl":
            continue
        for name, found in stage["benchmarks"].items():
            if found["domain"] in stage["domains"]:
                gain = found["change"]
                idle, told = idle + (gain["low"] <= 0), told + 1
                print(f"{stage['stage']}  {name}  {gain['difference']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]")
    if not told:
        print(f"no benchmark of an rl stage is measured in {run}", file=sys.stderr)
    return idle if told else 1


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1])), 1))
