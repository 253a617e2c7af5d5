"""The domain's page says what the code does: every family with its arguments, every option."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.generator import Settings
from cascade_plugin_if.instructions import REGISTRY

PAGE = (Path(__file__).parents[3] / "docs" / "domains" / "if.md").read_text(encoding="utf-8")


def test_every_family_stands_in_the_table_with_its_arguments() -> None:
    found = {
        name: re.findall(r"`(\w+)`", arguments)
        for name, arguments in re.findall(r"^\| `(\w+:\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)
    }
    assert found == {name: [one.name for one in family.arguments] for name, family in REGISTRY.items()}


def test_every_option_stands_in_the_table() -> None:
    options = [field.name for field in fields(IFDomain) if field.name != "generator"]
    options += [f"generator.{field.name}" for field in fields(Settings)]
    assert sorted(options) == sorted(re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE)[: len(options)])
