"""A headless Chromium for tests, driven through the DevTools protocol over a pipe: no driver, no port, nothing to install.

Chromium reads commands from its file descriptor 3 and answers on 4, JSON objects that end with NUL (`--remote-debugging-pipe`).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds for one answer: the machine may be busy."""


def find() -> str | None:
    """The path of a Chromium, or `None`."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. What it writes to its console, exceptions of scripts and refusals by a policy are collected in `complaints`."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        self._to, self._from = ours[1], theirs[0]
        # The shell puts the two pipes where Chromium looks for them; setsid-like, so that all its processes end together.
        line = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--disable-component-update", "--mute-audio", "--hide-scrollbars",
                 f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *flags], pass_fds=(ours[0], theirs[1]), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self._ids, self._rest, self._session = itertools.count(1), b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        os.close(self._from)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        message = self._ask(method, **params)
        assert "error" not in message, (method, message["error"])
        return dict(message["result"])

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        told = {"id": number, "method": method, "params": params} | (
            {"sessionId": self._session} if self._session else {}
        )
        os.write(self._to, json.dumps(told).encode() + b"\0")
        while (message := self._read()).get("id") != number:
            self.events.append(message)
        return message

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], max(0.0, end - time.monotonic()))[0], "chromium does not answer"
            more = os.read(self._from, 1 << 20)
            assert more, "chromium has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def open(
        self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True
    ) -> None:
        """Shows an address, in a window of that size, and waits until it is loaded."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, method: str) -> None:
        """Waits for an event that has come or will come."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until an expression is true in the page; while a page is being replaced by another none is."""
        end = time.monotonic() + PATIENCE / 2
        while time.monotonic() < end:
            told = self._ask("Runtime.evaluate", expression=f"!!({expression})", returnByValue=True)
            if told.get("result", {}).get("result", {}).get("value") is True:
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}")

    def press(self, *keys: str) -> None:
        """Keys one after the other, by their names."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, " ": 32}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            known = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **known)
            self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def picture(self, path: Path) -> bytes:
        """A screenshot of the whole page."""
        data = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        path.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    @property
    def complaints(self) -> list[str]:
        """Exceptions, errors and refusals since `open`."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for since `open`."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
