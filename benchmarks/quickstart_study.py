"""What the quickstart's stages gain, and what the gain is made of: seeds, controls, greedy decoding, format.

For every seed it runs `examples/quickstart.yaml` as it stands and again as a control, whose rewards are permuted across
each batch, and prints for each RL stage, on the held-out tasks that no stage trained on:

- the paired difference to the stage before and to SFT, with 95 % intervals, for its own and for the other domain;
- the same difference under greedy decoding: what a sampled gain has beyond it is sharpening, not new skill;
- for math, the same differences when an unboxed answer counts too (`answer: stated`): what the boxed gain has beyond them
  is format.

    python benchmarks/quickstart_study.py --seeds 1 2 3 --folder runs/study

Runs that are there already are not done again. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade_core import evaluate, rows
from cascade_core.estimates import Paired, paired
from cascade_core.plugins import registry
from cascade_core.rows import Row, score_json
from cascade_core.sampling import LocalSampler
from cascade_core.scoring import Scorer
from cascade_core.spec import load

SPEC = Path("examples/quickstart.yaml")
CONTROL = ["--set", "stages.if.control=permuted-rewards", "--set", "stages.math.control=permuted-rewards"]
STAGES = {"sft": "01-sft", "if": "02-if", "math": "03-math"}


def run(folder: Path, seed: int, extra: Sequence[str]) -> None:
    """One run of the quickstart; one that is finished is left as it is, whatever has changed since."""
    if (folder / "stages" / STAGES["math"] / "metrics.json").exists():
        return
    command = [
        str(Path(sys.executable).with_name("cascade")),
        "run",
        str(SPEC),
        "--folder",
        str(folder),
        "--set",
        f"seed={seed}",
    ]
    subprocess.run([*command, *extra], check=True, stdout=subprocess.DEVNULL)


def sampled(folder: Path, stage: str, benchmark: str) -> list[Row]:
    """The rows of the run's own evaluation."""
    return list(rows.read(folder / "stages" / STAGES[stage] / "eval" / f"{benchmark}.jsonl"))


def greedy(folder: Path, stage: str, benchmark: str) -> list[Row]:
    """One greedy answer to each task of a benchmark, from the stage's checkpoint."""
    path = folder / "greedy" / STAGES[stage] / f"{benchmark}.jsonl"
    if not path.exists():
        spec = load(SPEC)
        found = registry()
        refs = {name: found.reference(name, options) for name, options in spec.domains.items()}
        domains = {name: found.build(ref) for name, ref in refs.items()}
        (exam,) = (exam for exam in evaluate.exams(domains, spec.evaluation) if exam.name == benchmark)
        exam = dataclasses.replace(exam, samples=1, sampling=exam.sampling.model_copy(update={"temperature": 0.0}))
        sampler = LocalSampler(folder / "stages" / STAGES[stage] / "checkpoint", spec.evaluation.batch_size)
        with Scorer(refs, spec.scoring) as scorer:
            evaluate.take(exam, sampler, scorer, path, seed=0, max_error_rate=0.0)
    return list(rows.read(path))


def stated(drawn: list[Row]) -> list[Row]:
    """Math answers, judged where an unboxed answer counts."""
    spec = load(SPEC)
    ref = registry().reference("math", {**spec.domains["math"], "answer": "stated"})
    with Scorer({"math": ref}, spec.scoring) as scorer:
        return [{**row, "score": score_json(score)} for row, score in zip(drawn, scorer.score(drawn), strict=True)]


def gains(folder: Path) -> dict[str, Any]:
    """Every difference of one run, by stage and what is measured."""
    result: dict[str, Any] = {}
    for stage, before in (("if", "sft"), ("math", "if")):
        for domain in ("if", "math"):
            benchmark = f"{domain}/test"
            pairs = {"before": paired(sampled(folder, before, benchmark), sampled(folder, stage, benchmark))}
            pairs["sft"] = paired(sampled(folder, "sft", benchmark), sampled(folder, stage, benchmark))
            if domain == stage:
                pairs["greedy"] = paired(greedy(folder, before, benchmark), greedy(folder, stage, benchmark))
            if domain == stage == "math":
                for name, rows_of in (("stated", sampled), ("greedy stated", greedy)):
                    both = [stated(rows_of(folder, which, benchmark)) for which in (before, stage)]
                    pairs[name] = paired(*both)
            result[f"{stage} stage on {domain}"] = {name: dataclasses.asdict(pair) for name, pair in pairs.items()}
    return result


def cell(pair: dict[str, float] | None) -> str:
    """A difference as people read it."""
    if pair is None:
        return ""
    told = Paired(**pair)  # type: ignore[arg-type]
    return f"{told.difference:+.3f} [{told.low:+.3f}, {told.high:+.3f}]"


def table(results: dict[str, dict[str, Any]]) -> str:
    """All runs as one Markdown table."""
    lines = [
        "| run | stage and domain | since the stage before | since SFT | greedy | unboxed counts too | both |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        for what, pairs in result.items():
            cells = [cell(pairs.get(key)) for key in ("before", "sft", "greedy", "stated", "greedy stated")]
            lines.append(f"| {name} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, default=Path("runs/study"))
    options = parser.parse_args()
    results = {}
    for seed in options.seeds:
        for name, extra in ((f"seed {seed}", []), (f"seed {seed}, permuted rewards", CONTROL)):
            folder = options.folder / name.replace(", ", "-").replace(" ", "-")
            run(folder, seed, extra)
            results[name] = gains(folder)
    print(table(results))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
