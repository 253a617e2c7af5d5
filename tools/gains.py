"""Did every rl stage of a finished run raise its own benchmarks? Prints each gain; status 1 where an interval does not leave out 0.

python tools/gains.py RUN
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(run: Path) -> int:
    """The number of rl stages that did not raise every benchmark of their own domains, or have none; a run without any rl stage counts as one."""
    idle, stages = 0, 0
    for path in sorted(run.glob("stages/*/metrics.json")):
        stage = json.loads(path.read_text("utf-8"))
        if stage.get("kind") != "rl":
            continue
        own = {name: found for name, found in stage["benchmarks"].items() if found["domain"] in stage["domains"]}
        for name, found in own.items():
            gain = found["change"]
            print(f"{stage['stage']}  {name}  {gain['difference']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]")
        if not own:
            print(f"no benchmark of the domains of {stage['stage']} is measured in {path}", file=sys.stderr)
        stages += 1
        idle += not own or any(found["change"]["low"] <= 0 for found in own.values())
    if not stages:
        print(f"no rl stage in {run}", file=sys.stderr)
    return idle if stages else 1


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1])), 1))
