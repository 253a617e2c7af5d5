"""A small OpenAI-compatible server for tests, run as a process of its own: `python endpoint_server.py FOLDER`.

It writes its port to FOLDER/port and one line per request to FOLDER/requests. What it answers is said by the prompt:
words before `|` are done one per try of that path, prompt and seed (`500,html|right` fails twice and then answers `right`).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1]) if __name__ == "__main__" else Path()
LOCK = threading.Lock()
TRIES: Counter[tuple[str, str, Any]] = Counter()
SLOW: Counter[str] = Counter()  # slow answers under way, by path


def message(text: str, api: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", **more.pop("choice", {})}
    choice |= {"text": text} if api == "completions" else {"message": {"role": "assistant", "content": text, **more}}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


ODD: dict[str, Any] = {
    "list": [1, 2],
    "nochoices": {"object": "chat.completion"},
    "number": {"choices": [{"message": {"content": 12}, "finish_reason": "stop"}]},
    "error200": {"error": {"message": "upstream is gone", "code": 502}},
    "filter": {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
    "abort": {"choices": [{"message": {"content": "ri"}, "finish_reason": "abort"}]},
    "nousage": {"choices": [{"message": {"content": "right"}, "finish_reason": "stop"}]},
    "oddusage": {"choices": [{"message": {"content": "right"}, "finish_reason": None}], "usage": "none"},
    "null": {"choices": [{"message": {"content": None}, "finish_reason": "stop"}], "usage": {}},
    "think": message("right", "chat", reasoning_content="so\n"),
    "reasoning": message("right", "chat", reasoning="so"),
    "thinkcut": message(None, "chat", reasoning_content="so", choice={"finish_reason": "length"}),  # type: ignore[arg-type]
    "cut": message("rig", "chat", choice={"finish_reason": "length"}),
    "surrogate": message("\ud800", "chat"),
}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = "chat" if self.path.endswith("/chat/completions") else "completions"
        text = asked["messages"][-1]["content"] if api == "chat" else asked["prompt"]
        script, _, right = text.partition("|")
        with LOCK:
            number = TRIES[self.path, text, asked.get("seed")]
            TRIES[self.path, text, asked.get("seed")] += 1
            line = {"path": self.path, "key": self.headers.get("Authorization"), "time": time.monotonic()}
            with (FOLDER / "requests").open("a") as log:
                log.write(json.dumps({**line, "asked": asked}) + "\n")
        words = [word for word in script.split(",") if word]
        word = words[number] if number < len(words) else ("" if not words or right else words[-1])
        self.act(word, right or script, api)

    def act(self, word: str, right: str, api: str) -> None:
        kind, _, value = word.partition(" ")
        if kind == "hang":
            time.sleep(30)
        elif kind == "half":
            self.reply(200, json.dumps(message(right, api)), cut=True)
        elif kind == "drop":
            self.close_connection = True
        elif kind == "html":
            self.reply(200, "<html><body>Bad gateway</body></html>", kind="text/html")
        elif kind == "empty":
            self.reply(200, "")
        elif kind == "deep":
            self.reply(200, "[" * 200_000)
        elif kind == "later":
            self.reply(429, '{"error": {"message": "slow down"}}', {"Retry-After": value})
        elif kind == "date":
            self.reply(503, "busy", {"Retry-After": formatdate(time.time() + 2, usegmt=True)})
        elif kind == "key":
            self.reply(401, json.dumps({"error": {"message": f"wrong key {self.headers['Authorization']}"}}))
        elif kind.isdigit():
            self.reply(int(kind), '{"error": {"message": "no"}}', {"Location": "http://localhost:1/"})
        elif kind in ODD:
            self.reply(200, json.dumps(ODD[kind]))
        elif kind == "slow":
            self.wait(float(value))
            self.reply(200, json.dumps(message(right, api)))
        else:
            self.reply(200, json.dumps(message(right, api)))

    def wait(self, seconds: float) -> None:
        """Sleeps, counted with those that sleep meanwhile; not any more when the answer is sent: the next may come then."""
        with LOCK:
            SLOW[self.path] += 1
            with (FOLDER / "slow").open("a") as log:
                log.write(json.dumps({"path": self.path, "busy": SLOW[self.path]}) + "\n")
        time.sleep(seconds)
        with LOCK:
            SLOW[self.path] -= 1

    def reply(
        self,
        status: int,
        text: str,
        headers: dict[str, str] | None = None,
        *,
        kind: str = "application/json",
        cut: bool = False,
    ) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut


class Server(ThreadingHTTPServer):
    """Many at once; a client that went away is nobody's trouble."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    part = FOLDER / "port.part"
    part.write_text(str(server.server_address[1]))
    part.rename(FOLDER / "port")
    server.serve_forever()
