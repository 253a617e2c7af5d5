"""The pytest plugin: a fixture `check_domain`, so that the test of a domain is one call.

    def test_the_domain_keeps_its_contract(check_domain):
        check_domain("reverse", {"length": 8})

pytest loads this module in every run where cascade-rl is installed, so it imports nothing but pytest until the fixture
is used. `-p no:cascade` leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cascade_core.domain import Domain
    from cascade_core.settings import Scoring
    from cascade_core.testing import Finding


@pytest.fixture(scope="session")
def check_domain() -> Callable[..., list[Finding]]:
    """Checks a domain of cascade-rl against its contract: `check_domain("reverse", {"length": 8}, tasks=20)`.

    The first argument is a domain or the name of an installed one; options are those of a spec. Fails the test with every
    check that does not hold, and returns the findings; see `cascade_core.testing.check_domain`.
    """

    def check(
        domain: str | Domain,
        options: Mapping[str, Any] | None = None,
        *,
        tasks: int = 50,
        resources: Mapping[str, str | Mapping[str, Any]] | None = None,
        scoring: Scoring | None = None,
    ) -> list[Finding]:
        __tracebackhide__ = True
        from cascade_core.plugins import registry
        from cascade_core.testing import check_domain

        if isinstance(domain, str):
            domain = registry().build(registry().reference(domain, options))
        elif options:
            raise TypeError("options go with the name of a domain, not with a domain that is built already")
        return check_domain(domain, tasks=tasks, resources=resources, scoring=scoring)

    return check
