"""What reads third-party archives, here and for the measures, is importable by the drills."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "benchmarks"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
