"""`cascade eval`: benchmarks of a model behind an OpenAI-compatible endpoint, or of one in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cascade_core.cli.limits import Workers
from cascade_core.cli.output import Json, Option, Set, bar
from cascade_core.cli.resources import Resource, provided
from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cascade_core.domain import DomainRef
    from cascade_core.evaluate import Exam
    from cascade_core.respondent import Respondent
    from cascade_core.settings import Evaluation, Spec


def evaluate(
    spec: Annotated[
        Path | None, typer.Argument(metavar="SPEC", help="A spec whose domains and evaluation settings are meant.")
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="The model's name at the endpoint; without one, a folder.")
    ] = "",
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="What comes before /chat/completions, often …/v1.")
    ] = "",
    benchmark: Annotated[
        list[str] | None,
        typer.Option("--benchmark", metavar="DOMAIN/NAME", help="A benchmark; repeatable; default: all."),
    ] = None,
    domain: Annotated[str, typer.Option("--domain", help="Without a spec: the domain that --option is for.")] = "",
    option: Option = None,
    resource: Resource = None,
    set_: Set = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many tasks of each benchmark.")
    ] = None,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Responses to each task.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Instead of what spec or benchmark say.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", min=0, max=1, help="Instead of what spec or benchmark say.")
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", min=0, help="Instead of what they say; 0 for all.")] = None,
    max_response_tokens: Annotated[
        int | None,
        typer.Option("--max-response-tokens", min=1, help="Instead of what they say; what is longer is cut."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, max=2**32 - 1, help="Of the sampling.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder of the results; default: evals/<model>.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests at a time.")] = 32,
    tries: Annotated[int, typer.Option("--tries", min=1, help="Tries of one request, the first included.")] = 6,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for one whole answer.")] = 600.0,
    api: Annotated[
        str, typer.Option("--api", help="chat, or completions for models without a chat template.")
    ] = "chat",
    api_key_env: Annotated[
        str, typer.Option("--api-key-env", metavar="NAME", help="The environment variable that holds the API key.")
    ] = "",
    body: Annotated[
        list[str] | None,
        typer.Option("--body", metavar="NAME=VALUE", help="One more field of every request; null removes a field."),
    ] = None,
    modes: Annotated[
        str,
        typer.Option(
            "--modes", help="How tasks' modes are said: switch, flags, prefill or none; default: the spec's, or switch."
        ),
    ] = "",
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Of a model in a folder: responses at once.")
    ] = 64,
    vllm: Annotated[
        str,
        typer.Option(
            "--vllm", metavar="PYTHON", help="Of a model in a folder: sample with the vLLM of this interpreter."
        ),
    ] = "",
    tensor_parallel_size: Annotated[
        int | None,
        typer.Option("--tensor-parallel-size", min=1, help="With --vllm: GPUs that the model is spread over."),
    ] = None,
    workers: Workers = 0,
    max_error_rate: Annotated[
        float, typer.Option("--max-error-rate", min=0, max=1, help="Share of a benchmark's samples that may fail.")
    ] = 0.02,
    json: Json = False,
) -> None:
    """Measure a model on benchmarks: sample responses, judge them, and print means with errors, counts and tokens.

    Goes on where it was interrupted. Ends with status 1 if more samples failed than allowed.

    Example: [bold]cascade eval --endpoint http://localhost:8000/v1 --model NAME --benchmark math/test --limit 100[/bold]
    """
    from cascade_core.assessment import assess
    from cascade_core.cli import respondents
    from cascade_core.cli.outcome import show
    from cascade_core.endpoint import Endpoint
    from cascade_core.provision import chosen, judge_of, running
    from cascade_core.scoring import Scorer
    from cascade_core.settings import Scoring
    from cascade_core.spec import read_options

    given = {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "max_response_tokens": max_response_tokens,
    }
    if not model:
        raise UsageError("say with --model which model is meant")
    loaded = _loaded(spec, set_, domain, option, resource)
    settings = _settings(loaded, benchmark, limit, samples, seed)
    refs = _references(loaded, domain, option, settings)
    found = _exams(refs, settings, {name: value for name, value in given.items() if value is not None})
    folder = output or Path("evals") / _slug(model)
    if endpoint and vllm:
        raise UsageError("--vllm is for a model in a folder; whoever serves one at an --endpoint samples it himself")
    if tensor_parallel_size is not None and not vllm:
        raise UsageError("--tensor-parallel-size is for --vllm")
    said = respondents.modes_of(modes, loaded)
    asked: Respondent
    if vllm:
        sampler = respondents.vllm_of(vllm, tensor_parallel_size, loaded)
        asked = respondents.with_vllm(sampler, model, folder, found, settings.seed, said)
    elif endpoint:
        way, key, more = respondents.api_of(api), respondents.key_of(api_key_env), read_options(body or ())
        server = Endpoint(endpoint, model, key, way, more, timeout, tries, modes=said)
        asked = respondents.served(server, concurrency, found)
    else:
        asked = respondents.local(model, batch_size, said)
    scoring = loaded.scoring if loaded else Scoring()
    if workers:
        scoring = scoring.model_copy(update={"workers": workers})
    judges = [judge_of(ref) for ref in refs.values()]
    resources = chosen(judges, loaded.resources) if loaded else provided(judges, resource)
    with (
        running(resources.values()) as started,
        Scorer(refs, scoring, started.addresses) as scorer,
        respondents.opened(asked),
        bar("answering", lambda: sum(len(exam.tasks) * exam.samples for exam in found)) as progress,
    ):
        result = assess(found, asked, scorer, folder, seed=settings.seed, progress=progress)
    show(result, folder, max_error_rate, json)


def _loaded(
    path: Path | None,
    set_: list[str] | None,
    domain: str,
    option: list[str] | None,
    resource: list[str] | None,
) -> Spec | None:
    from cascade_core.spec import check, load

    if path is None:
        if set_:
            raise UsageError("--set replaces a value of a spec, and no spec is given")
        return None
    if domain or option:
        raise UsageError("--domain and --option are for evaluating without a spec; change the spec's with --set")
    if resource:
        raise UsageError(
            "--resource is for evaluating without a spec; change the spec's with --set resources.NEED=CHOICE"
        )
    spec = load(path, set_ or ())
    check(spec, path, set_ or ())
    return spec


def _settings(
    spec: Spec | None, benchmarks: list[str] | None, limit: int | None, samples: int | None, seed: int | None
) -> Evaluation:
    from cascade_core.settings import Evaluation

    given = {"benchmarks": benchmarks or None, "limit": limit, "samples": samples, "seed": seed}
    base = spec.evaluation.model_dump() if spec else {}
    return Evaluation.model_validate({**base, **{name: value for name, value in given.items() if value is not None}})


def _references(spec: Spec | None, domain: str, option: list[str] | None, settings: Evaluation) -> dict[str, DomainRef]:
    """The domains of the spec; without one `--domain`, and those that the benchmarks are of."""
    from cascade_core.composition import measured
    from cascade_core.plugins import registry
    from cascade_core.spec import read_options

    if spec is not None:
        own = measured(spec.model_copy(update={"evaluation": settings}), registry())
        return {name: registry().reference(name, spec.domains[name]) for name in own}
    if option and not domain:
        raise UsageError("options are for a domain: name it with --domain")
    names = dict.fromkeys([*([domain] if domain else []), *(b.partition("/")[0] for b in settings.benchmarks or ())])
    if not names:
        raise UsageError("say what is measured: a spec, --domain or --benchmark")
    options = read_options(option or ())
    return {name: registry().reference(name, options if name == domain else {}) for name in names}


def _exams(refs: Mapping[str, DomainRef], settings: Evaluation, given: Mapping[str, Any]) -> Sequence[Exam]:
    from pydantic import ValidationError

    from cascade_core.evaluate import exams
    from cascade_core.plugins import registry
    from cascade_core.refusals import sentence
    from cascade_core.settings import Sampling

    domains = {name: registry().build(ref) for name, ref in refs.items()}
    try:
        return [
            replace(exam, sampling=Sampling.model_validate({**exam.sampling.model_dump(), **given}))
            for exam in exams(domains, settings)
        ]
    except ValidationError as cause:
        wrong = cause.errors()[0]
        raise UsageError(f"{'.'.join(map(str, wrong['loc']))} {sentence(wrong)}") from None


def _slug(model: str) -> str:
    import re

    return re.sub(r"[^A-Za-z0-9_.]+", "-", model).strip("-.") or "model"
