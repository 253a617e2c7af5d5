"""The public surface: what strangers' plugins import. A change here is a decision, to be written into the changelog."""

import inspect

import cascade_core
from cascade_core import domain, tracker

PUBLIC = [
    "BatchStats",
    "Benchmark",
    "Demonstration",
    "Domain",
    "DomainRef",
    "Estimate",
    "Group",
    "Message",
    "Pair",
    "Resource",
    "Response",
    "RunInfo",
    "Score",
    "Secret",
    "Task",
    "Tracker",
    "hookimpl",
]
SIGNATURES = {
    "Benchmark": "name, split, samples, sampling, mode, of, limit",
    "Score": "value, reward, note, metrics, error",
    "Task": "id, prompt, answer, mode, source, meta",
    "Response": "text, prefill, mode, truncated, turns",
    "Group": "task, responses, scores",
    "BatchStats": "count, min, mean, max",
    "Demonstration": "task, response",
    "Pair": "task, chosen, rejected",
    "Estimate": "value, stderr, n",
    "DomainRef": "name, options, distribution, version, lane",
    "RunInfo": "id, name, folder, stages, spec",
    "Secret": "env, file",
}
METHODS = {
    "open": "resources",
    "close": "",
    "tasks": "split, seed",
    "score": "task, response",
    "explain": "task, response",
    "rewards": "group, batch",
    "benchmarks": "",
    "reference": "task",
    "demonstrations": "split, seed",
    "pairs": "split, seed",
    "warnings": "steps, now, before",
    "reply": "task, turns",
}
TRACKER = {"start": "run", "events": "events", "finish": "status"}


def parameters(function: object) -> str:
    return ", ".join(name for name in inspect.signature(function).parameters if name != "self")


def test_the_public_names_are_these_and_sorted() -> None:
    assert cascade_core.__all__ == PUBLIC == sorted(PUBLIC)
    assert all(hasattr(cascade_core, name) for name in PUBLIC)


def test_the_fields_of_the_public_dataclasses_and_their_order_are_frozen() -> None:
    assert {name: parameters(getattr(cascade_core, name)) for name in SIGNATURES} == SIGNATURES


def test_the_methods_of_a_domain_are_frozen() -> None:
    own = {name: parameters(value) for name, value in vars(domain.Domain).items() if inspect.isfunction(value)}
    assert own == METHODS


def test_a_domain_never_gains_an_abstract_method() -> None:
    assert domain.Domain.__abstractmethods__ == {"tasks", "score"}


def test_the_methods_of_a_tracker_are_frozen_and_one_of_them_is_abstract() -> None:
    own = {name: parameters(value) for name, value in vars(tracker.Tracker).items() if inspect.isfunction(value)}
    assert own == TRACKER
    assert tracker.Tracker.__abstractmethods__ == {"events"}


def test_every_public_name_is_documented() -> None:
    assert all((getattr(cascade_core, name).__doc__ or "").strip() for name in PUBLIC)
