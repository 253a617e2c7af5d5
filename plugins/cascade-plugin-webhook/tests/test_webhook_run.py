"""A real run with the webhook: every event is posted once and in order, and the run is the same as without it."""

import json
from pathlib import Path

import pytest
from small_run import SPEC, child, contents
from webhook_receiver import receiver

from cascade_core.events import Events

TOKEN, PATH = "b3ar3r-t0k3n", "s3cr3t-path"
TRACKERS = (
    "trackers:\n  webhook: {url: {env: CASCADE_TEST_HOOK}, token: {file: ./token}, sign: {env: CASCADE_TEST_KEY}}\n"
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run without a tracker."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "spec.yaml").write_text(SPEC)
    assert child("none", folder / "spec.yaml", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASCADE_TEST_KEY", "k3y-0f-s1gns")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "spec.yaml").write_text(SPEC + TRACKERS)
    return tmp_path / "spec.yaml"


@pytest.mark.drill
def test_every_event_is_posted_once_in_order_and_the_run_is_the_same(
    spec: Path, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with receiver(500, "slam") as hook:
        monkeypatch.setenv("CASCADE_TEST_HOOK", f"{hook.url}/{PATH}")
        assert child("none", spec, folder) == 0
    events = Events(folder / "events.jsonl").read()
    assert hook.taken == events and {event["kind"] for event in events} >= {"run_start", "step", "eval", "run_end"}
    assert len({json.loads(body)["run"]["id"] for _, body, _ in hook.posts}) == 1
    assert contents(folder) == contents(bare)
    written = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    for secret in (TOKEN, PATH, "k3y-0f-s1gns", hook.url):
        assert secret.encode() not in written


@pytest.mark.drill
def test_a_run_killed_while_the_receiver_hung_is_posted_whole_under_one_id_when_it_is_gone_on_with(
    spec: Path, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with receiver("hang") as hook:
        monkeypatch.setenv("CASCADE_TEST_HOOK", hook.url)
        assert child("training-step", spec, folder) == -9
        assert child("none", spec, folder) == 0
    posts = [(json.loads(body), answer) for _, body, answer in hook.posts]
    assert posts[0][1] == "hang" and len({post["run"]["id"] for post, _ in posts}) == 1
    places = [(event["kind"], event["stage"], event.get("step"), event.get("benchmark")) for event in hook.taken]
    events = Events(folder / "events.jsonl").read()
    assert set(places) == {(e["kind"], e["stage"], e.get("step"), e.get("benchmark")) for e in events}
    assert contents(folder) == contents(bare)
