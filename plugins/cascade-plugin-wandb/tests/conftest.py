"""The plugin is importable here without being installed: the project's environment has no wandb (see requirements.txt)."""

import sys
from pathlib import Path

HERE = str(Path(__file__).parents[1])
if HERE not in sys.path:
    sys.path.append(HERE)
