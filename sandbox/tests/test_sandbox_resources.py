"""The sandboxes as resources: Docker by default, the weaker one where it is named, and neither in the place of the other."""

from pathlib import Path

import pytest
from cascade_sandbox import Input, Program, connect
from cascade_sandbox.engine import Engine

from cascade_core.errors import ResourceError, SpecError
from cascade_core.provision import choose, running


def test_docker_is_what_is_taken_where_nothing_is_said() -> None:
    assert choose("sandbox", {}).name == "docker"


def test_without_an_engine_nothing_is_started_in_its_place(tmp_path: Path) -> None:
    there_is_none = choose("sandbox", {"sandbox": {"docker": {"engine": f"unix://{tmp_path}/docker.sock"}}})
    with pytest.raises(ResourceError, match="docker.* cannot be started: .*`cascade sandbox doctor` says"):
        running([there_is_none]).__enter__()


def test_an_image_that_is_not_there_is_never_pulled_and_told_with_its_command(docker_engine: Engine) -> None:
    absent = choose("sandbox", {"sandbox": {"docker": {"image": "no-such-image-of-ours"}}})
    with pytest.raises(ResourceError, match="cascade sandbox build.*`cascade sandbox doctor` says"):
        running([absent]).__enter__()


def test_the_weaker_one_runs_programs_where_it_is_named() -> None:
    with running([choose("sandbox", {"sandbox": "process"})]) as found, connect(found.addresses["sandbox"]) as sandbox:
        (result,) = sandbox.run(Program("print(int(input()) + 1)"), [Input(b"1\n")])
    assert result.stdout == b"2\n"


def test_several_clients_reach_the_containers_of_one_run(docker_engine: Engine) -> None:
    few = choose("sandbox", {"sandbox": {"docker": {"slots": 1}}})
    with running([few]) as found:
        address = found.addresses["sandbox"]
        for _ in range(2):
            with connect(address) as sandbox:
                (result,) = sandbox.run(Program("print(int(input()) + 1)"), [Input(b"1\n")])
            assert result.stdout == b"2\n"
        found.check()
    assert not Path(address.removeprefix("unix:")).exists()


def test_which_sandbox_it_was_is_pinned_and_how_many_places_it_had_is_not() -> None:
    said = {"docker": {"slots": 3, "memory_mb": 1024}}
    assert choose("sandbox", {"sandbox": said}).pinned == {"docker": {"memory_mb": 1024}}
    assert choose("sandbox", {"sandbox": "process"}).pinned == {"process": {}}


def test_the_options_are_checked_before_anything_starts() -> None:
    with pytest.raises(SpecError, match="unknown option 'slot', did you mean 'slots'"):
        choose("sandbox", {"sandbox": {"docker": {"slot": 3}}})
