"""The entry point of the built-in trainers."""

from cascade_core.hookspecs import hookimpl
from cascade_core.trainers import Trainer
from cascade_core.trainers.openrlhf import OpenRlhfTrainer
from cascade_core.trainers.trl import TrlTrainer


@hookimpl
def cascade_trainers() -> list[type[Trainer]]:
    return [TrlTrainer, OpenRlhfTrainer]
