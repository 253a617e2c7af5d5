"""What `program.py` uses of vLLM, without a model: responses follow from the seed, and come in the reverse order.

`FAKE_VLLM` says what goes wrong: `absent`, `memory`, `die N`, `stall N`, `abort N` (after N responses), `slow`. `FAKE_PIDS` gets the
process id of a daemon in a session of its own, as vLLM's engine is; `FAKE_ASKED` a line for each request, `FAKE_ARGUMENTS` the engine's.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

MODE, _, COUNT = os.environ.get("FAKE_VLLM", "").partition(" ")
if MODE == "absent":
    raise ModuleNotFoundError("No module named 'vllm'")


def told(variable: str, line: str) -> None:
    if variable in os.environ:
        with Path(os.environ[variable]).open("a") as file:
            file.write(line + "\n")


@dataclass
class EngineArgs:
    model: str
    skip_tokenizer_init: bool = False
    trust_remote_code: bool = True
    generation_config: str = "auto"
    tensor_parallel_size: int = 1
    distributed_executor_backend: str | None = None
    disable_log_stats: bool = False
    max_model_len: int | None = None
    dtype: str = "auto"
    enforce_eager: bool = False
    gpu_memory_utilization: float = 0.9


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 16
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    detokenize: bool = True


class LLMEngine:
    @classmethod
    def from_engine_args(cls, arguments: EngineArgs) -> "LLMEngine":
        told("FAKE_ARGUMENTS", json.dumps(asdict(arguments)))
        daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        told("FAKE_PIDS", str(daemon.pid))
        if MODE == "memory":
            raise RuntimeError("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        return cls()

    def __init__(self) -> None:
        self.waiting: list[tuple[str, list[int], SamplingParams]] = []
        self.done = 0

    def add_request(self, name: str, prompt: dict[str, list[int]], params: SamplingParams) -> None:
        told("FAKE_ASKED", json.dumps([prompt["prompt_token_ids"], params.seed, params.temperature]))
        self.waiting.append((name, prompt["prompt_token_ids"], params))

    def step(self) -> list[SimpleNamespace]:
        if self.done >= int(COUNT or 0):
            if MODE == "die":
                os.kill(os.getpid(), 9)
            while MODE == "stall":
                time.sleep(1)
        if MODE == "slow":
            time.sleep(0.05)
        name, _, params = self.waiting.pop()
        self.done += 1
        seed = params.seed if params.temperature else 1
        is_cut = seed % 4 == 0
        tokens = [10 + (seed + place) % 20 for place in range(params.max_tokens if is_cut else 1 + seed % 3)]
        finish = "abort" if MODE == "abort" and self.done > int(COUNT) else "length" if is_cut else "stop"
        one = SimpleNamespace(token_ids=[*tokens, *([] if is_cut else params.stop_token_ids[:1])], finish_reason=finish)
        return [SimpleNamespace(finished=True, request_id=name, outputs=[one])]
