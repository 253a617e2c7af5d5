"""The check of a domain against its contract: public, for authors' own tests and for `cascade check`.

    from cascade_core.testing import check_domain

    def test_my_domain_keeps_its_contract():
        check_domain(MyDomain(level=2))

The checks are in `examination.py`. The domain has to be installed, since it is rebuilt from its entry point in other
processes. What a good task or a fair verdict is, no such check can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from cascade_core.domain import Domain
from cascade_core.examination import Examination, Failure
from cascade_core.provision import chosen, running
from cascade_core.settings import Scoring
from cascade_core.worker import told


@dataclass(frozen=True)
class Finding:
    """What was checked, whether it holds, and what was found."""

    check: str
    ok: bool
    detail: str


def check_domain(
    domain: Domain,
    *,
    tasks: int = 50,
    resources: Mapping[str, str | Mapping[str, Any]] | None = None,
    scoring: Scoring | None = None,
) -> list[Finding]:
    """Examines a domain and insists that all is well; see `examine`.

    Raises:
        AssertionError: names every check that failed and what was found.
    """
    findings = examine(domain, tasks=tasks, resources=resources, scoring=scoring)
    failed = [f"  {finding.check}: {finding.detail}" for finding in findings if not finding.ok]
    if failed:
        raise AssertionError("\n".join([f"domain {domain.name!r} fails {len(failed)} of its checks", *failed]))
    return findings


def examine(
    domain: Domain,
    *,
    tasks: int = 50,
    resources: Mapping[str, str | Mapping[str, Any]] | None = None,
    scoring: Scoring | None = None,
) -> list[Finding]:
    """Checks a domain, as it was built, against the contract of `cascade_core.domain`.

    Args:
        tasks: how many of the first tasks of each split are examined.
        resources: what provides what the domain needs, as in a spec: a name, one name with its options, or an address; the
            default is that of a run. What is not an address is started for the examination.
        scoring: limits of the scoring processes; default: those of a run, with one process.

    Returns:
        One finding per check. A check that rests on one that failed is left out.

    Raises:
        ResourceError: what the domain needs cannot be started.
        PluginError, SpecError: nothing provides it, or the choice cannot be.
    """
    with ExitStack() as stack:
        started = stack.enter_context(running(chosen([domain], resources or {}).values()))
        exam = Examination(domain, tasks, started.addresses, scoring or Scoring(workers=1, concurrency=1), stack)
        findings: list[Finding] = []
        for check, run in exam.checks():
            try:
                findings.append(Finding(check, True, run()))
            except Failure as failure:
                findings.append(Finding(check, False, str(failure)))
                if failure.fatal:
                    break
            except Exception as cause:  # noqa: BLE001 - a stranger's code; what it raised is the finding
                findings.append(Finding(check, False, told(cause)))
                if not exam.loaded:
                    break
    return findings
