"""`check_domain`: it lets a domain that keeps its contract pass, and finds every single breach."""

import pytest
from faulty import importable

from cascade_core.domain import DomainRef
from cascade_core.plugins import registry
from cascade_core.settings import Scoring
from cascade_core.testing import check_domain, examine


@pytest.fixture(scope="module")
def tidy():
    with importable():
        yield lambda fault="", **options: registry().domain("tidy")(fault, **options)


def failures(findings):
    return {finding.check: finding.detail for finding in findings if not finding.ok}


def test_a_domain_that_keeps_its_contract_passes_every_check(tidy):
    findings = check_domain(tidy(), tasks=10)
    assert all(finding.ok and finding.detail for finding in findings)
    assert len(findings) == 15
    assert len({finding.check for finding in findings}) == 15


BREACHES = [
    ("raises", "both splits have tasks", "FileNotFoundError: words.txt"),
    ("no train", "both splits have tasks", "split 'train' has none"),
    ("no test", "both splits have tasks", "split 'test' has none"),
    ("small seeds", "both splits have tasks", "Seed must be between 0 and"),
    ("no task", "both splits have tasks", "yields a dict, not a Task"),
    ("tuple", "tasks are well-formed", "must be JSON values that JSON gives back unchanged"),
    ("mode", "tasks are well-formed", "a mode must be '', 'think' or 'no_think', found 'thinking'"),
    ("random", "the same tasks come every time", "on a second load"),
    ("seeded test", "the same tasks come every time", "with another seed"),
    ("ids", "an id names one task", "'same' is two tasks"),
    ("overlap", "no prompt is in both splits", "1 prompts are in both"),
    ("benchmarks", "benchmarks have tasks", "names must be there, and differ"),
    ("reference", "references score 1.0", "'sdrawkcab', scores 0"),
    ("reference type", "references score 1.0", "is a int, not text"),
    ("blank", "hostile answers are judged, and not right", "an empty answer scores 1.0 for 10 of 10 tasks"),
    ("thought", "hostile answers are judged, and not right", "a thought that never ends scores 1.0"),
    ("echo", "hostile answers are judged, and not right", "the prompt itself scores 1.0"),
    ("length", "hostile answers are judged, and not right", "a megabyte scores 1.0"),
    ("nul", "hostile answers are judged, and not right", "NUL characters, for task"),
    ("surrogates", "hostile answers are judged, and not right", "UnicodeEncodeError"),
    ("chance", "the same answer gets the same score", "the second time"),
    ("process", "scores are the same in another process", "in this process"),
    ("rewards", "rewards of a group are one finite number each", "gave 1 rewards for 2 responses"),
    ("stranger", "tasks of other domains are judged", "'no' for a task without a label could not be judged: TypeError"),
    ("network", "a score needs no network", "wants the network: '127.0.0.1'"),
    ("slow", "a score takes little time", "of 0.1 s allowed"),
]


@pytest.mark.parametrize(("fault", "check", "detail"), BREACHES, ids=[fault for fault, _, _ in BREACHES])
def test_every_breach_is_found_and_named(tidy, fault, check, detail):
    slow = fault == "slow"
    limits = Scoring(workers=1, cpu_seconds=0.1 if slow else 10.0)
    found = failures(examine(tidy(fault, size=5), tasks=1 if slow else 5, scoring=limits))
    assert detail in found[check]


@pytest.mark.parametrize("fault", ["seeded test", "ids", "overlap", "benchmarks", "blank", "rewards", "network"])
def test_one_breach_does_not_make_other_checks_fail(tidy, fault):
    assert len(failures(examine(tidy(fault, size=5), tasks=5))) == 1


def test_the_breaches_are_all_in_the_assertion(tidy):
    with pytest.raises(AssertionError, match=r"domain 'tidy' fails 1 of its checks\n  no prompt is in both splits: 1 "):
        check_domain(tidy("overlap", size=5), tasks=5)


def test_a_domain_without_references_passes_and_it_is_said_what_was_not_seen(tidy):
    details = {finding.check: finding.detail for finding in check_domain(tidy("no reference", size=5), tasks=5)}
    assert "was not seen" in details["references score 1.0"]


def test_options_go_to_the_other_process(tidy):
    details = {finding.check: finding.detail for finding in check_domain(tidy(size=6), tasks=6)}
    assert '{"size": 6}' in details["it can be rebuilt in another process"]


def test_options_that_are_no_json_are_found(tidy):
    found = failures(examine(tidy(anything={1, 2}), tasks=2))
    assert "must be JSON values" in found["it can be rebuilt in another process"]


def test_a_class_that_is_not_the_installed_one_is_found(tidy):
    other = type("Other", (type(tidy()),), {})
    found = failures(examine(other(), tasks=2))
    assert "installed as 'tidy' is cascade_plugin_faulty.tidy.Tidy" in found["it can be rebuilt in another process"]


def test_a_domain_that_is_not_installed_is_found(tidy):
    other = type("Other", (type(tidy()),), {"name": "elsewhere"})
    found = failures(examine(other(), tasks=2))
    assert list(found) == ["it can be rebuilt in another process"]
    assert "'elsewhere'" in found["it can be rebuilt in another process"]


def test_a_domain_that_cannot_be_opened_is_found(tidy):
    found = failures(examine(registry().build(DomainRef("shut")), tasks=2))
    assert "domain 'shut' cannot be opened: ValueError: no verdict" in found["it can be rebuilt in another process"]


@pytest.mark.parametrize("name", ["math", "if"])
def test_the_domains_of_this_checkout_keep_the_contract(name):
    check_domain(registry().build(registry().reference(name)), tasks=20)
