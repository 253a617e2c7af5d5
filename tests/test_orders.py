"""The experiment on the order of RLHF and instruction following: its specs, and what it draws."""

import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from orders import BENCHMARKS, ORDERS, plot, spec

from cascade_core.spec import check, load


@pytest.mark.parametrize("order", ORDERS.values(), ids="-".join)
def test_both_orders_are_specs_that_begin_alike(order: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "order.yaml"
    with path.open("w", encoding="utf-8") as out:
        YAML().dump(spec(order), out)
    loaded = load(path)
    assert check(loaded, path)
    assert [stage.name for stage in loaded.stages] == ["sft", "rm", "sft-2", *order]


def test_the_plot_has_a_line_for_each_seed_and_benchmark() -> None:
    after = {name: {key: {"value": 0.5} for key in BENCHMARKS} for name in ("sft-2", "rlhf", "if")}
    drawn = plot([{"order": order, "seed": seed, "after": after} for order in ORDERS for seed in (1, 2)])
    assert drawn.count("<polyline") == 2 * 2 * len(BENCHMARKS)
