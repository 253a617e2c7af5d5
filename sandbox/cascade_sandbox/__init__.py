"""Sandboxes for programs that a model wrote, which is paid to cheat. Needs nothing of cascade_core.

with connect("process:") as sandbox:
    sandbox.run(Program("print(int(input()) + 1)"), [Input(b"1\\n")])[0].stdout  # b"2\\n"
"""

from cascade_sandbox.client import connect, docker_sandbox
from cascade_sandbox.contract import VERDICTS, Dialogue, Input, Limits, Program, Result, Sandbox, Session, Verdict
from cascade_sandbox.errors import SandboxError, UnknownLanguage

__all__ = [
    "VERDICTS",
    "Dialogue",
    "Input",
    "Limits",
    "Program",
    "Result",
    "Sandbox",
    "SandboxError",
    "Session",
    "UnknownLanguage",
    "Verdict",
    "connect",
    "docker_sandbox",
]
