"""Starts the supervisor, as a plain file: `python3 -I -S -E /inside/supervisor.py /socket/s`.

An isolated interpreter looks for modules in no folder of ours, so this one is made a package by hand, whatever it is called here.
"""

from __future__ import annotations

import importlib
import os
import sys
import types

if __name__ == "__main__":
    package = types.ModuleType("inside")
    package.__path__ = [os.path.dirname(os.path.realpath(__file__))]
    sys.modules["inside"] = package
    sys.exit(importlib.import_module("inside.server").main(sys.argv[1:]))
