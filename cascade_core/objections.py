"""What the plugins object to in a spec: domains, trainers, trackers, resources and benchmarks that are not there, or do not take
what the spec gives them.

Each domain is built, and no task loaded; nothing is started. The settings themselves are right by then (`settings/`,
`consistency.py`); `spec.check` names the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cascade_core import composition, options, provision, waiting
from cascade_core.document import Where
from cascade_core.domain import Benchmark, Domain
from cascade_core.errors import CascadeError, PluginBroken, PluginError, SpecError, UsageError
from cascade_core.nearest import suggestion
from cascade_core.plugins import Registry
from cascade_core.refusals import Refusal, refusals
from cascade_core.rule import CODE_SWITCH
from cascade_core.settings import Sampling, Spec, Stage, is_path
from cascade_core.trainers import trainer_of


def objections(spec: Spec, found: Registry) -> tuple[dict[str, Domain], list[Refusal]]:
    """The domains of a spec, built, and whatever is wrong with it; domains that cannot be built are among what is wrong.

    Raises:
        PluginError: the spec is right, and a plugin that it needs is broken or missing.
    """
    domains: dict[str, Domain] = {}
    wrong = [*_build(spec, found, domains), *_trainers(spec, found), *_trackers(spec, found)]
    if len(domains) == len(composition.named(spec)):
        own = {name: domains[name] for name in composition.measured(spec, found)}
        wrong += [*_resources(spec, domains, found), *_benchmarks(spec, own)]
        wrong += [Refusal(where, what) for where, what in composition.misfits(spec, domains)]
    return domains, [*wrong, *_models(spec)]


def _build(spec: Spec, found: Registry, domains: dict[str, Domain]) -> Iterator[Refusal]:
    """Builds every domain into `domains`; yields what stands in the way."""
    for name, said in composition.named(spec).items():
        where: Where = ("domains", name)
        known, given = found.meant(name, said)
        if known == CODE_SWITCH and known not in found.names("domain"):
            yield from _no_detector(spec, known)
            continue
        where = (*where, known) if known != name else where
        try:
            cls = found.domain(known)
            wrong = list(options.problems(cls, given))
            yield from (Refusal((*where, *inner), what, is_key=what.startswith("unknown")) for inner, what in wrong)
            if not wrong:
                domains[name] = found.build(found.reference(name, said))
        except CascadeError as cause:
            yield Refusal((*where, *_meant(given, str(cause))), str(cause), is_key=True)


def _no_detector(spec: Spec, name: str) -> Iterator[Refusal]:
    what = f"domain {name!r} is not installed; pip install cascade-plugin-language"
    if name in spec.domains:
        yield Refusal(("domains", name), what, is_key=True)
    for index, stage in enumerate(spec.stages):
        if stage.code_switch:
            yield Refusal(("stages", index, "code_switch"), f"{what}, by which it judges", is_key=True)


def _resources(spec: Spec, domains: Mapping[str, Domain], found: Registry) -> Iterator[Refusal]:
    needs, provisions = provision.needed(domains.values()), {}
    for need in [*needs, *(need for need in spec.resources if need not in needs)]:
        is_said = need in spec.resources
        where: Where = ("resources", need) if is_said else ("domains", _needing(need, domains))
        try:
            if need not in needs:
                raise SpecError(provision.unneeded(need, needs))
            one = provision.choose(need, spec.resources, found)
            if one.name and not waiting.stages_of(one):  # a folder that is still to be made may be asked for
                provision.build(one, found)
            provisions[need] = one
        except CascadeError as cause:
            what = str(cause) if is_said else f"domain {where[-1]!r} needs {need!r}: {cause}"
            yield Refusal(where, what, is_key=not is_said or need not in needs)
    for index, name, why in waiting.too_early(spec, domains, provisions):
        yield Refusal(("stages", index, "domains", name), why)


def _needing(need: str, domains: Mapping[str, Domain]) -> str:
    return next(name for name, domain in domains.items() if need in domain.needs)


def _meant(given: Mapping[str, Any], message: str) -> Where:
    """The option that a domain's own refusal speaks of: the one whose name stands in it."""
    return next(((name,) for name in given if re.search(rf"\b{re.escape(name)}\b", message)), ())


def _trainers(spec: Spec, found: Registry) -> Iterator[Refusal]:
    for index, stage in enumerate(spec.stages):
        where: Where = ("stages", index)
        named: Where = (*where, "trainer") if stage.trainer else ("trainer",)
        try:
            trainer = found.trainer(stage.trainer or spec.trainer)
        except PluginError as cause:
            yield Refusal(named, str(cause))
            continue
        if stage.kind not in trainer.kinds:
            kinds = ", ".join(trainer.kinds)
            yield Refusal(
                (*where, "kind"),
                f"trainer {trainer.name!r} has no stages of kind {stage.kind!r} (it has: {kinds}); a stage may name a trainer of its own",
            )
            continue
        try:
            trainer_of(trainer, spec.engine).settings(stage)
        except SpecError as cause:
            what = str(cause).removeprefix(f"stage {stage.name!r}: ")
            yield Refusal((*where, *_setting(what)), what)


def _setting(message: str) -> Where:
    """The setting of a stage that a trainer's refusal speaks of first: `trainer_args.x`, `optim.lr`, `kl`."""
    fields = "|".join(name for name in Stage.model_fields if name not in ("name", "kind", "trainer", "model"))
    match = re.search(rf"\b({fields})((?:\.\w+)*)", message)
    if match and match[1] == "trainer_args" and match[2]:  # a flag has dots in its own name
        return (match[1], match[2].removeprefix("."))
    return tuple(match[0].split(".")) if match else ()


def _trackers(spec: Spec, found: Registry) -> Iterator[Refusal]:
    """What a tracker refuses; nothing of it is started, and no secret is looked up."""
    for name, given in spec.trackers.items():
        where: Where = ("trackers", name)
        try:
            wrong = list(options.problems(found.tracker(name), given, "tracker"))
            yield from (Refusal((*where, *inner), what, is_key=what.startswith("unknown")) for inner, what in wrong)
            if not wrong:
                found.build_tracker(name, given)
        except CascadeError as cause:
            yield Refusal((*where, *_meant(given, str(cause))), str(cause), is_key=True)


def _models(spec: Spec) -> Iterator[Refusal]:
    yield from _model(spec.model.path, ("model", "path"))
    for index, stage in enumerate(spec.stages):
        yield from _model(stage.model, ("stages", index, "model"))


def _model(path: str | None, where: Where) -> Iterator[Refusal]:
    """A path that is no folder, or one of no model; what may be a hub name is asked for when the run begins."""
    if path is None or not is_path(path):
        return
    if not Path(path).is_dir():
        yield Refusal(where, f"no folder is at {path!r}; give a Hugging Face folder or a hub name")
    elif not any(Path(path).glob("*.safetensors")) and not any(Path(path).glob("pytorch_model*.bin")):
        yield Refusal(where, f"no weights are in {path!r} (*.safetensors or pytorch_model*.bin)")


def _benchmarks(spec: Spec, domains: Mapping[str, Domain]) -> Iterator[Refusal]:
    """What is wrong with the names that the spec gives and with the benchmarks themselves."""
    offered: dict[str, Benchmark] = {}
    for name, domain in domains.items():
        try:
            offered |= {f"{name}/{benchmark.name}": benchmark for benchmark in domain.benchmarks()}
        except UsageError as cause:
            yield Refusal(("domains", name, *_meant(spec.domains[name], str(cause))), str(cause), is_key=True)
            return
        except CascadeError:
            raise
        except Exception as cause:
            what = f"{type(cause).__name__}: {cause}"
            raise PluginBroken(f"domain {name!r} cannot tell its benchmarks: {what}") from cause
    for index, name in enumerate(spec.evaluation.benchmarks or ()):
        if name not in offered:
            yield Refusal(
                ("evaluation", "benchmarks", index),
                f"no benchmark is called {name!r}{suggestion(name, offered)}",
            )
    for name, benchmark in offered.items():
        if spec.evaluation.benchmarks is None or name in spec.evaluation.benchmarks:
            yield from (
                Refusal(("domains", name.partition("/")[0]), what, is_key=True)
                for what in _benchmark(spec, name, benchmark)
            )


def _benchmark(spec: Spec, name: str, benchmark: Benchmark) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", benchmark.name):
        yield f"benchmark {name!r} must be called by letters, digits, '_', '.' and '-': its name becomes a file's"
    unknown = [key for key in benchmark.sampling if key not in Sampling.model_fields]
    if unknown:
        yield f"benchmark {name!r} sets sampling {unknown[0]!r}{suggestion(unknown[0], Sampling.model_fields)}"
        return
    try:
        sampling = Sampling.model_validate({**spec.evaluation.sampling.model_dump(), **benchmark.sampling})
    except ValidationError as error:
        (first, *_) = refusals(error, dict(benchmark.sampling), Sampling)
        yield f"benchmark {name!r} sets sampling {'.'.join(map(str, first.where))}, which {first.what}"
        return
    init = spec.model.init
    if benchmark.of == "policy" and init is not None and sampling.max_response_tokens >= init.context:
        yield (
            f"benchmark {name!r} samples up to {sampling.max_response_tokens} tokens, and the model's context is {init.context};"
            " set evaluation.sampling.max_response_tokens"
        )
