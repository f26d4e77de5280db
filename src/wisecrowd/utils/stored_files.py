"""Files of stored state: JSON, arrays and tables, read without trust in their contents.

Nothing is unpickled or decompressed, and whatever a file says about its own size is compared with its length before
memory is allocated. Every defect is an `InputError` that names the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import mmap
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.errors import InputError, WisecrowdError

#: Largest JSON file in bytes: enough for 200,000 shards. A parsed file takes up to 25 times its size in memory.
MAX_JSON_BYTES = 2**25
#: Length of the part of another library's message that is shown.
MAX_REASON_LENGTH = 160

#: First and last bytes of an Arrow file.
_ARROW_MAGIC = b"ARROW1"
#: Bytes before the first message of an Arrow file: the magic bytes and padding.
_ARROW_START = 8
#: Positions of fields in the tables of Arrow's messages: the header of a Message, the compression of a RecordBatch.
_MESSAGE_HEADER, _BATCH_COMPRESSION = 2, 3
#: Header of an array as numpy writes it. Booleans, integers, floating-point numbers and text; no objects, no records.
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|=][biufUS]\d{1,9})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n?"
)


class FileSignature(NamedTuple):
    """Identity of the contents of a file, as far as the file system knows it.

    Parameters
    ----------
    device, inode, size, changed : int
        Place, length and time of the last change in nanoseconds.

    Examples
    --------
    >>> path = Path("a.txt")
    >>> _ = path.write_text("one")
    >>> first = FileSignature.of(path.stat())
    >>> _ = path.write_text("another")
    >>> FileSignature.of(path.stat()) == first
    False
    """

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileSignature:
        """Return the signature of a file.

        Parameters
        ----------
        status : os.stat_result
            Status of the file.

        Returns
        -------
        FileSignature
        """
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@contextlib.contextmanager
def refuse_damage(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Turn every error of a parser into an error that names the file.

    A parser of another library may raise anything when it reads a damaged file, so all exceptions are converted, except
    that memory ran out: sizes are checked before memory is allocated, so that is not the file's fault.

    Parameters
    ----------
    path : path-like
        File or folder that is read.
    advice : str
        What to do, a sentence without its period.

    Raises
    ------
    InputError
        Instead of any error that is not an error of wisecrowd.

    Examples
    --------
    >>> with refuse_damage("fit.npz", "Delete the file"):
    ...     {}["tally"]
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: fit.npz is damaged or not a file of wisecrowd (KeyError: 'tally'). Delete the file
    """
    try:
        yield
    except (WisecrowdError, MemoryError):
        raise
    except FileNotFoundError as error:
        missing = error.filename if error.filename is not None else path
        raise InputError(f"{missing} does not exist. {advice}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}). {advice}") from error
    except Exception as error:
        raise InputError(f"{path} is damaged or not a file of wisecrowd ({_describe(error)}). {advice}") from error


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; a device or a named pipe, which might never end, is an error.

    Parameters
    ----------
    path : path-like
        File.

    Returns
    -------
    file object

    Raises
    ------
    InputError
        If the path is not a regular file.

    Examples
    --------
    >>> open_regular_file("/dev/null")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: /dev/null is not a regular file
    """
    # Opening a named pipe would wait for its writer without O_NONBLOCK, which Windows does not have.
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError(f"{path} is not a regular file")
    return file


def compute_file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file.

    Parameters
    ----------
    path : path-like
        File.

    Returns
    -------
    str
        Hexadecimal digits.

    Examples
    --------
    >>> _ = Path("empty.txt").write_text("")
    >>> compute_file_digest("empty.txt")[:8]
    'e3b0c442'
    """
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # BinaryIO lacks readinto


# ---------------------------------------------------------------------- JSON


def load_json(path: str | os.PathLike[str], advice: str) -> Any:
    """Read a JSON file of stored state.

    Parameters
    ----------
    path : path-like
        File.
    advice : str
        What to do about a damaged file, a sentence without its period.

    Returns
    -------
    object
        Contents.

    Raises
    ------
    InputError
        If the file is too large, is no JSON in UTF-8, or contains NaN or an infinite number.

    Examples
    --------
    >>> _ = Path("crowd.json").write_text('{"n_tasks": NaN}')
    >>> load_json("crowd.json", "Shard the votes again")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: crowd.json is damaged or not a file of wisecrowd (ValueError: NaN is not a number). ...
    """
    with refuse_damage(path, advice):
        with open_regular_file(path) as file:
            content = file.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise ValueError(f"more than {MAX_JSON_BYTES:,} bytes of JSON")
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_parse_float)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


# ---------------------------------------------------------------------- arrays


def load_arrays(path: str | os.PathLike[str], advice: str) -> dict[str, NDArray[Any]]:
    """Read the arrays that `numpy.savez` wrote.

    Parameters
    ----------
    path : path-like
        Archive, not compressed.
    advice : str
        What to do about a damaged file, a sentence without its period.

    Returns
    -------
    dict of str to ndarray
        Booleans, numbers and texts in the byte order of this machine; writable.

    Raises
    ------
    InputError
        If the file is damaged, or if an array is compressed, contains objects, or is longer than the file.

    Examples
    --------
    >>> np.savez("fit.npz", tally=np.ones((2, 2)))
    >>> load_arrays("fit.npz", "Delete the file")["tally"].tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    with refuse_damage(path, advice), open_regular_file(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > os.fstat(file.fileno()).st_size:
            raise ValueError("its arrays are longer than the file")
        arrays = {}
        for member in members:
            name, _, suffix = member.filename.rpartition(".")
            if suffix != "npy" or name in arrays:
                raise ValueError(f"unexpected or repeated entry {member.filename[:40]!r}")
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                raise ValueError(f"the array {name[:40]!r} is compressed")
            arrays[name] = _parse_array(archive.read(member))
        return arrays


def _parse_array(content: bytes) -> NDArray[Any]:
    """Return the array in the bytes of a ``.npy`` file."""
    stream = io.BytesIO(content)
    major, minor = np.lib.format.read_magic(stream)
    length_format = {(1, 0): "<H", (2, 0): "<I"}[major, minor]
    (header_length,) = struct.unpack(length_format, stream.read(struct.calcsize(length_format)))
    start = stream.tell() + header_length
    header = _NPY_HEADER.fullmatch(content[stream.tell() : start])
    if header is None:
        raise ValueError("an array has an invalid header or a type that is not supported")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(size) for size in header[3].split(b",") if size.strip())
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"an array of shape {shape} does not have the length that its header says")
    array = np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if header[2] == b"True" else "C")
    if dtype.kind == "b":  # numpy's loops assume that a Boolean is 0 or 1
        return array.view(np.uint8) != 0
    return array.astype(dtype.newbyteorder("="))  # a writable copy


# ---------------------------------------------------------------------- tables


class StoredTable:
    """Table in an Arrow file.

    Parameters
    ----------
    path : path-like
        File that `write_table` wrote.
    advice : str
        What to do about a damaged file, a sentence without its period.
    mapped : bool, default=True
        Map the file into memory: the system reads pages on access and may drop them again. Otherwise, read it at once.

    Attributes
    ----------
    path : Path
        The file.
    signature : FileSignature
        Identity of its contents.
    batch : pyarrow.RecordBatch
        The table. Lengths are valid; call `validate` before reading text.

    Raises
    ------
    InputError
        If the file is damaged, compressed, or consists of several batches.

    Examples
    --------
    >>> write_table("pairs.arrow", {"worker": pa.array([0, 0, 1], pa.int32())})
    >>> StoredTable("pairs.arrow", "Shard the votes again").read_numbers("worker", [np.int32]).tolist()
    [0, 0, 1]
    """

    def __init__(self, path: str | os.PathLike[str], advice: str, *, mapped: bool = True) -> None:
        self.path, self._advice = Path(path), advice
        with refuse_damage(path, advice):
            with open_regular_file(path) as file:
                self.signature = FileSignature.of(os.fstat(file.fileno()))
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else None
                content = file.read() if self._map is None else self._map
            self.batch = _read_batch(pa.py_buffer(content))

    def __len__(self) -> int:
        return self.batch.num_rows

    def validate(self) -> None:
        """Check texts, offsets of texts and everything else that takes a pass over the table.

        Raises
        ------
        InputError
            If a value is invalid.
        """
        with refuse_damage(self.path, self._advice):
            self.batch.validate(full=True)

    def read_numbers(self, name: str, dtypes: list[Any]) -> NDArray[Any]:
        """Return a column of numbers without copying it.

        Parameters
        ----------
        name : str
            Column.
        dtypes : list of dtype
            Types that the column may have.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        InputError
            If the column is absent, has another type, or has missing values.
        """
        with refuse_damage(self.path, self._advice):
            column = self.read_column(name)
            if column.type not in [pa.from_numpy_dtype(dtype) for dtype in dtypes]:
                raise ValueError(f"the column {name} has the type {column.type}")
            return column.to_numpy()

    def read_column(self, name: str) -> pa.Array:
        """Return a column without missing values.

        Parameters
        ----------
        name : str
            Column.

        Returns
        -------
        pyarrow.Array

        Raises
        ------
        InputError
            If the column is absent, or has missing values.
        """
        with refuse_damage(self.path, self._advice):
            if name not in self.batch.schema.names:
                raise ValueError(f"there is no column {name}")
            column = self.batch.column(name)
            if column.null_count:
                raise ValueError(f"the column {name} has missing values")
            return column

    def advise(self, advice: str) -> None:
        """Give the operating system advice on the pages, where it takes such advice.

        Parameters
        ----------
        advice : str
            Name of a constant of `mmap`, such as "MADV_WILLNEED".
        """
        if self._map is not None and hasattr(mmap, advice):
            self._map.madvise(getattr(mmap, advice))


def write_table(path: str | os.PathLike[str], columns: Mapping[str, Any] | pa.Table) -> None:
    """Write columns to an Arrow file that `StoredTable` reads; not atomic.

    Parameters
    ----------
    path : path-like
        File.
    columns : mapping of str to pyarrow.Array, or pyarrow.Table
        Columns; they become one batch, so that each is contiguous in memory.

    Raises
    ------
    InputError
        If a column has a type that is not supported, such as lists.

    Examples
    --------
    >>> write_table("ids.arrow", {"value": pa.array(["a", "b"])})
    >>> StoredTable("ids.arrow", "").read_column("value").to_pylist()
    ['a', 'b']
    """
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    for field in table.schema:
        if pa.types.is_dictionary(field.type):  # categories of pandas
            position = table.schema.get_field_index(field.name)
            table = table.set_column(position, field.name, table.column(position).cast(field.type.value_type))
        elif not _is_supported(field.type):
            raise InputError(f"the column {field.name!r} of {path} has the type {field.type}, which cannot be stored")
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(batch)


def _read_batch(content: pa.Buffer) -> pa.RecordBatch:
    """Return the only batch of an Arrow file, whose buffers lie within the file."""
    if bytes(content[: len(_ARROW_MAGIC)]) != _ARROW_MAGIC or bytes(content[-len(_ARROW_MAGIC) :]) != _ARROW_MAGIC:
        raise ValueError("no Arrow file, or an incomplete one")
    # Messages are read in their order and not by the index at the end of the file, so that the batch that is checked
    # is the batch that is read.
    stream = pa.BufferReader(content[_ARROW_START:])
    schema = pa.ipc.read_schema(pa.ipc.read_message(stream))
    unsupported = [field.type for field in schema if not _is_supported(field.type)]
    if unsupported:
        raise ValueError(f"a column has the type {str(unsupported[0])[:40]}")
    if len(set(schema.names)) != len(schema.names):
        raise ValueError("two columns have one name")
    message = pa.ipc.read_message(stream)
    if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
        raise ValueError("the first batch is missing or compressed")
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate()
    with contextlib.suppress(EOFError):
        pa.ipc.read_message(stream)
        raise ValueError("several batches")
    return batch


def _is_supported(kind: pa.DataType) -> bool:
    """Return whether a column of this type has one buffer of values, or of text."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return is_number or is_time or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def _is_compressed(message: bytes) -> bool:
    """Return whether a message holds a compressed batch; pyarrow would decompress it before its size can be checked."""
    (root,) = struct.unpack_from("<I", message)
    header = _find_field(message, root, _MESSAGE_HEADER)
    if header is None:
        return False
    (distance,) = struct.unpack_from("<I", message, header)
    return _find_field(message, header + distance, _BATCH_COMPRESSION) is not None


def _find_field(message: bytes, table: int, number: int) -> int | None:
    """Return the position of a field of a FlatBuffers table, or None if the table does not have it."""
    (distance,) = struct.unpack_from("<i", message, table)
    slot = 4 + 2 * number
    (size,) = struct.unpack_from("<H", message, table - distance)
    if slot + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", message, table - distance + slot)
    return table + offset if offset else None


def _describe(error: Exception) -> str:
    """Return the type and the beginning of the message of an error, on one line."""
    text = " ".join(str(error).split())
    text = text if text.isprintable() else ascii(text)[1:-1]
    shown = text if len(text) <= MAX_REASON_LENGTH else text[: MAX_REASON_LENGTH - 1] + "…"
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__
