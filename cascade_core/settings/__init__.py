"""The typed settings of a run: what `spec.yaml` says, checked; a module for each of its parts. `cascade_core.spec` reads the file.

Neutral words: every trainer translates them into its own flags. Unknown keys and impossible values are refused here;
what several keys must say together is `consistency.py`'s.
"""

from cascade_core.settings.engine import Engine
from cascade_core.settings.evaluation import Evaluation
from cascade_core.settings.model import InitModel, InitTokenizer, Model, Modes, home, is_path
from cascade_core.settings.sampling import Rollout, Sampling
from cascade_core.settings.scalars import NonNegative, Positive
from cascade_core.settings.scoring import OnRay, RayWorkers, Scoring
from cascade_core.settings.spec import Spec
from cascade_core.settings.stage import Advantage, Optim, Soft, Stage
from cascade_core.strict import Settings

__all__ = [
    "Advantage",
    "Engine",
    "Evaluation",
    "InitModel",
    "InitTokenizer",
    "Model",
    "Modes",
    "NonNegative",
    "OnRay",
    "Optim",
    "Positive",
    "RayWorkers",
    "Rollout",
    "Sampling",
    "Scoring",
    "Settings",
    "Soft",
    "Spec",
    "Stage",
    "home",
    "is_path",
]
