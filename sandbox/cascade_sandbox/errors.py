"""What goes wrong in a sandbox that no program caused."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox itself could not run it: says nothing about the program, and must never become a verdict."""


class UnknownLanguage(SandboxError):
    """No such language here, or its self-test did not pass."""
