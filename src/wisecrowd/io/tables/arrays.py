"""numpy's files of arrays, npy and npz, read strictly: no pickles, and no allocation of what a header merely declares."""

from __future__ import annotations

import ast
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import check_unpacked_size
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.archives import is_zip, open_zip

_MAGIC = b"\x93NUMPY"
#: Format of the length of the header, by version. Version 3 only differs for names of fields, which are not read.
_LENGTH_FORMATS = {1: "<H", 2: "<I"}
#: Longest header that is parsed, as in numpy.
_MAX_HEADER_BYTES = 10_000
#: Kinds of values: booleans, integers, floats, text and bytes.
_KINDS = "biufUS"


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file.

    Parameters
    ----------
    path : Path
        File.
    names : tuple of str
        Names of the arrays.

    Returns
    -------
    dict of str to ndarray
        Arrays by name.

    Raises
    ------
    InputError
        If the file is damaged or lacks an array.

    Examples
    --------
    >>> np.savez("X.npz", task=["t1"], X=[[0.5, 1.0]])
    >>> read_npz(Path("X.npz"), ("X",))["X"].tolist()
    [[0.5, 1.0]]
    """
    expected = f"expected the arrays {' and '.join(map(repr, names))}, as np.savez writes them"
    if not is_zip(path):
        raise InputError(f"it is not an npz file; {expected}")
    with open_zip(path) as archive:
        files = {info.filename.removesuffix(".npy"): info for info in archive.files}
        if not set(names) <= files.keys():
            raise InputError(f"{expected}; it holds {preview(files, 8) or 'nothing'}")
        contents = archive.read([files[name] for name in names])
        return {name: parse_npy(content, f"the array {name!r}") for name, content in zip(names, contents, strict=True)}


def read_npy(path: Path) -> NDArray[Any]:
    """Read the array of an npy file.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    ndarray
        Array.

    Raises
    ------
    InputError
        If the file is damaged.

    Examples
    --------
    >>> np.save("truth.npy", [1, 0])
    >>> read_npy(Path("truth.npy")).tolist()
    [1, 0]
    """
    size = path.stat().st_size
    check_unpacked_size(size, size)
    return parse_npy(path.read_bytes(), path.name)


def parse_npy(content: bytes, subject: str) -> NDArray[Any]:
    """Parse the content of an npy file.

    Parameters
    ----------
    content : bytes
        Content.
    subject : str
        Subject of messages.

    Returns
    -------
    ndarray
        Read-only array of booleans, numbers, text or bytes.

    Raises
    ------
    InputError
        If the content is not exactly an array of these types.

    Examples
    --------
    >>> parse_npy(b"PAR1", "it")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: it is not an array of numpy; save it again with np.save or np.savez
    """
    shape, is_transposed, dtype, start = _parse_header(content, subject)
    n_values = math.prod(shape)
    if n_values * dtype.itemsize != len(content) - start:
        raise InputError(
            f"{subject} declares {n_values:,} values of {dtype.itemsize} bytes, but has {len(content) - start:,} bytes; it is "
            "damaged or cut off"
        )
    values: NDArray[Any] = np.frombuffer(content, dtype, offset=start)
    if not dtype.isnative:
        values = values.astype(dtype.newbyteorder("="))
    return values.reshape(shape, order="F" if is_transposed else "C")


def _parse_header(content: bytes, subject: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, whether it is in Fortran order, the type, and the position of the first value."""
    version = content[6] if content.startswith(_MAGIC) and len(content) > 12 else 0
    if version not in _LENGTH_FORMATS:
        raise InputError(f"{subject} is not an array of numpy; save it again with np.save or np.savez")
    (n_bytes,) = struct.unpack_from(_LENGTH_FORMATS[version], content, 8)
    start = 8 + struct.calcsize(_LENGTH_FORMATS[version]) + n_bytes
    if n_bytes > _MAX_HEADER_BYTES or start > len(content):
        raise InputError(f"{subject} has a header of {n_bytes:,} bytes; it is damaged")
    try:
        header = ast.literal_eval(content[start - n_bytes : start].decode("latin-1").strip())
        shape, is_transposed, type_name = header["shape"], header["fortran_order"], header["descr"]
        dtype = np.dtype(type_name if isinstance(type_name, str) else "V0")
    except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError) as error:
        raise InputError(f"{subject} has a header that is not numpy's: {shorten_message(error)}") from None
    if dtype.hasobject:
        raise InputError(f"{subject} holds Python objects, which are not read; convert it to text or numbers first")
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise InputError(f"{subject} holds {preview([type_name])} values; expected text or numbers")
    is_shape = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or len(shape) > 32 or not isinstance(is_transposed, bool):
        raise InputError(f"{subject} has the shape {preview([shape])}; it is damaged")
    return shape, is_transposed, dtype, start
