"""Compressed input, read within limits: a file of a few megabytes can unpack to many gigabytes.

Everything that is compressed or declares its own size is checked here: text (gzip, bzip2, zstd), zip files, arrays (npz) and
Parquet. By default, data may be 50 times as large as its file and take a quarter of the free memory. `limit_unpacked` sets another
limit.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wisecrowd.errors import InputError
from wisecrowd.io.problems import check_file_type
from wisecrowd.utils.memory import format_size, get_free_memory, parse_size

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Unpacked bytes per byte of the file. Votes as text have 5 to 20; gzip can reach 1,000, other formats far more. A table takes up
#: to four times the memory of its text, so that a file of 8 MB takes 2 GB at most.
MAX_RATIO = 50
#: Unpacked bytes up to which the ratio does not matter, because they are harmless.
MIN_LIMIT_BYTES = 1 << 26
#: Unpacked bytes that may be in memory before a file turns out to be too large. Larger files are unpacked twice.
SAFE_BYTES = 1 << 28
#: Bytes that are unpacked at a time.
CHUNK_BYTES = 1 << 22
#: Share of the free memory that unpacked data may take, because a table takes up to four times the memory of its text.
MEMORY_SHARE = 0.25
#: Share of the free disk space that a copy of standard input or of a remote file may take.
DISK_SHARE = 0.5
#: Suffixes of compressed text.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
#: First bytes of compressed files.
_MAGIC = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}
#: Bytes that tell text from compressed data, and characters that text does not have.
_HEAD_BYTES, _CONTROL_CHARACTERS = 512, re.compile(rb"[\x00-\x08\x0e-\x1f]")

_chosen_limit: ContextVar[int | None] = ContextVar("max_unpacked", default=None)


@contextlib.contextmanager
def limit_unpacked(max_unpacked: int | str | None) -> Iterator[None]:
    """Set the limit of unpacked bytes for all files that are read in the block.

    Parameters
    ----------
    max_unpacked : int, str or None
        Bytes that a file may unpack to, such as ``"16GB"``. It replaces both default limits. None changes nothing.

    Raises
    ------
    UsageError
        If it is not a size.

    Examples
    --------
    >>> with limit_unpacked("16GB"):
    ...     get_unpacked_limit(1)
    16000000000
    """
    if max_unpacked is None:
        yield
        return
    token = _chosen_limit.set(parse_size(max_unpacked, "max_unpacked"))
    try:
        yield
    finally:
        _chosen_limit.reset(token)


def get_unpacked_limit(packed_bytes: int, *, in_memory: bool = True) -> int:
    """Return the number of bytes that a file may unpack to.

    Parameters
    ----------
    packed_bytes : int
        Size of the file.
    in_memory : bool, default=True
        Whether all of it is in memory at once.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> get_unpacked_limit(1_000_000, in_memory=False)
    67108864
    """
    chosen = _chosen_limit.get()
    if chosen is not None:
        return chosen
    limit = max(MAX_RATIO * packed_bytes, MIN_LIMIT_BYTES)
    return min(limit, round(MEMORY_SHARE * get_free_memory())) if in_memory else limit


def get_copy_limit(folder: Path) -> tuple[int, str]:
    """Return the number of bytes that may be copied to a folder, and the reason with advice.

    Parameters
    ----------
    folder : Path
        Folder of the copy.

    Returns
    -------
    limit : int
        Bytes.
    reason : str
        End of a message about a larger file.

    Examples
    --------
    >>> with limit_unpacked(10):
    ...     get_copy_limit(Path())
    (10, 'more than max_unpacked allows; if you trust it, raise max_unpacked (--max-unpacked)')
    """
    chosen = _chosen_limit.get()
    if chosen is not None:
        return chosen, "more than max_unpacked allows; if you trust it, raise max_unpacked (--max-unpacked)"
    limit = round(DISK_SHARE * shutil.disk_usage(folder).free)
    return limit, f"half of the free disk space for temporary files ({folder.parent}); copy it to a larger disk first"


def check_unpacked_size(n_bytes: int, packed_bytes: int, subject: str = "it", *, in_memory: bool = True) -> None:
    """Raise an error if data that a file declares exceeds the limit. Nothing needs to be allocated before.

    Parameters
    ----------
    n_bytes : int
        Declared size.
    packed_bytes : int
        Size of the file.
    subject : str, default="it"
        Subject of the message.
    in_memory : bool, default=True
        Whether all of it is in memory at once.

    Raises
    ------
    InputError
        If the data is too large.

    Examples
    --------
    >>> check_unpacked_size(10**12, 1000, "the array 'X'", in_memory=False)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the array 'X' unpacks to 1.0 TB, too much for a file of 1.0 KB; if you trust it, allow ...
    """
    limit = get_unpacked_limit(packed_bytes, in_memory=in_memory)
    if n_bytes > limit:
        raise InputError(f"{subject} unpacks to {format_size(n_bytes)}, {_describe_limit(limit, packed_bytes)}")


def _describe_limit(limit: int, packed_bytes: int) -> str:
    if _chosen_limit.get() is not None:
        return (
            f"more than max_unpacked, {format_size(limit)}; if you trust the file, raise max_unpacked (--max-unpacked)"
        )
    fits_ratio = limit >= max(MAX_RATIO * packed_bytes, MIN_LIMIT_BYTES)
    reason = f"too much for a file of {format_size(packed_bytes)}" if fits_ratio else "too much for the free memory"
    return f'{reason}; if you trust it, allow more, for example max_unpacked="16GB" (--max-unpacked 16GB)'


def open_input(path: Path, *, in_memory: bool = True) -> Any:
    """Open a file for reading bytes, decompressed if its suffix says so.

    Parameters
    ----------
    path : Path
        File.
    in_memory : bool, default=True
        Whether all of it is in memory at once.

    Returns
    -------
    file
        Binary file. Reading more than the limit from a compressed file raises an `InputError`.

    Raises
    ------
    InputError
        If the file cannot be opened.

    Examples
    --------
    >>> import gzip
    >>> _ = Path("votes.csv.gz").write_bytes(gzip.compress(b"task,worker,label"))
    >>> with open_input(Path("votes.csv.gz")) as file:
    ...     file.read()
    b'task,worker,label'
    """
    compression = COMPRESSIONS.get(path.suffix.lower())
    check_file_type(path)
    try:
        if compression is not None:
            _check_is_compressed(path, compression)
        stream = pa.input_stream(str(path), compression=compression)
        return stream if compression is None else _BoundedFile(stream, path.stat().st_size, in_memory)
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None


def _check_is_compressed(path: Path, compression: str) -> None:
    """Raise an error if the suffix of a file promises a compression that the file does not have."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head or head.startswith(_MAGIC[compression]):
        return
    actual = next((name for name, magic in _MAGIC.items() if head.startswith(magic)), None)
    if actual is not None:
        raise InputError(
            f"its name ends in {path.suffix}, but it is compressed by {actual}; rename it to "
            f"{path.stem}{next(suffix for suffix, name in COMPRESSIONS.items() if name == actual)}"
        )
    if not _CONTROL_CHARACTERS.search(head):
        raise InputError(
            f"its name ends in {path.suffix}, but it is not compressed; rename it to {path.stem}, or compress it"
        )


def check_compressed_file(path: Path) -> None:
    """Raise an error if a compressed file exceeds the limit, before it is read into memory.

    Parameters
    ----------
    path : Path
        File. Nothing is done if it is not compressed, or so small that it can be read up to the limit.

    Raises
    ------
    InputError
        If the file unpacks to more than the limit.

    Examples
    --------
    >>> import gzip
    >>> _ = Path("votes.csv.gz").write_bytes(gzip.compress(b"task,worker,label"))
    >>> check_compressed_file(Path("votes.csv.gz"))
    """
    if path.suffix.lower() not in COMPRESSIONS or get_unpacked_limit(path.stat().st_size) <= SAFE_BYTES:
        return
    with open_input(path) as file:
        while file.read(CHUNK_BYTES):
            pass


class _BoundedFile(io.RawIOBase):
    """Decompressed file that ends in an error when it exceeds the limit.

    The limit is read when the file is opened, because libraries read from threads of their own.
    """

    def __init__(self, stream: Any, packed_bytes: int, in_memory: bool) -> None:
        self.stream, self.packed_bytes = stream, packed_bytes
        self.limit = get_unpacked_limit(packed_bytes, in_memory=in_memory)
        is_chosen = _chosen_limit.get() is not None  # the description then names the limit itself
        self.excess = "" if is_chosen else f"more than {format_size(self.limit)}, "
        self.excess += _describe_limit(self.limit, packed_bytes)
        self.n_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read up to ``size`` bytes, or all."""
        if size is None or size < 0:  # in steps, because the library allocates what it is asked for
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        # One byte beyond the limit is enough to know.
        rest = self.limit + 1 - self.n_bytes
        try:
            content: bytes = self.stream.read(min(size, rest))
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"it cannot be decompressed: {error}; it may be damaged or cut off") from None
        self.n_bytes += len(content)
        if self.n_bytes > self.limit:
            raise InputError(f"it unpacks to {self.excess}")
        return content

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read into a buffer, as `io.BufferedReader` and `io.TextIOWrapper` do."""
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self.stream.close()
        super().close()
