"""`cascade rehearse` with the real OpenRLHF: a right spec for 8 GPUs tried whole, and mistakes that only the engine finds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rehearsed import TEMPLATE, model

SPEC = """
name: two
trainer: openrlhf
engine: {gpus: 8}
model: ./model
domains:
  if: {generator: {level: tiny}}
  math: {generator: {name: arithmetic, max_a: 99, max_b: 11}}
stages:
  - name: if
    domains: if
    steps: 400
    micro_batch: 8
    rollout: {prompts_per_step: 128, samples_per_prompt: 8, max_response_tokens: 256}
    optim: {warmup_steps: 20}
    trainer_args: {ds.packing_samples: true, ds.zero_stage: 3, vllm.tensor_parallel_size: 2}
  - name: math
    domains: math
    steps: 500
    kl: 0.01
    overlong: mask
    rollout: {prompts_per_step: 128, samples_per_prompt: 8, max_response_tokens: 512}
evaluation:
  limit: 100
  samples: 1
  sampling: {max_response_tokens: 512}
  vllm_args: {max_num_seqs: 64, enable_prefix_caching: false, quantization: fp8, block_size: 16, dtype: bfloat16, enable_chunked_prefill: true}
"""
THREE_BOUNDS = "stages.if.trainer_args={algo.advantage.is_correction_threshold: [0.1, 0.5, 5.0]}"
TWO_DELTAS = (
    "stages.math.trainer_args={algo.advantage.is_correction_mode: mask, algo.advantage.is_correction_gating: tv,"
    " algo.advantage.is_correction_threshold: [0.1, 0.5]}"
)


@pytest.fixture
def rehearse(engine, tmp_path):
    """`rehearse(*settings)`: the status, and what `--json` tells."""
    model(tmp_path / "model", template=TEMPLATE, context=2048)
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    def call(*settings):
        program = "from cascade_core.cli import main; main()"
        given = [part for setting in settings for part in ("--set", setting)]
        options = ["--json", "--python", str(engine), "--folder", str(tmp_path / "trial")]
        done = subprocess.run(
            [sys.executable, "-c", program, "rehearse", str(spec), *options, *given],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


def test_a_spec_for_a_cluster_is_tried_whole_on_this_machine(rehearse, tmp_path):
    status, told = rehearse()
    assert (status, told["mistakes"]) == (0, []), told
    for stage in told["stages"]:
        assert (stage["trainer"], stage["done"], stage["samples"]["scored"]) == ("openrlhf", 2, 32)
    replaced = {(one["stage"], one["setting"]): (one["before"], one["after"]) for one in told["replaced"]}
    wanted = {
        ("if", "ds.packing_samples"): (True, None),
        ("if", "ds.zero_stage"): (3, 2),
        ("if", "vllm.tensor_parallel_size"): (2, 1),
        ("if", "vllm.num_engines"): (4, 1),
        ("if", "actor.num_gpus_per_node"): (8, 1),
        ("if", "steps"): (400, 2),
        ("math", "rollout.max_response_tokens"): (512, 32),
        ("", "evaluation.tensor_parallel_size"): (2, 1),
        ("", "evaluation.vllm_args.quantization"): ("fp8", None),
        ("", "evaluation.vllm_args.block_size"): (16, None),
        ("", "evaluation.vllm_args.dtype"): ("bfloat16", "float32"),
    }
    assert {key: replaced.get(key) for key in wanted} == wanted
    assert [(one["scored"], one["failed"]) for one in told["benchmarks"]] == [(4, 0), (4, 0)]
    said = (tmp_path / "trial" / "eval" / "vllm.log").read_text("utf-8", "replace")
    assert "max_num_seqs" not in said and "the model is loaded" in said


def test_mistakes_that_only_the_engine_finds_are_found_in_every_stage(rehearse):
    status, told = rehearse(THREE_BOUNDS, TWO_DELTAS, "evaluation={sampler: transformers, limit: 100}")
    assert status == 1
    first, second = (one["what"] for one in told["mistakes"])
    assert first.startswith("stage 'if': OpenRLHF ended with status 1 at step 0")
    assert "--algo.advantage.is_correction_threshold takes HIGH or LOW HIGH" in first
    assert second.startswith("stage 'math': OpenRLHF ")
    assert "is_correction_gating=tv takes an upper bound only (a single delta)" in second
