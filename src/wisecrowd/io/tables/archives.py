"""Zip files, read without being unpacked: no path in them leads anywhere, and none may grow without bound."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from wisecrowd.errors import InputError, some
from wisecrowd.io.tables import text as _text

#: Bytes that all files of an archive may have together, unpacked, and how much smaller than that they may be packed.
MOST_BYTES, MOST_FILES, MOST_PACKED = 1 << 31, 100_000, 200
#: A damaged archive makes zipfile stumble in many ways.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, LookupError, RuntimeError, EOFError, OSError,
)  # fmt: skip


def is_zip(path: Path) -> bool:
    """Whether a file begins like a zip."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:  # reading it will say why
        return False


def members(
    path: Path, suffixes: tuple[str, ...], *, only: bool = False, at_most: int | None = None
) -> list[tuple[str, str]]:
    """Names and texts of the files of some kinds in a zip; with ``only``, nothing if there are files of other kinds."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = _files(archive)
            wanted = [info for info in files if info.filename.lower().endswith(suffixes)]
            if only and len(wanted) < len(files):
                return []
            _refuse_bombs(wanted, len(files))
            return [(info.filename, _decoded(_unpacked(archive, info), info.filename)) for info in wanted[:at_most]]
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(_damaged(error)) from None


def why_no_export(path: Path) -> str:
    """What to say of a zip that no labelling tool is known by."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in _files(archive)]
    except _DAMAGE as error:
        return f"{path}: {_damaged(error)}"
    if not names:
        return f"{path} is a zip with nothing in it; export again"
    return (
        f"{path} is an archive, which is not read as an export of doccano (NAME.jsonl for each annotator) or CVAT "
        f"(annotations.xml): in it are {some(names)}. Of anything else, unpack it first, and give the file or folder that was in it"
    )


def is_clutter(name: str) -> bool:
    """Whether a file is what systems put beside those of people.

    >>> is_clutter("__MACOSX/._ann.jsonl"), is_clutter("../ann.jsonl")
    (True, False)
    """
    *folders, last = PurePosixPath(name).parts or ("",)
    return "__MACOSX" in folders or last.startswith(".") or last in ("Thumbs.db", "desktop.ini")


def _files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [info for info in archive.infolist() if not (info.filename.endswith("/") or is_clutter(info.filename))]


def _damaged(error: object) -> str:
    return f"it cannot be read as a zip: {error}; it may be damaged or cut off, so export or copy it again"


def _refuse_bombs(wanted: list[zipfile.ZipInfo], n_files: int) -> None:
    total = sum(info.file_size for info in wanted)
    packed = sum(info.compress_size for info in wanted)
    if n_files > MOST_FILES or total > MOST_BYTES or (total > 1 << 24 and total > MOST_PACKED * max(packed, 1)):
        raise InputError(
            f"{n_files:,} files of {total:,} bytes are packed into {packed:,} bytes in it, which no export would be; "
            "unpack it yourself if you trust it, and give the folder"
        )


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of one file, of which no more are read than it claims to have."""
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)
    if len(content) > info.file_size:
        raise InputError(f"{info.filename!r} is longer than the zip says; it is damaged, or made to do damage")
    return content


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {_text.not_utf8(error)}") from None
