"""Other people's reward functions in, and our verdicts out to other people's trainers.

`incoming.py` makes a `Score` of whatever a stranger's reward function returns. `trl.py` is a reward function for TRL, `verl.py`
`compute_score` for verl, both over the rows of `outgoing.py`. Nothing here imports a trainer.
"""

from cascade_core.adapters.incoming import ABSTAINED, as_score, reward_function
from cascade_core.adapters.trl import trl_reward, trl_rows
from cascade_core.adapters.verl import VerlReward, verl_rows

__all__ = ["ABSTAINED", "VerlReward", "as_score", "reward_function", "trl_reward", "trl_rows", "verl_rows"]
