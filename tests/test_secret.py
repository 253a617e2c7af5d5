"""A secret is a reference: looked up where it is used, and shown nowhere."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cascade_core import Secret
from cascade_core.errors import SpecError
from cascade_core.secret import secrets


@dataclass
class Options:
    token: Secret | None = None
    more: dict[str, Any] = field(default_factory=dict)
    text: str = "plain"


def test_a_secret_is_looked_up_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret(env="A_TOKEN")
    monkeypatch.setenv("A_TOKEN", "one")
    assert secret.reveal() == "one"
    monkeypatch.setenv("A_TOKEN", " two\n")
    assert secret.reveal() == "two"
    assert "two" not in repr(secret)


def test_a_secret_in_a_file_has_no_white_space_around_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n s p \n")
    assert Secret(file=str(tmp_path / "token")).reveal() == "s p"


def test_a_secret_that_cannot_be_had_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", " ")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for secret, told in (
        (Secret(env="NOT_SET_ANYWHERE"), "'NOT_SET_ANYWHERE', which is to hold a secret, is not set"),
        (Secret(env="EMPTY"), "is empty"),
        (Secret(file=str(tmp_path / "none")), "cannot be read: No such file or directory"),
        (Secret(file=str(tmp_path)), "cannot be read: Is a directory"),
        (Secret(file=str(tmp_path / "binary")), "cannot be read: it is no text"),
    ):
        with pytest.raises(SpecError, match=told):
            secret.reveal()


@pytest.mark.parametrize("given", [{}, {"env": "A", "file": "b"}, {"env": ""}])
def test_a_secret_is_exactly_one_reference(given: dict[str, str]) -> None:
    with pytest.raises(SpecError, match="{env: NAME} or {file: PATH}"):
        Secret(**given)


def test_secrets_are_found_wherever_options_hold_them() -> None:
    one, two, three = Secret(env="A"), Secret(env="B"), Secret(file="c")
    assert list(secrets(Options(one, {"list": [two, {"deep": three}]}))) == [one, two, three]
    assert list(secrets(Options())) == []
