"""Inputs that are not local files: standard input and remote storage, copied to a local file within a limit.

Readers look at a file more than once: to detect its format, to check its quotation marks, to read it, and to find the lines of a
problem. `fetch_source` therefore copies any other input to a temporary file, which lives until the program ends. Messages name the
original (see `wisecrowd.io.problems.display_name`).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.io.compressed_files import CHUNK_BYTES, get_copy_limit
from wisecrowd.io.problems import name_copy, shorten_message
from wisecrowd.utils.memory import format_size

#: Path that stands for standard input.
STDIN = "-"
#: Addresses such as s3://bucket/votes.csv. pathlib makes s3:/bucket/votes.csv of it.
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>.*)", re.DOTALL)
#: Schemes of web pages, which ask for passwords, redirect and time out. Programs for downloads do that better.
_WEB_SCHEMES = ("http", "https", "ftp", "ftps")
#: Packages that fsspec needs for common kinds of storage.
_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "abfs": "adlfs", "abfss": "adlfs",
    "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko",
}  # fmt: skip
#: First bytes of files, and the suffix by which readers recognise them.
_SUFFIXES = {
    b"PAR1": ".parquet", b"PK\x03\x04": ".xlsx", b"\x1f\x8b": ".csv.gz", b"BZh": ".csv.bz2", b"\x28\xb5\x2f\xfd": ".csv.zst",
}  # fmt: skip
#: Copies that are kept. A command reads fewer files than that.
MAX_COPIES = 16

#: Copies by source: a key that changes with the content, and the local file.
_copies: dict[str, tuple[object, Path]] = {}


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is standard input or an address, and no local file.

    Parameters
    ----------
    path : path-like
        Path or address.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_remote("s3://bucket/votes.csv"), is_remote("-"), is_remote("votes.csv")
    (True, True, False)
    """
    text = os.fspath(path)
    return text == STDIN or (_ADDRESS.fullmatch(text) is not None and not Path(text).exists())


def fetch_source(path: str | os.PathLike[str]) -> Path:
    """Return a local file with the content of an input.

    Parameters
    ----------
    path : path-like
        Path, ``-`` for standard input, or the address of a file in remote storage that fsspec reads, such as ``s3://bucket/votes.csv``,
        ``gs://bucket/votes.csv`` or ``hf://datasets/owner/name/votes.parquet``.

    Returns
    -------
    Path
        The path itself, or a copy that lives until the program ends.

    Raises
    ------
    InputError
        If the input cannot be read, is a web page, or is larger than the free disk space allows.
    MissingExtra
        If fsspec is not installed.

    Examples
    --------
    >>> fetch_source("votes.csv")
    PosixPath('votes.csv')
    >>> fetch_source("https://example.org/votes.csv")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: https://example.org/votes.csv is a web address, and wisecrowd does not download web pages; ...
    """
    if not is_remote(path):
        return Path(path)
    text = os.fspath(path)
    if text == STDIN:
        return _copy_stdin()
    match = _ADDRESS.fullmatch(text)
    assert match is not None
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == "file":
        return Path(f"/{rest}")
    address = f"{scheme}://{rest}"
    if scheme in _WEB_SCHEMES:
        raise InputError(
            f"{address} is a web address, and wisecrowd does not download web pages; download the file first, for example: "
            f"curl -L -O {address}"
        )
    return _copy_remote(scheme, address)


def _copy_stdin() -> Path:
    """Copy standard input, or return the copy that was made before."""
    stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
    if stream is None or sys.stdin.closed:
        raise InputError("standard input is closed; pipe votes into the command, or name a file")
    if sys.stdin.isatty():
        raise UsageError(
            "standard input is a terminal; pipe votes into the command (cat votes.csv | …), or name a file"
        )
    if (copied := _find_copy(STDIN, id(stream))) is not None:
        return copied
    head: bytes = stream.read(max(map(len, _SUFFIXES)))
    suffix = next((suffix for magic, suffix in _SUFFIXES.items() if head.startswith(magic)), ".csv")

    def read(size: int, first: list[bytes] = [head]) -> bytes:  # noqa: B006  # the first bytes were read already
        return first.pop() if first and first[0] else stream.read(size)

    return _copy(STDIN, id(stream), f"stdin{suffix}", "standard input", read)


def _copy_remote(scheme: str, address: str) -> Path:
    """Copy a file from remote storage, or return an earlier copy if the file has not changed."""
    package = _PACKAGES.get(scheme)
    try:
        import fsspec
    except ImportError:
        also = f" (which also need {package})" if package else ""
        raise MissingExtra("remote", f"addresses such as {scheme}://{also}") from None

    name = PurePosixPath(address.partition("://")[2]).name
    try:
        storage, location = fsspec.core.url_to_fs(address)
        if storage.isdir(location):
            raise InputError(
                f"{address} is a folder in remote storage; name a file in it, or copy the folder to this machine"
            )
        key = storage.ukey(location)
        if (copied := _find_copy(address, key)) is not None:
            return copied
        with storage.open(location, "rb") as stream:
            return _copy(address, key, name or "votes", address, stream.read)
    except ImportError as error:
        advice = f"pip install {package}" if package else shorten_message(error)
        raise InputError(f"{scheme}:// addresses need a further package; install it with: {advice}") from None
    except FileNotFoundError:
        raise InputError(f"there is no file {address}; check the address") from None
    except InputError:
        raise
    except Exception as error:  # every kind of storage has exceptions of its own
        raise InputError(
            f"{address} cannot be read: {shorten_message(error) or type(error).__name__}; check the address and the credentials"
        ) from error


def _find_copy(source: str, key: object) -> Path | None:
    """Return the copy of a source, if there is one of the same content."""
    known_key, path = _copies.get(source, (None, None))
    return path if path is not None and known_key == key and path.exists() else None


def _copy(source: str, key: object, file_name: str, shown: str, read: Callable[[int], bytes]) -> Path:
    """Copy a stream to a file of its own folder, up to the limit."""
    folder = Path(tempfile.mkdtemp(dir=_make_folder()))
    limit, reason = get_copy_limit(folder)
    path = folder / file_name
    n_bytes = 0
    with path.open("wb") as file:
        while content := read(CHUNK_BYTES):
            n_bytes += len(content)
            if n_bytes > limit:
                file.close()
                path.unlink()
                raise InputError(f"{shown} has more than {format_size(limit)}, {reason}")
            file.write(content)
    while len(_copies) >= MAX_COPIES:
        oldest = next(iter(_copies))
        _copies.pop(oldest)[1].unlink(missing_ok=True)
    _copies[source] = key, path
    name_copy(path, shown)
    return path


@cache
def _make_folder() -> str:
    """Make the folder of copies, which is removed when the program ends."""
    import atexit
    import shutil

    folder = tempfile.mkdtemp(prefix="wisecrowd-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
