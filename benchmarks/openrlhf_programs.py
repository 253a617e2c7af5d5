"""OpenRLHF's own programs, out of its published wheels: what their parsers and checks make of a command line.

The main block of a program is run as it is, up to where it would train: its parser, its defaults, its checks of what was given.
What it imports (Ray, vLLM, DeepSpeed) is left out; nothing of OpenRLHF is installed.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fetched

PYPI = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux1_x86_64")


def sources(version: str, folder: Path) -> dict[str, str]:
    """The source of each program of a version, and of what their parsers need, by the name of its module."""
    wheel = fetched.archive(f"openrlhf=={version}", folder, *PYPI)
    found = fetched.members(wheel, "openrlhf/cli/*.py") | fetched.members(wheel, "openrlhf/utils/*.py")
    return {Path(name).stem: source.decode("utf-8") for name, source in found.items()}


def trained_with(program: str, config: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """What a program's main block hands to `train`, with these words on its command line.

    Raises:
        ValueError: it refuses them; holds the end of what it printed.
    """
    out = folder / "args.json"
    tree = ast.parse(program)
    main = [node for node in tree.body if isinstance(node, ast.If)]
    body = ast.unparse(ast.Module([*_light(tree.body), *main], []))
    script = folder / "program.py"
    script.write_text(
        "import json, pathlib, sys, types\n"
        f"module = types.ModuleType('openrlhf.utils.config')\nexec({config!r}, vars(module))\n"
        "for name in ('openrlhf', 'openrlhf.utils'):\n    sys.modules[name] = types.ModuleType(name)\n"
        "sys.modules[module.__name__] = module\n"
        "def train(args):\n"
        f"    pathlib.Path({str(out)!r}).write_text(json.dumps(args, default=vars))\n" + body
    )
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise ValueError(done.stderr[-2000:])
    read: dict[str, Any] = json.loads(out.read_text())
    return read


def _light(body: list[ast.stmt]) -> list[ast.stmt]:
    """Imports of the standard library."""
    roots = [node.names[0].name if isinstance(node, ast.Import) else getattr(node, "module", "") for node in body]
    return [node for node, root in zip(body, roots, strict=True) if root in ("argparse", "os", "datetime", "math")]
