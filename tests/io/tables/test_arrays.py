"""Files of arrays: exactly what numpy writes is read, and nothing that a header merely declares is allocated."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tables.arrays import parse_npy, read_npy, read_npz


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def with_header(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(["a", "longer"]),
        np.array([b"a", b"\xff"]),
        np.array([True, False]),
        np.array(5),
        np.zeros((0, 3)),
        np.arange(3, dtype=">i8"),
        np.array(["é", "x"], dtype=">U1"),
        np.array([2**64 - 1], dtype=np.uint64),
        np.zeros(2, dtype=np.float16),
    ],
)
def test_what_numpy_saves_is_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    read = read_npy(tmp_path / "a.npy")
    assert read.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(read, array)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", x=array, y=array)
        np.testing.assert_array_equal(read_npz(tmp_path / "a.npz", ("x",))["x"], array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an array of numpy"),
        (b"\x93NUMPY", "not an array of numpy"),
        (b"\x93NUMPY\x09\x00" + bytes(200), "not an array of numpy"),
        (npy([1.0, 2.0])[:-1], "declares 2 values of 8 bytes, but has 15 bytes"),
        (npy([1.0, 2.0]) + b"x", "declares 2 values of 8 bytes, but has 17 bytes"),
        (npy(np.array([[], None], dtype=object), allow_pickle=True), "holds Python objects"),
        (npy(np.array(["2024"], dtype="M8[D]")), "holds '<M8.D.' values; expected text or numbers"),
        (npy(np.array([1j])), "expected text or numbers"),
        (npy(np.array([(1, 2.0)], dtype="i4,f8")), "expected text or numbers"),
        (npy(np.array([b"xyz"], dtype="V3")), "expected text or numbers"),
        (
            with_header("{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000000,)}"),
            "expected text or numbers",
        ),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}"),
            "declares 10,000,000,000 values",
        ),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 30 + ",)}"),
            "declares 999,999,999,",
        ),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), r"has the shape \(-1,\)"),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}", bytes(8)),
            r"has the shape \(True,\)",
        ),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': [1]}", bytes(8)), r"has the shape \[1\]"),
        (with_header("{'descr': '<f8', 'fortran_order': 3, 'shape': (1,)}", bytes(8)), "has the shape"),
        (
            with_header("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(1," * 40 + ")" * 40 + "}"),
            "has the shape",
        ),
        (with_header("{'descr': '<f9', 'fortran_order': False, 'shape': (1,)}"), "has a header that is not numpy's"),
        (with_header("{'descr': '<f8'}"), "has a header that is not numpy's"),
        (with_header("__import__('os').abort()"), "has a header that is not numpy's"),
        (with_header("(" * 5000), "has a header that is not numpy's"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}"), "not numpy's"),
        (with_header("x" * 20_000, version=2), "has a header of 20,000 bytes"),
        (b"\x93NUMPY\x01\x00\xff\xff{}   ", "has a header of"),
    ],
)
def test_what_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"the array .*{message}"):
        parse_npy(content, "the array")


def test_what_is_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "X.npz"
    for content in (b"", npy([1.0]), b"PK\x05\x06" + bytes(18), b"task,x\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="it is not an npz file; expected the arrays 'task' and 'X'"):
            read_npz(path, ("task", "X"))
    np.savez(path, task=[1], other=[2])
    with pytest.raises(InputError, match="it holds 'task', 'other'"):
        read_npz(path, ("task", "X"))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="cannot be read as a zip"):
        read_npz(path, ("task", "X"))


def test_a_declared_size_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("something was allocated")

    monkeypatch.setattr(np, "frombuffer", refuse)
    path = tmp_path / "a.npy"
    path.write_bytes(with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (400000000, 1000)}", bytes(64)))
    with pytest.raises(InputError, match=r"a\.npy declares 400,000,000,000 values"):
        read_npy(path)
