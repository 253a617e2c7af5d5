"""The domain's page says what the code does: every family with its arguments, every option."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.generator import Settings
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.registry import EVALUATION, IFEVAL, TRAINING

DOMAINS = Path(__file__).parents[3] / "docs" / "domains"
PAGE = (DOMAINS / "if.md").read_text(encoding="utf-8")
IFBENCH = (DOMAINS / "ifbench.md").read_text(encoding="utf-8")


def rows_of(page: str) -> dict[str, list[str]]:
    """The families of a page's tables with their arguments."""
    found = re.findall(r"^\| `([\w-]+:[\w-]+)` \|([^|]*)\|", page, re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", arguments) for name, arguments in found}


def test_every_family_stands_in_the_table_with_its_arguments() -> None:
    assert rows_of(PAGE) == {name: [one.name for one in family.arguments] for name, family in REGISTRY.items()}


def test_every_newer_family_stands_in_the_table_of_its_set_with_its_arguments() -> None:
    tables = IFBENCH.split("## Where the public checkers")[0].split("## Training")
    for table, families in zip(tables, (EVALUATION, {**TRAINING}), strict=True):
        expected = {
            name: [one.name for one in family.arguments] for name, family in families.items() if name not in IFEVAL
        }
        assert rows_of(table) == expected


def test_every_option_stands_in_the_table() -> None:
    options = [field.name for field in fields(IFDomain) if field.name != "generator"]
    options += [f"generator.{field.name}" for field in fields(Settings)]
    assert sorted(options) == sorted(re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE)[: len(options)])
