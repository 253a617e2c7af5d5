"""A domain with faults to order, a model in a folder, and a spec that is right: what rehearsals are tested with."""

from pathlib import Path

from cascade_core.initial import make
from cascade_core.settings import InitModel, InitTokenizer

DOMAIN = """
    from dataclasses import dataclass
    from pathlib import Path
    from cascade_core import Benchmark, Domain, Pair, Resource, Score, Secret, Task, hookimpl

    @dataclass
    class Sums(Domain):
        name = "sums"
        fault: str = ""
        words: int = 0
        is_chat: bool = False
        token: Secret | None = None

        def __post_init__(self):
            if self.fault in ("resource", "waits"): self.needs = ("counter",)

        def open(self, resources):
            if self.fault == "waits": assert Path(resources["counter"], "config.json").is_file()

        def pairs(self, split, seed):
            for task in self.tasks(split, seed): yield Pair(task, str(task.answer), str(task.answer + 1))

        def benchmarks(self):
            return Benchmark("test"), *([Benchmark("pairs", of="reward_model")] if self.fault == "waits" else [])

        def tasks(self, split, seed):
            for n in range(40):
                text = f"{split} {n} + {n} = " + "so " * (self.words // 3 if split == "train" else 0)
                yield Task(f"{split}-{n}", [{"role": "user", "content": text}] if self.is_chat else text, answer=2 * n)

        def score(self, task, response):
            if self.fault == "grader": raise KeyError("sum")
            if self.fault == "generous": return Score(1.0)
            return Score(float(response.answer == str(task.answer)))

        def reference(self, task): return "-1" if self.fault == "reference" else str(task.answer)

        def rewards(self, group, batch):
            if self.fault == "rewards": raise ZeroDivisionError("no spread")
            return super().rewards(group, batch)

    @dataclass
    class Broken(Resource):
        name, provides = "broken", "counter"
        def start(self): raise RuntimeError("no counter here")
        def stop(self): pass
        def alive(self): return False

    @dataclass
    class Kept(Resource):
        name, provides = "kept", "counter"
        model: str
        device: str = "auto"
        is_broken: bool = False
        def start(self):
            if self.is_broken: raise RuntimeError(f"{self.model} cannot count")
            return self.model
        def stop(self): pass
        def alive(self): return not self.is_broken
        def describe(self): return {"device": self.device}

    @hookimpl
    def cascade_domains(): return [Sums]

    @hookimpl
    def cascade_resources(): return [Broken, Kept]
"""

SPEC = """
name: small
seed: 3
model: ./model
domains: {sums: {}}
stages:
  - name: rl
    domains: sums
    steps: 40
    rollout: {prompts_per_step: 16, samples_per_prompt: 8, max_response_tokens: 24}
scoring: {workers: 1}
evaluation: {sampling: {max_response_tokens: 24}}
"""

TEMPLATE = (
    "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def model(folder: Path, *, template: str = "", context: int = 256) -> Path:
    """A Llama of a few thousand weights, with a chat template if one is given."""
    phrases = ["<user>", "<assistant>"]
    settings = InitModel(hidden_size=32, layers=3, heads=2, context=context, tokenizer=InitTokenizer(phrases=phrases))
    folder.parent.mkdir(parents=True, exist_ok=True)
    make(settings, 0, folder)
    if template:
        (folder / "chat_template.jinja").write_text(template)
    return folder
