"""RLHF before instruction following, or after it: the stages of `examples/cascade.yaml` in both orders, seed by seed.

    python tools/orders.py FOLDER [--seeds 1,2,3] [--page docs/experiments]

Every run begins anew (SFT, the reward model, SFT, then the two RL stages); a run that was ended goes on. What was measured after each stage
goes to `orders.json` and `orders.svg` in `--page`; `docs/experiments/orders.md` says what they show.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ORDERS = {"RLHF, IF": ("rlhf", "if"), "IF, RLHF": ("if", "rlhf")}
BENCHMARKS = ("rlhf/test", "if/test")
COLORS = {"rlhf/test": "#3b6fd4", "if/test": "#d4662b"}
SPEC = Path(__file__).resolve().parent.parent / "examples" / "cascade.yaml"


def spec(order: tuple[str, str]) -> dict[str, Any]:
    """The cascade's spec with these two RL stages and the domains that they need."""
    whole: dict[str, Any] = YAML(typ="safe").load(SPEC)
    stages = {stage["name"]: stage for stage in whole["stages"]}
    begin = [stages[name] for name in ("sft", "rm", "sft-2")]
    for stage in begin:
        if stage["kind"] == "sft":
            stage["domains"] = {name: share for name, share in stage["domains"].items() if name in ("rlhf", "if")}
    whole["name"] = "-".join(("orders", *order))
    whole["stages"] = [*begin, *(stages[name] for name in order)]
    whole["domains"] = {name: whole["domains"][name] for name in ("rlhf", "if")}
    whole["resources"] = {"reward_model": whole["resources"]["reward_model"]}
    return whole


def measured(folder: Path) -> dict[str, dict[str, Any]]:
    """After each stage that was measured on both: value, standard error, and the change since the stage before."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("stages/*/metrics.json")):
        stage = json.loads(path.read_text("utf-8"))
        if set(BENCHMARKS) <= set(stage["benchmarks"]):
            found[stage["name"]] = {
                name: {
                    **stage["benchmarks"][name]["estimates"][stage["benchmarks"][name]["primary"]],
                    "change": stage["benchmarks"][name].get("change"),
                }
                for name in BENCHMARKS
            }
    return found


def run(folder: Path, order: tuple[str, str], seed: int) -> dict[str, dict[str, Any]]:
    """One run, begun or gone on with; what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "order.yaml").open("w", encoding="utf-8") as out:
        YAML().dump(spec(order), out)
    command = [str(Path(sys.executable).with_name("cascade")), "run", str(folder / "order.yaml")]
    subprocess.run([*command, "--folder", str(folder / "run"), "--set", f"seed={seed}"], check=True)
    return measured(folder / "run")


def plot(runs: list[dict[str, Any]]) -> str:
    """Both benchmarks over the three moments, a panel for each order, a line for each seed."""
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 280" font-family="sans-serif" font-size="12">']
    parts.append('<rect width="640" height="280" fill="white"/>')
    for panel, (title, order) in enumerate(ORDERS.items()):
        left = 50 + 310 * panel
        parts.append(f'<text x="{left}" y="20" font-weight="bold">{title}</text>')
        for tick in range(0, 11, 2):
            y = 240 - 20 * tick
            parts.append(f'<line x1="{left}" x2="{left + 230}" y1="{y}" y2="{y}" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{tick / 10:.1f}</text>')
        moments = ("sft-2", *order)
        for at, name in enumerate(moments):
            parts.append(f'<text x="{left + 15 + 100 * at}" y="260" text-anchor="middle">{name}</text>')
        for one in (one for one in runs if one["order"] == title):
            for name in BENCHMARKS:
                points = " ".join(
                    f"{left + 15 + 100 * at},{240 - 200 * one['after'][moment][name]['value']:.1f}"
                    for at, moment in enumerate(moments)
                )
                parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
    for at, (name, color) in enumerate(COLORS.items()):
        parts.append(f'<text x="{250 + 90 * at}" y="20" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--page", type=Path, default=Path("docs/experiments"))
    asked = parser.parse_args()
    runs = []
    for seed in map(int, asked.seeds.split(",")):
        for title, order in ORDERS.items():
            folder = asked.folder / f"{'-'.join(order)}-{seed}"
            runs.append({"order": title, "seed": seed, "after": run(folder, order, seed)})
    asked.page.mkdir(parents=True, exist_ok=True)
    (asked.page / "orders.json").write_text(json.dumps(runs, indent=1) + "\n", "utf-8")
    (asked.page / "orders.svg").write_text(plot(runs), "utf-8")
    for one in runs:
        for stage, found in one["after"].items():
            told = ", ".join(f"{name} {found[name]['value']:.3f} ± {found[name]['stderr']:.3f}" for name in BENCHMARKS)
            print(f"{one['order']}, seed {one['seed']}, after {stage}: {told}")


if __name__ == "__main__":
    main()
