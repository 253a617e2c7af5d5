"""What judging on a Ray cluster refuses before any cluster is joined; `test_ray_scoring.py` has a real one."""

import socket
import sys
import types

import pytest
from pydantic import ValidationError

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.fleet.cluster import check_addresses, difference, distributions
from cascade_core.scoring import Scorer
from cascade_core.settings import OnRay, RayWorkers, Scoring

HERE = socket.gethostname()


@pytest.mark.parametrize("given", ["ray", {"ray": None}, {"ray": {}}])
def test_workers_on_ray_are_written_in_one_word_or_as_a_mapping(given: object) -> None:
    assert Scoring(workers=given).workers == OnRay(ray=RayWorkers(address="auto", per_node=0))


def test_settings_of_workers_on_ray_survive_json() -> None:
    settings = Scoring(workers={"ray": {"address": "10.0.0.1:6379", "per_node": 4}})
    assert Scoring(**settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    "given",
    [
        "rax",
        -1,
        True,
        None,
        1.5,
        {"rax": {}},
        {"ray": {"per_node": -1}},
        {"ray": 3},
        {"ray": {"address": "http://head:8265"}},
        {"ray": {"address": "local"}},
        {"ray": {"address": "me:word@head:6379"}},
    ],
)
def test_any_other_workers_are_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        Scoring(workers=given)


LOCAL = [
    "unix:/run/box.sock",
    "unix:///run/box.sock",
    "http://localhost:8000/v1",
    "http://127.0.0.1:8000",
    "http://[::1]:80",
    "http://0.0.0.0:80",
    "tcp://127.1.2.3:5",
]


@pytest.mark.parametrize("address", LOCAL)
def test_an_address_of_this_machine_alone_is_refused_when_another_machine_judges(address: str) -> None:
    with pytest.raises(ScoringError, match="'sandbox', can be reached from this machine alone, and node-b judges"):
        check_addresses({"sandbox": address}, [HERE, "node-b"])


@pytest.mark.parametrize("address", LOCAL)
def test_an_address_of_this_machine_is_good_where_all_nodes_are_on_it(address: str) -> None:
    check_addresses({"sandbox": address}, [HERE, HERE])


@pytest.mark.parametrize("address", ["http://10.0.0.7:8000/v1", "https://judge.example", "tcp://node-a:5"])
def test_an_address_that_others_reach_is_good_everywhere(address: str) -> None:
    check_addresses({"judge": address}, [HERE, "node-b"])


def test_a_node_with_another_version_or_none_is_named_with_both() -> None:
    wanted = {"cascade-rl": "0.1.0", "cascade-plugin-math": "0.1.0"}
    assert difference(wanted, wanted) == ""
    assert "has cascade-plugin-math 0.0.9, and 0.1.0 judges here" in difference(
        wanted, {**wanted, "cascade-plugin-math": "0.0.9"}
    )
    assert "has no cascade-rl (here: 0.1.0)" in difference(wanted, {**wanted, "cascade-rl": ""})


def test_what_a_node_must_have_is_the_core_and_the_plugins_of_the_domains() -> None:
    refs = [DomainRef("math", {}, "cascade-plugin-math", "0.1.0"), DomainRef("own")]
    assert set(distributions(refs)) == {"cascade-rl", "cascade-plugin-math"}


def test_no_ray_is_started_where_the_environment_asks_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = types.ModuleType("ray")
    ray.is_initialized = lambda: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(ScoringError, match="RAY_ADDRESS is 'local'"):
        Scorer({"math": DomainRef("math")}, Scoring(workers="ray"))


class Gone:
    """Ray where no cluster can be joined, for the reason given."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: object) -> None:
        raise self.cause

    def shutdown(self) -> None:
        raise RuntimeError("nothing has begun")


OTHER = "Version mismatch: The cluster was started with:\n    Ray: 2.54.0\nThis process was started with:\n    Ray: 2.55.0\n"
UNJOINED = [
    (
        ConnectionError("Could not find any. Please specify one."),
        "",
        "on this machine: none runs, and RAY_ADDRESS names",
    ),
    (ConnectionError("nobody\nthere."), "head:x", r"at 'head:x' \(RAY_ADDRESS\): there; start one"),
    (
        RuntimeError(OTHER),
        "head:x",
        r"at 'head:x' \(RAY_ADDRESS\) cannot be joined: .* Ray: 2\.54\.0 .* Ray: 2\.55\.0; install",
    ),
]


@pytest.mark.parametrize("named", ["http://head:8265", "https://head"])
def test_the_address_of_a_dashboard_is_told_from_one_that_is_joined(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", Gone(AssertionError("it was tried")))
    monkeypatch.setenv("RAY_ADDRESS", named)
    told = rf"RAY_ADDRESS is '{named}', where jobs are submitted, .* name host:port, such as head:6379"
    with pytest.raises(ScoringError, match=told):
        Scorer({"math": DomainRef("math")}, Scoring(workers="ray"))


@pytest.mark.parametrize(("cause", "named", "told"), UNJOINED)
def test_a_cluster_that_cannot_be_joined_is_named_in_one_line_with_the_reason(
    cause: Exception, named: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", Gone(cause))
    monkeypatch.setenv("RAY_ADDRESS", named)
    with pytest.raises(ScoringError, match=told) as refused:
        Scorer({"math": DomainRef("math")}, Scoring(workers="ray"))
    assert "\n" not in str(refused.value)


def test_without_ray_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ScoringError, match=r"pip install 'cascade-rl\[ray\]'"):
        Scorer({"math": DomainRef("math")}, Scoring(workers="ray"))
