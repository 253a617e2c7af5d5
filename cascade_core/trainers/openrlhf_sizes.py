"""How a step is shared out: the GPUs of a cluster, the engines on them, the responses that each GPU trains on.

OpenRLHF takes a step of any size. One that does not divide evenly leaves micro-batches without an update of their own: their
gradients go into the next step, and every later update is shifted. Such sizes are refused here, with those that fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from cascade_core.errors import SpecError
from cascade_core.settings import Positive, Settings, Stage


class Cluster(Settings):
    """The machines that a run may use."""

    nodes: Positive = Field(1, description="machines")
    gpus_per_node: Positive = Field(1, description="GPUs of each machine")
    tensor_parallel_size: Positive = Field(1, description="GPUs that one engine is spread over")
    address: str = Field(
        "",
        description="address of a running Ray's dashboard, such as http://head:8265; without one Ray is started here",
    )

    @property
    def gpus(self) -> int:
        """All GPUs together."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True)
class Share:
    """How one update is computed: `replicas` of the model, each with `responses` of the step in micro-batches of `micro`."""

    gpus: int
    replicas: int
    responses: int
    micro: int


def placement(stage: Stage, cluster: Cluster) -> dict[str, int | bool]:
    """Where an rl stage's parts run, in OpenRLHF's flags: training and sampling in turn on all GPUs of the cluster.

    With `train.async_enable` both run at once, and `trainer_args` must say which GPUs train and how many engines sample.

    Raises:
        SpecError: parts that do not fill the cluster, or do not fit into it; OpenRLHF would wait for ever, or stop late.
    """
    where, args = f"stage {stage.name!r}", stage.trainer_args
    if stage.kind != "rl":
        return {}
    is_async = args.get("train.async_enable") is True
    wide = int(args.get("vllm.tensor_parallel_size", cluster.tensor_parallel_size))
    nodes = int(args.get("actor.num_nodes", cluster.nodes))
    gpus = int(args.get("actor.num_gpus_per_node", cluster.gpus_per_node))
    if is_async and "vllm.num_engines" not in args:
        raise SpecError(
            f"{where}: trainer_args.train.async_enable samples and trains at once; give each its GPUs of {cluster.gpus}:"
            " trainer_args.actor.num_nodes, actor.num_gpus_per_node and vllm.num_engines"
        )
    _whole_machines(where, cluster, wide)
    engines = int(args.get("vllm.num_engines", max(1, nodes * gpus // wide)))
    _fill(where, cluster, (nodes, gpus), (engines, wide), is_async)
    shared = {"train.colocate_all": not is_async}
    actor = {"actor.num_nodes": nodes, "actor.num_gpus_per_node": gpus}
    reference: dict[str, int | bool] = {"ref.num_nodes": nodes, "ref.num_gpus_per_node": gpus} if stage.kl else {}
    if stage.kl and is_async:  # the reference model would wait for GPUs of its own
        reference["train.colocate_actor_ref"] = True
    return {**shared, **actor, **reference, "vllm.num_engines": engines, "vllm.tensor_parallel_size": wide}


def _whole_machines(where: str, cluster: Cluster, wide: int) -> None:
    """An engine that spans machines would send every layer over the network."""
    each = cluster.gpus_per_node
    if each % wide:
        fits = [size for size in range(1, each + 1) if each % size == 0]
        raise SpecError(
            f"{where}: trainer_args.vllm.tensor_parallel_size (or engine.tensor_parallel_size) {wide} must divide the"
            f" {each} GPUs of a machine: {_listed(fits)} fit"
        )


def _fill(where: str, cluster: Cluster, actor: tuple[int, int], engines: tuple[int, int], is_async: bool) -> None:
    training, sampling = math.prod(actor), math.prod(engines)
    told = f"training takes {actor[0]} × {actor[1]} = {training} GPUs"
    told_engines = f"{engines[0]} engines × tensor_parallel_size {engines[1]} = {sampling}"
    if not is_async and training != sampling:
        raise SpecError(
            f"{where}: trainer_args.vllm.num_engines: {told}, sampling {told_engines}: they take turns on the same ones, so"
            " that both must be as many; leave vllm.num_engines out"
        )
    if (wanted := training + sampling if is_async else training) > cluster.gpus:
        told += f", sampling {told_engines}, together {wanted}" if is_async else ""
        raise SpecError(
            f"{where}: trainer_args.actor.num_gpus_per_node and vllm.num_engines: {told}, and there are engine.nodes"
            f" {cluster.nodes} × engine.gpus {cluster.gpus_per_node} = {cluster.gpus}"
        )


def share(stage: Stage, cluster: Cluster) -> Share:
    """What each GPU has of a step. An sft stage runs on one machine.

    Raises:
        SpecError: a step, or `micro_batch`, that does not divide evenly; names the nearest numbers that do.
    """
    where, args = f"stage {stage.name!r}", stage.trainer_args
    nodes = int(args.get("actor.num_nodes", cluster.nodes)) if stage.kind == "rl" else 1
    gpus = nodes * int(args.get("actor.num_gpus_per_node", cluster.gpus_per_node))
    parallel = int(args.get("ds.ring_attn_size", 1)) * int(args.get("ds.tensor_parallel_size", 1))
    if gpus % parallel:
        raise SpecError(
            f"{where}: trainer_args.ds.ring_attn_size × ds.tensor_parallel_size ({parallel}) must divide {gpus} GPUs"
        )
    replicas = gpus // parallel
    whole, every, setting = _step(stage)
    if whole % replicas:
        unit = replicas // math.gcd(replicas, every)
        low, found = whole // every // unit * unit, whole // every
        raise SpecError(
            f"{where}: {setting} {found} makes steps of {whole} responses, which {replicas} replicas of the model cannot"
            f" share evenly: their gradients would leak into the next step; {_listed([n for n in (low, low + unit) if n])} fit"
        )
    each = whole // replicas
    micro = stage.micro_batch or 1
    if each % micro:
        fits = [size for size in range(1, each + 1) if each % size == 0]
        near = sorted(sorted(fits, key=lambda size: abs(size - micro))[:4])
        raise SpecError(
            f"{where}: micro_batch {micro} must divide the {each} responses that each of {replicas} replicas has of a step:"
            f" {_listed(near)} fit"
        )
    return Share(gpus, replicas, each, micro)


def rollout_micro(stage: Stage, each: Share) -> int:
    """Responses that are read at once for their log-probabilities; a multiple of nothing else, and never trained on as such.

    Raises:
        SpecError: `trainer_args.rollout.micro_batch_size` does not divide what a replica has.
    """
    found = int(stage.trainer_args.get("rollout.micro_batch_size", each.micro))
    if found < 1 or each.responses % found:
        raise SpecError(
            f"stage {stage.name!r}: trainer_args.rollout.micro_batch_size {found} must divide the {each.responses} responses"
            f" that each of {each.replicas} replicas has of a step"
        )
    return found


def _step(stage: Stage) -> tuple[int, int, str]:
    """Responses of a step, of each of its units, and the setting that counts the units."""
    if stage.kind == "rl":
        every = stage.rollout.samples_per_prompt
        return stage.rollout.prompts_per_step * every, every, "rollout.prompts_per_step"
    return stage.batch_size, 1, "batch_size"


def _listed(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers)) if len(numbers) < 3 else ", ".join(map(str, numbers))
