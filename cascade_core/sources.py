"""Where tasks come from: rows of JSONL and Parquet files and of hub data sets, and the split that holds some of them out.

For prompt loaders of domains. A source is a path ending in `.jsonl`, `.ndjson` or `.parquet`, or anything that
`datasets.load_dataset` takes, written `name`, `name:split` or `name@configuration:split`. Rows are streamed as they are;
what they must hold is for the domain to say.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from cascade_core import rows
from cascade_core.errors import RowError, UsageError

OnBadRow = Literal["fail", "skip"]
"""What becomes of a row that cannot be used: it stops the loading, or it is left out and counted."""

Made = TypeVar("Made")

SUFFIXES = (".jsonl", ".ndjson", ".parquet")
HELD_OUT_ONE_IN = 5


_log = logging.getLogger(__name__)
_told: set[tuple[str, int]] = set()  # a source is loaded many times in a run, and told to have so many bad rows once


def read(source: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a source, in order.

    Raises:
        UsageError: there is no such file, a library that it needs is not installed, or the data set cannot be loaded.
        RowError: a line of a JSONL file is no JSON object; names file and line.
    """
    return _raising(_numbered(source))


def load(source: str, make: Callable[[Mapping[str, Any], str], Made], on_bad_row: OnBadRow = "fail") -> Iterator[Made]:
    """What `make` makes of each row and its place (`file:line`), in order.

    A bad row is a broken line, or one for which `make` raises `UsageError`. With `"skip"` it is left out, and the log says
    once, when reading ends, how many there were, and where and what the first was.

    Raises:
        UsageError: as `read`; a bad row with `"fail"`; no row that can be used with `"skip"`.
    """
    if on_bad_row not in ("fail", "skip"):
        raise UsageError(f"'on_bad_row' must be 'fail' or 'skip', found {on_bad_row!r}")
    made, skipped, first = 0, 0, ""
    try:
        for number, row in _numbered(source):
            try:
                if isinstance(row, RowError):
                    raise row
                one = make(row, f"{source}:{number}")
            except UsageError as cause:
                if on_bad_row == "fail":
                    raise
                skipped, first = skipped + 1, first or str(cause)
                continue
            made += 1
            yield one
    finally:  # also where whoever calls has enough
        _tell(source, made, skipped, first)
    if skipped and not made:
        raise UsageError(f"no row of {source} can be used, {skipped} are bad, the first: {first}")


def _tell(source: str, made: int, skipped: int, first: str) -> None:
    if skipped and (source, skipped) not in _told:
        _told.add((source, skipped))
        _log.warning("%s: %d bad of %d rows skipped, the first: %s", source, skipped, skipped + made, first)


def _raising(found: Iterator[tuple[int, Mapping[str, Any] | RowError]]) -> Iterator[Mapping[str, Any]]:
    for _, row in found:
        if isinstance(row, RowError):
            raise row
        yield row


def _numbered(source: str) -> Iterator[tuple[int, Mapping[str, Any] | RowError]]:
    """The rows of a source with their numbers: of lines in JSONL files, else of rows."""
    path = Path(source)
    if path.suffix in SUFFIXES and not path.is_file():
        raise UsageError(f"no file {source}")
    if path.suffix == ".parquet":
        return enumerate(_parquet(path), 1)
    return rows.numbered(path) if path.suffix in SUFFIXES else enumerate(_hub(source), 1)


def is_held_out(text: str) -> bool:
    """Whether a prompt belongs to the test split: its CRC-32 is a multiple of five.

    It depends on nothing but the text: the same in every run, whatever file or generator the prompt came from.

    Examples:
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
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (OSError, ValueError) as cause:  # pyarrow's own errors are among them
        raise UsageError(f"{path} cannot be read as Parquet: {str(cause).splitlines()[0]}") from cause


def _hub(source: str) -> Iterator[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as cause:
        raise UsageError(f"data set {source!r} needs the library datasets: pip install datasets") from cause
    name, _, split = source.partition(":")
    name, _, configuration = name.partition("@")
    try:
        yield from datasets.load_dataset(name, configuration or None, split=split or "train")
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as cause:
        where = "" if Path(name).exists() else "nothing of that name is here, and the hub gives none: "
        raise UsageError(f"cannot load data set {source!r}: {where}{str(cause).splitlines()[0]}") from cause
