from typing import Any


def NodeAffinitySchedulingStrategy(node: str, soft: bool) -> Any:
    return (node, soft)
