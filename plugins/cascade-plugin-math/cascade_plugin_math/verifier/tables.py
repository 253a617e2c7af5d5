"""Two helpers that let the tables of this package be written as plain text."""

from __future__ import annotations


def listed(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def spaced(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())
