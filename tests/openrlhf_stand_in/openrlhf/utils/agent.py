"""`SingleTurnAgentExecutor` as OpenRLHF 0.11 has it, seen from outside: one generation, no reward."""

from typing import Any


class SingleTurnAgentExecutor:
    def __init__(self, remote_rm_url: Any = None) -> None:
        assert remote_rm_url is None

    async def execute(
        self,
        prompt: str,
        label: Any,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        read = hf_tokenizer(text=prompt, add_special_tokens=False)["input_ids"]
        read = read[-(max_length - sampling_params.max_tokens) :]
        made = (await llm_engine.generate(read, sampling_params)).outputs[0]
        logged = None
        if sampling_params.logprobs is not None:
            logged = [0.0] * len(read) + list(made.logprobs)
        return {
            "prompt": prompt,
            "label": label,
            "images": images,
            "mm_train_inputs": None,
            "observation_tokens": read + made.token_ids,
            "action_ranges": [(len(read), len(read) + len(made.token_ids))],
            "rollout_log_probs": logged,
            "truncated": made.finish_reason == "length",
            "reward": None,
            "scores": None,
            "extra_logs": {},
        }
