"""The server of `endpoint_server.py` in a process of its own: `from served import server` (a fixture)."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NUMBERS = count()  # each test has an address of its own, so that the server counts its tries alone
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class Server:
    """A server that runs: its address, and what it was asked."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def requests(self) -> list[dict[str, Any]]:
        """Every request so far: `path`, `key`, `time`, `asked` (its body)."""
        log = self.folder / "requests"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def most_at_once(self) -> int:
        """The most slow answers that were under way at once."""
        lines = [json.loads(line) for line in (self.folder / "slow").read_text().splitlines()]
        here = self.url.removesuffix("/v1").rpartition("/")[2]
        return max(line["busy"] for line in lines if line["path"].startswith(f"/{here}/"))

    def asked(self, prompt: str) -> list[dict[str, Any]]:
        """The requests of one prompt."""
        return [one for one in self.requests() if one["asked"]["messages"][-1]["content"] == prompt]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for a module's tests."""
    folder = tmp_path_factory.mktemp("server")
    script = Path(__file__).with_name("endpoint_server.py")
    running = subprocess.Popen([sys.executable, str(script), str(folder)])
    try:
        end = time.monotonic() + 30
        while not (folder / "port").exists():
            assert running.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        yield Server(folder, f"http://127.0.0.1:{(folder / 'port').read_text()}/v1")
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def server(process: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with nothing asked yet and no proxy in between."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    (process.folder / "requests").unlink(missing_ok=True)
    return Server(process.folder, process.url.replace("/v1", f"/{next(NUMBERS)}/v1"))
