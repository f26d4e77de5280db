"""Atomic writing of files: an interrupted run leaves no partial file behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wisecrowd.errors import DiskFull, is_disk_full


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        File to write. Missing parent folders are created.

    Yields
    ------
    Path
        Temporary file in the same folder.

    Raises
    ------
    DiskFull
        If there is no room for the file.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "a.txt") as partial:
    ...     _ = partial.write_text("complete")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The temporary file has the same suffix because writers such as numpy and pandas choose the format by it.
    handle, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix="".join(target.suffixes), dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        # mkstemp creates private files; the result gets the user's default permissions.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        if is_disk_full(error) and not isinstance(error, DiskFull):  # a nested DiskFull names its own file
            raise DiskFull(target) from error
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically, in UTF-8.

    Parameters
    ----------
    path : path-like
        File to write.
    text : str
        Contents.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_text(path, "grüße")
    >>> path.read_text(encoding="utf-8")
    'grüße'
    """
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write indented JSON atomically, in UTF-8.

    Parameters
    ----------
    path : path-like
        File to write.
    value : object
        Anything that JSON can represent; NaN is an error.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "run.json"
    >>> write_json(path, {"seed": 0})
    >>> read_json(path)
    {'seed': 0}
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A lone surrogate, as in a file name of another encoding, is no UTF-8, but JSON can escape it.
    text = re.sub("[\ud800-\udfff]", lambda surrogate: json.dumps(surrogate.group())[1:-1], text)
    write_text(path, text + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file in UTF-8.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    object
        Contents.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "x.json"
    >>> write_json(path, [1, 2])
    >>> read_json(path)
    [1, 2]
    """
    return json.loads(Path(path).read_text(encoding="utf-8"))
