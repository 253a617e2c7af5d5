"""Where tasks come from: rows of JSONL and Parquet files and of hub data sets, and the split that holds some of them out.

For prompt loaders of domains. A source is a path ending in `.jsonl`, `.ndjson` or `.parquet`, or anything that
`datasets.load_dataset` takes, written `name`, `name:split` or `name@configuration:split`. Rows are streamed as they are;
what they must hold is for the domain to say.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cascade_core import rows
from cascade_core.errors import UsageError

SUFFIXES = (".jsonl", ".ndjson", ".parquet")
HELD_OUT_ONE_IN = 5


def read(source: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a source, in order.

    Raises:
        UsageError: there is no such file, a library that it needs is not installed, or the data set cannot be loaded.
        RowError: a line of a JSONL file is no JSON object; names file and line.
    """
    path = Path(source)
    if path.suffix in SUFFIXES and not path.is_file():
        raise UsageError(f"no file {source}")
    if path.suffix == ".parquet":
        return _parquet(path)
    return rows.read(path) if path.suffix in SUFFIXES else _hub(source)


def is_held_out(text: str) -> bool:
    """Whether a prompt belongs to the test split: its CRC-32 is a multiple of five.

    It depends on nothing but the text: the same in every run, whatever file or generator the prompt came from.

    >>> [word for word in ("one", "two", "three", "four", "five", "six") if is_held_out(word)]
    ['one', 'five']
    """
    return zlib.crc32(_bytes(text)) % HELD_OUT_ONE_IN == 0


def digest(text: str) -> str:
    """A name for a task that has none: 16 hexadecimal digits, the same in every run."""
    return hashlib.sha256(_bytes(text)).hexdigest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-untyped]
    except ImportError as cause:
        raise UsageError(f"{path} needs pyarrow: pip install pyarrow") from cause
    for batch in parquet.ParquetFile(path).iter_batches():
        yield from batch.to_pylist()


def _hub(source: str) -> Iterator[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as cause:
        raise UsageError(f"data set {source!r} needs the library datasets: pip install datasets") from cause
    name, _, split = source.partition(":")
    name, _, configuration = name.partition("@")
    try:
        yield from datasets.load_dataset(name, configuration or None, split=split or "train")
    except (OSError, ValueError) as cause:
        raise UsageError(f"cannot load data set {source!r}: {str(cause).splitlines()[0]}") from cause
