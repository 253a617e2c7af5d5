"""Reinforcement learning with `trl.GRPOTrainer`: one update per rollout batch, advantages from the judge.

TRL loops, accumulates, clips and steps, and multiplies ratio and advantage. It is overridden where it would decide
something that the core decides: how a row is rendered, how a response is sampled (`sampling.draw`), what it is worth
(`job.judge`), and the denominators of the loss. With weights w_i of `advantages.token_weights` in place of its 0/1 token
mask and 1 in place of its token count, its `dapo` loss is

    Σ_i Σ_t w_i · ( −min(ρ A_i, clip(ρ) A_i) + β · KL_it ),   ρ = 1 on-policy,

for all three losses of a stage. At β = 0 samples with advantage 0 are left out of forward and backward: their term is
exactly 0, and so is its gradient. Masked samples have weight 0 and are left out always.

Only `trl.py` imports this module: it loads torch and TRL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from cascade_core.advantages import token_weights
from cascade_core.determinism import derive, seeded
from cascade_core.errors import TrainerError
from cascade_core.pretrained import Decoder, context_length
from cascade_core.rows import Row
from cascade_core.sampling import EntropyMeter, check_length, draw
from cascade_core.template import encode
from cascade_core.trainers import Job
from cascade_core.trainers.trl_stage import StageTrainer

if TYPE_CHECKING:
    from cascade_core.judge import Judge, Judged


class OnPolicyTrainer(StageTrainer, GRPOTrainer):
    """`GRPOTrainer` inside a stage."""

    _rows: Sequence[Row]
    _encoded: Sequence[tuple[list[int], str]]
    _drawn: Sequence[int]
    _judged: Judged
    _decoder: Decoder
    _meter: EntropyMeter | None
    _generate_seconds: float
    _verify_seconds: float

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """TRL's, under the seed of the step: the draws of a step do not depend on those before it."""
        with seeded(derive("rollout", self.job.stage.name, self.job.seed, self.state.global_step)):
            return super()._prepare_inputs(generation_batch)

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        self._drawn = [int(prompt) for prompt in prompts]
        return [self._encoded[index][0] for index in self._drawn], None, {}

    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, *rest: Any, **more: Any
    ) -> Any:
        began = time.monotonic()
        self._meter = None
        if self.use_vllm or self.use_transformers_continuous_batching:
            drawn = super()._generate_single_turn(  # type: ignore[no-untyped-call]
                prompt_ids, images, multimodal_fields, *rest, **more
            )
        else:
            drawn = self._draw(prompt_ids), None
        self._generate_seconds = time.monotonic() - began
        return drawn

    @torch.no_grad()
    def _draw(self, prompt_ids: list[list[int]]) -> list[list[int]]:
        """One response to each prompt; the samples of a task stand side by side, so its prompt is read once."""
        rollout = self.job.stage.rollout
        self._meter = EntropyMeter(rollout.temperature)
        model = self.accelerator.unwrap_model(self.model)
        model.eval()
        try:
            distinct, samples = prompt_ids[:: rollout.samples_per_prompt], rollout.samples_per_prompt
            pad = self._tokenizer.pad_token_id
            return draw(model, distinct, samples, rollout, self.eos_token_ids, pad, self._meter, tell=self._hand_over)
        finally:
            model.train()

    def _hand_over(self, place: int, tokens: list[int]) -> None:
        """A response has ended: it is judged while the rest of the batch is being generated."""
        self._judge.hand_over(self._row(place, tokens))

    @property
    def _judge(self) -> Judge:
        if self.job.judge is None:
            raise TrainerError("an rl stage needs a judge")
        return self.job.judge

    def _row(self, place: int, tokens: Sequence[int]) -> Row:
        """The row of the response at this place of the batch."""
        index, samples = self._drawn[place], self.job.stage.rollout.samples_per_prompt
        return {
            **self._rows[index],
            "response": self._decoder.text(tokens),
            "prefill": self._encoded[index][1],
            "truncated": not tokens or tokens[-1] not in self.eos_token_ids,
            "tokens": len(tokens),
            "sample": place % samples,
            "group": f"{self.state.global_step}-{place // samples}",
        }

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        """One call of the judge for the whole rollout batch; TRL's own use of these rewards is overwritten below."""
        began = time.monotonic()
        rows = [self._row(place, tokens) for place, tokens in enumerate(completion_ids_list)]
        self._judged = self._judge.judge(self.state.global_step, rows)
        self._verify_seconds = time.monotonic() - began
        rewards = [row["reward"] for row in self._judged.rows]
        numbers = [float("nan") if reward is None else reward for reward in rewards]
        return torch.tensor(numbers, device=self.accelerator.device)[:, None]  # [responses, 1]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        rows = self._judged.rows
        weights = token_weights(
            [row["tokens"] for row in rows],
            [row["group"] for row in rows],
            [bool(row["masked"]) for row in rows],
            self.job.stage.loss,
        )
        mask = output["completion_mask"]  # [responses, tokens]
        output["tool_mask"] = mask * torch.tensor(weights, device=mask.device)[:, None]
        output["advantages"] = torch.tensor([row["advantage"] for row in rows], device=mask.device)  # [responses]
        output["num_items_in_batch"] = torch.ones((), device=mask.device)
        return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        kept = self._kept(inputs)
        if kept is None:  # nothing of this micro-batch has a gradient: a zero that every weight is part of
            return sum((weight.sum() * 0.0 for weight in model.parameters()), torch.zeros((), device=self.args.device))
        return super()._compute_loss(model, kept)  # type: ignore[no-untyped-call,no-any-return]

    def _kept(self, inputs: dict[str, Any]) -> dict[str, Any] | None:
        """The samples that move the weights, without the columns that only others fill."""
        weighs = inputs["tool_mask"].sum(1) > 0
        if self.beta == 0.0:
            weighs &= inputs["advantages"] != 0
        if not bool(weighs.any()):
            return None
        size = len(weighs)
        kept = {
            name: value[weighs] if torch.is_tensor(value) and value.dim() and len(value) == size else value
            for name, value in inputs.items()
        }
        first = kept["prompt_mask"].shape[1] - int(kept["prompt_mask"].sum(1).max())
        last = int(kept["completion_mask"].sum(1).max())
        for name in ("prompt_ids", "prompt_mask"):
            kept[name] = kept[name][:, first:]
        width = inputs["completion_mask"].shape[1]
        for name, value in kept.items():
            if (
                name not in ("prompt_ids", "prompt_mask")
                and torch.is_tensor(value)
                and value.dim() == 2
                and value.shape[1] == width
            ):
                kept[name] = value[:, :last]
        return kept

    def _numbers(self, logs: dict[str, float]) -> dict[str, Any]:
        seconds = super()._numbers(logs)["update_seconds"] - self._generate_seconds - self._verify_seconds
        rows = self._judged.rows
        entropy = self._meter.mean([row["tokens"] for row in rows]) if self._meter else logs.get("entropy")
        numbers = {
            **self._judged.metrics,
            "entropy": entropy,
            "kl": logs.get("kl"),
            "generate_seconds": round(self._generate_seconds, 4),
            "verify_seconds": round(self._verify_seconds, 4),
            "update_seconds": round(max(0.0, seconds), 4),
        }
        return {name: value for name, value in numbers.items() if value is not None}


def build(job: Job, rows: Sequence[Row], model: Any, tokenizer: Any, flags: Mapping[str, Any]) -> OnPolicyTrainer:
    """The trainer of one rl stage.

    Raises:
        TrainerError: a prompt leaves no room for the longest response.
    """
    encoded = [encode(tokenizer, row, job.modes) for row in rows]
    for row, (ids, _) in zip(rows, encoded, strict=True):
        check_length(row, len(ids), job.stage.rollout.max_response_tokens, context_length(model))
    # TRL carries a prompt as text and has it tokenized later; what it carries here is the row's number.
    data = Dataset.from_dict({"prompt": [str(index) for index in range(len(rows))]})
    args = GRPOConfig(output_dir=str(job.folder / "trainer"), seed=job.seed % 2**32, **flags)
    trainer = OnPolicyTrainer(
        model=model, args=args, train_dataset=data, processing_class=tokenizer, reward_funcs=judged_elsewhere
    )
    trainer._rows, trainer._encoded, trainer._decoder = rows, encoded, Decoder(tokenizer)
    trainer.begin(job)
    return trainer


def judged_elsewhere(**_: Any) -> list[float | None]:
    """TRL asks for a reward function; it is never called, `_calculate_rewards` is ours."""
    raise TrainerError("TRL called a reward function of its own")
