"""Zip files, read in memory: paths in them are never used for writing, and their size is bounded."""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pyarrow as pa

from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import check_unpacked_size
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.text_files import HEAD_BYTES, encoding_error

#: Files that an archive may have.
MAX_FILES = 100_000
#: Bytes of the header of a file in an archive, without its name.
_HEADER_BYTES = 30
#: Zstandard in zip files, which `zipfile` reads from Python 3.14 on.
_ZSTANDARD = 93
#: Compressions that tools use. Others cannot be unpacked step by step.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)
#: Bit of an encrypted file.
_ENCRYPTED = 0x1
#: Errors that `zipfile` raises for damaged archives.
_DAMAGE_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, LookupError, RuntimeError, EOFError, OSError, OverflowError,
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


class Archive:
    """Zip file whose content is read within limits.

    Parameters
    ----------
    archive : zipfile.ZipFile
        Open zip file.
    packed_bytes : int
        Size of the zip file.

    Attributes
    ----------
    files : list of zipfile.ZipInfo
        Files, without folders and files of operating systems.
    """

    def __init__(self, archive: zipfile.ZipFile, packed_bytes: int) -> None:
        self.archive, self.packed_bytes = archive, packed_bytes
        entries = archive.infolist()
        if len(entries) > MAX_FILES:
            raise InputError(
                f"there are {len(entries):,} files in this zip, but at most {MAX_FILES:,} are read; split it"
            )
        _check_disjoint(entries)
        self.files = [
            entry for entry in entries if not (entry.filename.endswith("/") or is_system_file(entry.filename))
        ]

    def read(self, files: Sequence[zipfile.ZipInfo]) -> Iterator[bytes]:
        """Yield the content of some files.

        Parameters
        ----------
        files : sequence of zipfile.ZipInfo
            Files.

        Yields
        ------
        bytes
            Content.

        Raises
        ------
        InputError
            If the archive is damaged, or the files are too large together.
        """
        check_unpacked_size(sum(info.file_size for info in files), self.packed_bytes)
        for info in files:
            yield self._read_file(info, info.file_size + 1)

    def read_head(self, info: zipfile.ZipInfo) -> bytes:
        """Read the beginning of a file.

        Parameters
        ----------
        info : zipfile.ZipInfo
            File.

        Returns
        -------
        bytes
            First bytes.
        """
        return self._read_file(info, HEAD_BYTES)

    def _read_file(self, info: zipfile.ZipInfo, max_bytes: int) -> bytes:
        name = preview([info.filename])
        if info.compress_type not in _COMPRESSIONS:
            raise InputError(
                f"{name} is compressed by method {info.compress_type}, which is not read; zip it with deflate"
            )
        if info.flag_bits & _ENCRYPTED:
            raise InputError(f"{name} is encrypted; unpack it yourself and give the folder")
        if info.compress_type == _ZSTANDARD:
            content = self._read_zstandard(info, max_bytes)
        else:
            with self.archive.open(info) as file:
                content = file.read(max_bytes)  # no more than the archive declares
        if len(content) < min(max_bytes, info.file_size):
            raise InputError(f"{name} is shorter than the zip declares; the zip is damaged, export it again")
        if len(content) > info.file_size:
            raise InputError(
                f"{name} is longer than the zip declares; the zip is damaged or malicious, export it again"
            )
        return content

    def _read_zstandard(self, info: zipfile.ZipInfo, max_bytes: int) -> bytes:
        stream = self.archive.fp
        assert stream is not None
        stream.seek(info.header_offset)
        header = stream.read(_HEADER_BYTES)
        if header[:4] != b"PK\x03\x04":
            raise InputError(
                f"{preview([info.filename])} is not where the zip says; the zip is damaged, export it again"
            )
        n_name, n_extra = struct.unpack("<HH", header[26:30])
        stream.seek(info.header_offset + _HEADER_BYTES + n_name + n_extra)
        packed = stream.read(info.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as file:
            content = bytes(file.read(max_bytes))
        if len(content) == info.file_size and zlib.crc32(content) != info.CRC:
            raise InputError(f"{preview([info.filename])} is damaged: its checksum differs; export or copy it again")
        return content


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[Archive]:
    """Open a zip file.

    Parameters
    ----------
    path : Path
        Zip file.

    Yields
    ------
    Archive
        The open file.

    Raises
    ------
    InputError
        If it is damaged, or files in it overlap.

    Examples
    --------
    >>> with zipfile.ZipFile("export.zip", "w") as file:
    ...     file.writestr("ann.jsonl", "{}")
    >>> with open_zip(Path("export.zip")) as archive:
    ...     list(archive.read(archive.files))
    [b'{}']
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield Archive(archive, path.stat().st_size)
    except InputError:
        raise
    except _DAMAGE_ERRORS as error:
        raise InputError(
            f"it cannot be read as a zip: {shorten_message(error)}; it may be damaged or cut off, so export or copy it again"
        ) from None


def read_zip_texts(path: Path, suffixes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read the text files in a zip file.

    Parameters
    ----------
    path : Path
        Zip file.
    suffixes : tuple of str
        Suffixes of the files to read.

    Returns
    -------
    list of (str, str)
        Names and texts.

    Raises
    ------
    InputError
        If the archive is damaged, too large, or not text.
    """
    with open_zip(path) as archive:
        files = [info for info in archive.files if info.filename.lower().endswith(suffixes)]
        contents = archive.read(files)
        return [(info.filename, _decode(content, info.filename)) for info, content in zip(files, contents, strict=True)]


def peek_zip_texts(
    path: Path, suffixes: tuple[str, ...], *, only_these: bool = False, max_files: int = 1
) -> list[tuple[str, str]]:
    """Read the beginning of the first text files in a zip file.

    Parameters
    ----------
    path : Path
        Zip file.
    suffixes : tuple of str
        Suffixes of the files to read.
    only_these : bool, default=False
        Return nothing if there are files with other suffixes.
    max_files : int, default=1
        Number of files to read.

    Returns
    -------
    list of (str, str)
        Names and beginnings of texts. Empty if the archive is damaged.
    """
    try:
        with open_zip(path) as archive:
            files = [info for info in archive.files if info.filename.lower().endswith(suffixes)]
            if only_these and len(files) < len(archive.files):
                return []
            heads = [(info.filename, archive.read_head(info)) for info in files[:max_files]]
    except InputError:  # the reader reports why
        return []
    return [(name, head.decode("utf-8-sig", errors="ignore")) for name, head in heads]


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
        with open_zip(path) as archive:
            names = [info.filename for info in archive.files]
    except InputError as error:
        return f"{path}: {error}"
    if not names:
        return f"{path} is an empty zip file; export again"
    return (
        f"{path} is a zip archive, which is not read as an export of doccano (NAME.jsonl for each annotator) or CVAT "
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


def _check_disjoint(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise an error if files share bytes of the archive. Such files unpack to far more than the archive could hold."""
    end = 0
    for info in sorted(entries, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise InputError(
                f"{preview([info.filename])} overlaps another file in this zip; the zip is malicious or damaged"
            )
        end = info.header_offset + _HEADER_BYTES + info.compress_size


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: {encoding_error(error)}") from None
