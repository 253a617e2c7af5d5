"""`serve.py SOCKET SLOTS LOG FAULT`: reads one JSON text per connection, answers with a value; only the standard library.

`right` is worth 1, `sleep S` too, S seconds later, and `meet N` once N of them are here at once (0 if that takes 20 s); `die` ends
the server; all else is worth 0. FAULT is `early` (it ends before
it serves), `mute` (it never serves) or `deaf` (it ignores SIGTERM).
"""

import json
import os
import signal
import socketserver
import sys
import threading
import time
from pathlib import Path

SOCKET, SLOTS, LOG, FAULT = sys.argv[1:]


def note(event: str) -> None:
    if LOG:
        with Path(LOG).open("a") as out:
            out.write(f"{event} {os.getpid()}\n")


class Meeting:
    """So many are here."""

    def __init__(self) -> None:
        self.count, self.changed = 0, threading.Condition()

    def met(self, wanted: int) -> bool:
        with self.changed:
            self.count += 1
            self.changed.notify_all()
            return self.changed.wait_for(lambda: self.count >= wanted, 20)


class Handler(socketserver.StreamRequestHandler):
    meeting = Meeting()
    places = threading.Semaphore(int(SLOTS))

    def handle(self) -> None:
        line = self.rfile.readline()
        if not line:
            return
        word, _, rest = json.loads(line).partition(" ")
        if word == "die":
            os._exit(9)
        with self.places:
            if word == "sleep":
                time.sleep(float(rest))
            good = self.meeting.met(int(rest)) if word == "meet" else word in ("right", "sleep")
            answer = {"value": float(good), "pid": os.getpid()}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


def leave(number: int, frame: object) -> None:
    note("stop")
    os._exit(0)


note("start")
signal.signal(signal.SIGTERM, signal.SIG_IGN if FAULT == "deaf" else leave)
if FAULT == "early":
    sys.exit("no port is free")
if FAULT == "mute":
    time.sleep(600)
Path(SOCKET).unlink(missing_ok=True)
Server(SOCKET, Handler).serve_forever()
