"""Zip files, read in memory: paths in them are never used for writing, and their size is bounded."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.text_files import encoding_error

#: Bytes that all files of an archive may have together. Exports are far smaller.
MAX_UNPACKED_BYTES = 1 << 31
#: Files that an archive may have.
MAX_FILES = 100_000
#: Ratio of unpacked to packed bytes above which an archive is refused as a zip bomb.
MAX_COMPRESSION_RATIO = 200
#: Unpacked bytes up to which the ratio is not checked.
_RATIO_MIN_BYTES = 1 << 24
#: Errors that `zipfile` raises for damaged archives.
_DAMAGE_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, LookupError, RuntimeError, EOFError, OSError,
)  # fmt: skip


def is_zip(path: Path) -> bool:
    """Return whether a file is a zip file.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    bool
        Whether the file starts as zip files do.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:  # the reader reports why
        return False


def read_zip_texts(
    path: Path, suffixes: tuple[str, ...], *, only_these: bool = False, max_files: int | None = None
) -> list[tuple[str, str]]:
    """Read the text files in a zip file.

    Parameters
    ----------
    path : Path
        Zip file.
    suffixes : tuple of str
        Suffixes of the files to read.
    only_these : bool, default=False
        Return nothing if there are files with other suffixes.
    max_files : int, optional
        Read the first files only.

    Returns
    -------
    list of (str, str)
        Names and texts.

    Raises
    ------
    InputError
        If the archive is damaged, too large, or not text.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = _list_files(archive)
            requested = [info for info in files if info.filename.lower().endswith(suffixes)]
            if only_these and len(requested) < len(files):
                return []
            _check_size(requested, len(files))
            return [(info.filename, _decode(_unpack(archive, info), info.filename)) for info in requested[:max_files]]
    except InputError:
        raise
    except _DAMAGE_ERRORS as error:
        raise InputError(_describe_damage(error)) from None


def describe_unknown_zip(path: Path) -> str:
    """Return the message for a zip file that is not the export of a known tool.

    Parameters
    ----------
    path : Path
        Zip file.

    Returns
    -------
    str
        Error message with advice.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in _list_files(archive)]
    except _DAMAGE_ERRORS as error:
        return f"{path}: {_describe_damage(error)}"
    if not names:
        return f"{path} is an empty zip file; export again"
    return (
        f"{path} is an archive, which is not read as an export of doccano (NAME.jsonl for each annotator) or CVAT "
        f"(annotations.xml): it contains {preview(names)}. Unpack any other archive first, and give the file or folder in it"
    )


def is_system_file(name: str) -> bool:
    """Return whether a file was added by an operating system, such as ``.DS_Store``.

    Parameters
    ----------
    name : str
        Path within a folder or archive.

    Returns
    -------
    bool
        Whether the file is hidden or known as a system file.

    Examples
    --------
    >>> is_system_file("__MACOSX/._ann.jsonl"), is_system_file("../ann.jsonl")
    (True, False)
    """
    *folders, last = PurePosixPath(name).parts or ("",)
    return "__MACOSX" in folders or last.startswith(".") or last in ("Thumbs.db", "desktop.ini")


def _list_files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [info for info in archive.infolist() if not (info.filename.endswith("/") or is_system_file(info.filename))]


def _describe_damage(error: object) -> str:
    return f"it cannot be read as a zip: {error}; it may be damaged or cut off, so export or copy it again"


def _check_size(files: list[zipfile.ZipInfo], n_files: int) -> None:
    """Raise an error if an archive looks like a zip bomb."""
    unpacked = sum(info.file_size for info in files)
    packed = sum(info.compress_size for info in files)
    is_bomb = unpacked > _RATIO_MIN_BYTES and unpacked > MAX_COMPRESSION_RATIO * max(packed, 1)
    if n_files > MAX_FILES or unpacked > MAX_UNPACKED_BYTES or is_bomb:
        raise InputError(
            f"{n_files:,} files of {unpacked:,} bytes are packed into {packed:,} bytes in it, which is not plausible for an "
            "export; if you trust it, unpack it yourself and give the folder"
        )


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of one file, reading no more than the archive declares."""
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)
    if len(content) > info.file_size:
        raise InputError(f"{info.filename!r} is longer than the zip declares; the zip is damaged or malicious")
    return content


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {encoding_error(error)}") from None
