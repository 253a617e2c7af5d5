"""What serving a reward model gains: sequences per second beside a plain loop and beside padding in arrival order; latency and memory under load.

The model is a Qwen2 classifier with random weights and single bytes as tokens. Its size and the lengths (log-uniform, so that few are long) are arguments and stand in the result, since
both decide what batching can gain: a processor computes one long sequence of a wide model about as well as ten, and gains where a forward pass costs more to begin than to compute; a
GPU gains at every size. All ways score the same items with the same weights, tokenising included, in turns in one process and one torch thread; the
medians of their CPU time are compared (of wall time on a GPU).

    loop      one item after another, as transformers is called
    arrival   16 items at a time in the order they came, padded to the longest of them, as `serve_rm` of OpenRLHF batches
    ours      the encoder, queue and batches of `cascade rm serve`

Then a server in a process of its own answers `--requests` requests of one item each from 64 clients, and its resident memory is looked at before them, warm as it is then, and after each
quarter. Latency is that of all requests.

    python benchmarks/reward_model.py [--hidden 16] [--layers 4] [--longest 96] [--requests 100000] [--quick]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

OURS = "from cascade_core.cli import main; main()"
CONTEXT, ARRIVAL, CLIENTS, PARTS = 512, 16, 64, 4
CHAT = "{% for turn in messages %}<|im_start|>{{ turn['role'] }}\n{{ turn['content'] }}<|im_end|>\n{% endfor %}"


def make(folder: Path, hidden: int, layers: int) -> None:
    """Writes the model and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForSequenceClassification

    names = ["<|im_start|>", "<|im_end|>", "<|pad|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({name: place for place, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|pad|>", model_max_length=CONTEXT
    )
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(names), hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT, num_labels=1,
        pad_token_id=2, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    Qwen2ForSequenceClassification(config).save_pretrained(folder)


def items(count: int, longest: int, seed: int) -> list[tuple[str, str]]:
    """Questions of a few characters, answers of 2 … `longest`, log-uniform."""
    draw = random.Random(seed)
    return [("q" * draw.randint(1, 6), "a" * int(2 * (longest / 2) ** draw.random())) for _ in range(count)]


def speeds(folder: Path, given: Sequence[tuple[str, str]], rounds: int, device: str) -> dict[str, Any]:
    """Sequences per second of each way, and what ours has over the others."""
    from cascade_plugin_rlhf.serving.encoding import Encoder
    from cascade_plugin_rlhf.serving.engine import Engine
    from cascade_plugin_rlhf.serving.metrics import Metrics, Numbers
    from cascade_plugin_rlhf.serving.model import RewardModel, Source

    model = RewardModel(Source(str(folder), device=device))
    encoder = Encoder(model.tokenizer, model.context)
    engine = Engine(model.scores, model.most_tokens, len(given), Numbers(Metrics(), "m"))

    def loop() -> list[float]:
        return [model.scores([encoder.item(*one)])[0] for one in given]

    def arrival() -> list[float]:
        found: list[float] = []
        for first in range(0, len(given), ARRIVAL):
            found += model.scores([encoder.item(*one) for one in given[first : first + ARRIVAL]])
        return found

    def ours() -> list[float]:
        engine.reserve(len(given))
        return [one.score or 0.0 for one in engine.submit([encoder.item(*one) for one in given]).result()]

    ways = {"loop": loop, "arrival": arrival, "ours": ours}
    clock = time.process_time if model.device.type == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in ways}
    expected = loop()
    for _ in range(rounds):
        for name, way in ways.items():
            began = clock()
            found = way()
            times[name].append(clock() - began)
            if max(abs(one - other) for one, other in zip(found, expected, strict=True)) > 1e-4:
                raise SystemExit(f"{name} gives other scores")
    engine.close()
    rates = {name: len(given) / statistics.median(each) for name, each in times.items()}
    for name, rate in rates.items():
        print(f"{name:8} {rate:8.0f} sequences a second")
    return {
        "per_second": {name: round(rate) for name, rate in rates.items()},
        "loop_ratio": round(rates["ours"] / rates["loop"], 2),
        "arrival_ratio": round(rates["ours"] / rates["arrival"], 2),
        "device": model.device.type,
    }


@contextmanager
def server(folder: Path, device: str) -> Iterator[tuple[int, psutil.Process]]:
    """`cascade rm serve`, ready: its port and process."""
    command = [sys.executable, "-c", OURS, "rm", "serve", "--model", f"m={folder}", "--port", "0", "--json"]
    command += ["--threads", "1", "--device", device]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = ""
        while not told.rstrip().endswith("}"):
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the server ended before it served")
            told += line
        yield int(json.loads(told)["address"].rpartition(":")[2]), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


async def ask(port: int, given: Sequence[tuple[str, str]], at_once: int) -> list[float]:
    """Seconds of each request; each client asks the next as soon as it is answered."""
    queue, seconds = iter(given), []

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for prompt, response in queue:
            body = json.dumps({"items": [{"prompt": prompt, "response": response}]}).encode()
            head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            began = time.perf_counter()
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
            told = json.loads(await reader.readexactly(length))
            if " 200 " not in lines[0] or len(told["scores"]) != 1 or told["scores"][0] is None:
                raise SystemExit(f"{lines[0]}: {told}")
            seconds.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(work() for _ in range(at_once)))
    return seconds


def resident(process: psutil.Process) -> float:
    """MiB that a server and the processes that it has started hold."""
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / 2**20


def load(folder: Path, longest: int, requests: int, device: str) -> dict[str, Any]:
    """Latency of single items from 64 clients, and the server's memory before and after each quarter of the requests."""
    seconds: list[float] = []
    with server(folder, device) as (port, process):
        asyncio.run(ask(port, items(2 * CLIENTS, longest, 1), CLIENTS))
        memory = [resident(process)]
        began = time.perf_counter()
        for part in range(PARTS):
            seconds += asyncio.run(ask(port, items(requests // PARTS, longest, 2 + part), CLIENTS))
            memory.append(resident(process))
        rate = len(seconds) / (time.perf_counter() - began)
    seconds.sort()
    p50, p99 = (1e3 * seconds[int(len(seconds) * share)] for share in (0.5, 0.99))
    print(f"{CLIENTS} clients, {len(seconds)} requests: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {rate:.0f} a second")
    print(f"memory before and after each quarter: {', '.join(f'{one:.1f}' for one in memory)} MiB")
    return {
        "clients": CLIENTS,
        "requests": len(seconds),
        "p50_ms": round(p50, 1),
        "p99_ms": round(p99, 1),
        "clients_per_second": round(rate),
        "memory_mib": [round(one, 1) for one in memory],
        "memory_ratio": round(memory[-1] / memory[1], 3),
        "load": [round(one, 1) for one in os.getloadavg()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=16, help="width of the model")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--longest", type=int, default=96, help="bytes of an answer; some 30 are the template's")
    parser.add_argument("--items", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000, help="of one item each, that memory is watched over")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="few of everything")
    args = parser.parse_args()
    if args.quick:
        args.items, args.rounds, args.requests = 256, 3, 4_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        make(folder, args.hidden, args.layers)
        found = speeds(folder, items(args.items, args.longest, 0), args.rounds, args.device)
        found |= load(folder, args.longest, args.requests, args.device)
    print(json.dumps({"hidden": args.hidden, "layers": args.layers, "longest": args.longest, **found}))


if __name__ == "__main__":
    main()
