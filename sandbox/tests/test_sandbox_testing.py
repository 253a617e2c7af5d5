"""`require_engine`: a machine without an engine skips and says why; CI without one fails."""

import pytest
from cascade_sandbox import testing
from cascade_sandbox.engine import Engine


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "_engine", lambda kind: f"the image of {kind} is missing")


@pytest.mark.parametrize("value", [None, "", "false"])
def test_a_machine_without_an_engine_skips_with_the_reason(
    value: str | None, without: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if value is not None:
        monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match="no Docker sandbox here: the image of cpp is missing"):
        testing.require_engine("cpp")


def test_ci_without_an_engine_fails(without: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI must have the Docker sandbox: the image of python is missing"):
        testing.require_engine()


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert "nothing answers" in str(testing._engine.__wrapped__("python"))


def test_the_engine_is_handed_over(docker_engine: Engine) -> None:
    assert testing.require_engine().version()
