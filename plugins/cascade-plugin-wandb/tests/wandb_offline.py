"""Reads an offline W&B run: `python wandb_offline.py FOLDER` prints what is in its one transaction log, as JSON.

The log is LevelDB's: after 7 bytes of header, blocks of 32 KiB that hold chunks of records (CRC, length, kind), each record
a message of wandb's own protocol. Needs wandb's package; runs where that is installed.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER = 32_768, 7
WHOLE, LAST = 1, 4


def records(data: bytes) -> Iterator[bytes]:
    place, record = HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + HEADER])
        record += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (WHOLE, LAST):
            yield record
            record = b""


def read(path: Path) -> dict[str, Any]:
    from wandb.proto import wandb_internal_pb2

    found: dict[str, Any] = {"history": [], "summary": {}, "runs": [], "exit": None}
    for data in records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            found["history"].append(_items(record.history.item))
        elif kind == "summary":
            found["summary"] |= _items(record.summary.update)
        elif kind == "run":
            run = record.run
            config = {item.key: json.loads(item.value_json) for item in run.config.update}
            found["runs"].append({"id": run.run_id, "project": run.project, "name": run.display_name, "config": config})
        elif kind == "exit":
            found["exit"] = record.exit.exit_code
    return found


def _items(items: Any) -> dict[str, Any]:
    return {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


if __name__ == "__main__":
    (path,) = Path(sys.argv[1]).rglob("run-*.wandb")
    print(json.dumps(read(path)))
