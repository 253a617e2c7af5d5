"""What the supervisor knows of its container's memory: the figures of both kinds of cgroup, and when it looks."""

from pathlib import Path

import pytest
from cascade_sandbox.inside import pressure

MIB = 1 << 20
LIMIT = 1024 * MIB


class Group:
    """Files as the kernel would show them."""

    def __init__(self, folder: Path, version: int, limit: str = str(LIMIT)) -> None:
        self.folder = folder if version == 2 else folder / "memory"
        self.folder.mkdir(exist_ok=True)
        self.current = "memory.current" if version == 2 else "memory.usage_in_bytes"
        self.prefix = "" if version == 2 else "total_"
        (self.folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).write_text(f"{limit}\n")
        self.use(20)

    def use(self, mib: int, cache: int = 0) -> None:
        """So much is used, and so much of it is a cache."""
        (self.folder / self.current).write_text(f"{mib * MIB}\n")
        stat = f"rss 5\n{self.prefix}active_file {cache * MIB // 2}\n{self.prefix}inactive_file {cache * MIB // 2}\n"
        (self.folder / "memory.stat").write_text(stat)


@pytest.fixture(params=[1, 2])
def group(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    kinds = [(kind[0].replace("/sys/fs/cgroup", str(tmp_path)), *kind[1:]) for kind in pressure.KINDS]
    monkeypatch.setattr(pressure, "KINDS", kinds)
    return Group(tmp_path, request.param)


def up(watch: pressure.Watch) -> bool:
    """What it says when it must look."""
    watch.until = 0.0
    return watch.is_up()


def test_a_run_that_leaves_less_than_an_eighth_must_end(group: Group) -> None:
    watch = pressure.Memory(True).watch(0)
    for used, expected in ((20, False), (800, False), (890, False), (900, True), (1024, True)):
        group.use(used)
        assert up(watch) is expected


def test_what_the_kernel_can_take_back_is_free(group: Group) -> None:
    group.use(1000, cache=500)
    assert not up(pressure.Memory(True).watch(0))


def test_what_the_supervisor_holds_itself_is_not_the_program_s(group: Group) -> None:
    watch = pressure.Memory(True).watch(900 * MIB)
    group.use(950)
    assert not up(watch)
    group.use(1060)
    assert up(watch)


def test_it_looks_again_before_what_is_free_can_be_filled(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(pressure.time, "monotonic", lambda: 100.0)
    watch = pressure.Memory(True).watch(0)
    assert watch.until == pytest.approx(100 + (896 - 20) * MIB / (8 << 30))
    group.use(895)
    assert not up(watch) and watch.until == pytest.approx(100 + pressure.SHORTEST)


def test_nothing_is_read_before_it_is_time(group: Group) -> None:
    watch = pressure.Memory(True).watch(0)
    group.use(1024)
    assert not watch.is_up()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limit", ["max", str((1 << 63) - 4096), ""])
def test_without_a_limit_nothing_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, limit: str
) -> None:
    kinds = [(kind[0].replace("/sys/fs/cgroup", str(tmp_path)), *kind[1:]) for kind in pressure.KINDS]
    monkeypatch.setattr(pressure, "KINDS", kinds)
    Group(tmp_path, version, limit)
    watch = pressure.Memory(True).watch(0)
    assert watch.until == float("inf") and not watch.is_up()


def test_outside_of_a_container_nothing_is_watched(group: Group) -> None:
    assert pressure.Memory(False).watch(0).until == float("inf")
