"""The hooks: what their functions take and return, and that a documented one-file plugin works with them."""

import inspect

from cascade_core import hookspecs
from cascade_core.offers import HOOKS

SIGNATURES = {
    "cascade_commands": "() -> 'Mapping[str, Callable[[], object]]'",
    "cascade_domains": "() -> 'Iterable[type[Domain]]'",
    "cascade_resources": "() -> 'Iterable[type[Resource]]'",
    "cascade_trackers": "() -> 'Iterable[type[Tracker]]'",
    "cascade_trainers": "() -> 'Iterable[type[Trainer]]'",
}


def specs() -> dict[str, object]:
    return {name: value for name, value in vars(hookspecs).items() if hasattr(value, "cascade_core_spec")}


def test_the_signatures_of_the_hooks_are_frozen() -> None:
    assert {name: str(inspect.signature(value)) for name, value in specs().items()} == SIGNATURES


def test_the_loader_calls_every_hook_that_there_is() -> None:
    assert tuple(sorted(specs())) == HOOKS


def test_every_hook_says_when_it_is_called_and_returns_nothing_by_itself() -> None:
    for value in specs().values():
        assert "Called" in (value.__doc__ or "")
        assert not value()


def test_project_group_and_package_are_one_string() -> None:
    assert hookspecs.PROJECT == hookspecs.__package__ == "cascade_core"
