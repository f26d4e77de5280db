"""Files of stored state: whatever they claim, nothing is allocated, decompressed or unpickled for it."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils import stored_files
from wisecrowd.utils.stored_files import (
    StoredTable,
    load_arrays,
    load_json,
    open_regular_file,
    refuse_damage,
    write_table,
)

ADVICE = "Save it again"


def test_errors_name_the_file_and_stay_on_one_line() -> None:
    with (
        pytest.raises(InputError, match=r"^a\.npz is damaged .*\(ValueError: two lines\)\. Save it again$"),
        refuse_damage("a.npz", ADVICE),
    ):
        raise ValueError("two\nlines")
    with pytest.raises(InputError) as caught, refuse_damage("a.npz", ADVICE):
        raise ValueError("\x1b[31m\ud800" + 1000 * "x")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    with pytest.raises(UsageError, match="as it is"), refuse_damage("a.npz", ADVICE):
        raise UsageError("as it is")
    with pytest.raises(InputError, match=r"b\.npz does not exist"), refuse_damage("a", ADVICE):
        Path("b.npz").read_bytes()


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "."):
        with pytest.raises((InputError, IsADirectoryError)):
            open_regular_file(tmp_path / name)
        with pytest.raises(InputError):
            load_json(tmp_path / name, ADVICE)


# ---------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, "9" * 5000, "NaN", "-Infinity", "1e999", '{"a": [1e400]}', "\ufeff{}", ""]
)
def test_bad_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.json is damaged"):
        load_json(tmp_path / "x.json", ADVICE)


def test_json_in_another_encoding_or_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").write_bytes('"ü"'.encode("latin-1"))
    with pytest.raises(InputError, match="UnicodeDecodeError"):
        load_json(tmp_path / "x.json", ADVICE)
    (tmp_path / "x.json").write_text("[1, 2, 3]")
    assert load_json(tmp_path / "x.json", ADVICE) == [1, 2, 3]
    monkeypatch.setattr(stored_files, "MAX_JSON_BYTES", 8)
    with pytest.raises(InputError, match="more than 8 bytes of JSON"):
        load_json(tmp_path / "x.json", ADVICE)


# ---------------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    "array",
    [
        np.float64(2.5), np.zeros(0), np.zeros((2, 0, 3)), np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T,
        np.array([True, False]), np.array("text"), np.array(["ä", "b"]), np.arange(3, dtype=">i4"), np.ones(2, np.float32),
        np.array(b"bytes"),
    ],
    ids=repr,
)  # fmt: skip
def test_arrays_are_read_as_they_were_written(array: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=array)
    loaded = load_arrays(tmp_path / "a.npz", ADVICE)["x"]
    assert loaded.shape == np.shape(array)
    assert loaded.dtype == np.asarray(array).dtype.newbyteorder("=")
    assert loaded.tolist() == np.asarray(array).tolist()
    assert loaded.flags.writeable


def npy(header: bytes, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    length = struct.pack("<H" if version[0] == 1 else "<I", len(header))
    return b"\x93NUMPY" + version + length + header + body


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


def header(descr: str = "'<f8'", fortran: str = "False", shape: str = "(2,)") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()


@pytest.mark.parametrize(
    "content",
    [
        npy(header(shape="(400000000000,)"), bytes(16)),  # 3 TB
        npy(header(shape="(4000000000, 4000000000, 2)"), bytes(16)),  # overflows 64 bits
        npy(header(shape="(-2,)"), bytes(16)),
        npy(header(shape="(3,)"), bytes(16)),
        npy(header(shape="(1,)"), bytes(16)),
        npy(header(descr="'|O'"), b"cos\nsystem\n(S'true'\ntR."),
        npy(header(descr="[('a', '<f8')]"), bytes(16)),
        npy(header(descr="'<U0'", shape="(99999999999,)")),
        npy(header(descr="'<U2147483647'", shape="(2,)"), bytes(16)),
        npy(header(descr="'<f3'"), bytes(6)),
        npy(header(descr="'<M8[ns]'"), bytes(16)),
        npy(header(fortran="print(1)"), bytes(16)),
        npy(b"-" * 5000 + b"1"),
        npy(b"(" * 5000),
        npy(header(), bytes(16), version=b"\x03\x00"),
        npy(header(), bytes(16))[:20],
        b"\x93NUMPY",
        b"",
    ],
    ids=range(18),
)
def test_tampered_arrays_are_refused(content: bytes, tmp_path: Path) -> None:
    archive(tmp_path / "a.npz", {"x.npy": content})
    with pytest.raises(InputError, match=r"a\.npz is damaged"):
        load_arrays(tmp_path / "a.npz", ADVICE)


def test_a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    content = npy(header(shape="(50000000,)"), bytes(400_000_000))
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive(tmp_path / "a.npz", {"x.npy": content[:1_000_000]}, compression)
        with pytest.raises(InputError, match=r"longer than the file|is compressed"):
            load_arrays(tmp_path / "a.npz", ADVICE)


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    archive(tmp_path / "a.npz", {f"{name}.npy": npy(header(), bytes(16)) for name in "ab"})
    whole = (tmp_path / "a.npz").read_bytes()
    central = whole.index(b"PK\x01\x02")
    entry = whole[central : whole.index(b"PK\x01\x02", central + 1)]
    end = bytearray(whole[whole.index(b"PK\x05\x06") :])
    end[8:12], end[12:16] = struct.pack("<HH", 500, 500), struct.pack("<I", 500 * len(entry))
    entries = [entry.replace(b"a.npy", f"{number:05d}".encode()) for number in range(500)]
    (tmp_path / "a.npz").write_bytes(whole[:central] + b"".join(entries) + bytes(end))
    with pytest.raises(InputError, match=r"a\.npz is damaged"):
        load_arrays(tmp_path / "a.npz", ADVICE)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"no archive", npy(header(), bytes(16))], ids=["empty", "short", "text", "npy"]
)
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.npz is damaged.*Save it again"):
        load_arrays(tmp_path / "a.npz", ADVICE)


@pytest.mark.parametrize("name", ["x.txt", "x", "../x.exe"])
def test_other_entries_are_refused(name: str, tmp_path: Path) -> None:
    archive(tmp_path / "a.npz", {name: b"hello"})
    with pytest.raises(InputError, match="unexpected or repeated entry"):
        load_arrays(tmp_path / "a.npz", ADVICE)


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(100))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="CRC"):
        load_arrays(tmp_path / "a.npz", ADVICE)


# ---------------------------------------------------------------------- tables


def ipc(path: Path, batches: list[pa.RecordBatch], compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


BATCH = pa.RecordBatch.from_pydict({"pair": pa.array(np.arange(3, dtype=np.int32)), "task": ["a", "b", "c"]})


def test_a_table_is_read_without_copying(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t.arrow",
        {"pair": pa.chunked_array([[1, 2], [3]]), "name": pa.array(["x", "y", "x"]).dictionary_encode()},
    )
    table = StoredTable(tmp_path / "t.arrow", ADVICE)
    table.validate()
    assert table.read_numbers("pair", [np.int64]).tolist() == [1, 2, 3]
    assert not table.read_numbers("pair", [np.int64]).flags.owndata
    assert table.read_column("name").to_pylist() == ["x", "y", "x"]
    assert len(table) == 3


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_table_is_not_decompressed(compression: str, tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"pair": pa.array(np.zeros(10_000_000, dtype=np.int32))})
    ipc(tmp_path / "t.arrow", [rows], compression)
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="compressed"):
        StoredTable(tmp_path / "t.arrow", ADVICE)
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_tables_of_another_form_are_refused(tmp_path: Path) -> None:
    ipc(tmp_path / "t.arrow", [BATCH, BATCH])
    with pytest.raises(InputError, match="several batches"):
        StoredTable(tmp_path / "t.arrow", ADVICE)
    for column in (
        pa.array([[1], [2]]), pa.array([{"a": 1}]), pa.array(["a"]).dictionary_encode(), pa.array([b"a"]),
        pa.array([b"ab"], pa.binary(2)), pa.array(["a"], pa.string_view()), pa.array([1]).cast(pa.decimal128(20)),
    ):  # fmt: skip
        ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_pydict({"pair": column})])
        with pytest.raises(InputError, match="a column has the type"):
            StoredTable(tmp_path / "t.arrow", ADVICE)
    with pytest.raises(InputError, match=r"the column 'x' .* cannot be stored"):
        write_table(tmp_path / "t.arrow", {"x": pa.array([[1]])})


def test_offsets_of_texts_are_checked(tmp_path: Path) -> None:
    texts = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 2_000_000_000, 2], dtype=np.int32)), pa.py_buffer(b"ab")
    )
    ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_pydict({"task": texts})])
    with pytest.raises(InputError, match=r"t\.arrow is damaged"):
        StoredTable(tmp_path / "t.arrow", ADVICE).validate()
    latin = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], dtype=np.int32)), pa.py_buffer(b"\xff"))
    ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_pydict({"task": latin})])
    with pytest.raises(InputError, match="UTF8"):
        StoredTable(tmp_path / "t.arrow", ADVICE).validate()


def test_a_batch_that_claims_more_rows_than_it_has_is_refused(tmp_path: Path) -> None:
    ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_pydict({"pair": pa.array(np.arange(1000, dtype=np.int32))})])
    content = (tmp_path / "t.arrow").read_bytes()
    (tmp_path / "t.arrow").write_bytes(content.replace(struct.pack("<q", 1000), struct.pack("<q", 400_000_000)))
    with pytest.raises(InputError, match=r"t\.arrow is damaged"):
        StoredTable(tmp_path / "t.arrow", ADVICE)


@pytest.mark.parametrize("length", [0, 1, 8, 100, 400, -1])
def test_a_truncated_table_is_refused(length: int, tmp_path: Path) -> None:
    ipc(tmp_path / "t.arrow", [BATCH])
    content = (tmp_path / "t.arrow").read_bytes()
    (tmp_path / "t.arrow").write_bytes(content[:length])
    with pytest.raises(InputError, match=r"t\.arrow is damaged"):
        StoredTable(tmp_path / "t.arrow", ADVICE)


def test_columns_have_one_name_one_type_and_no_gaps(tmp_path: Path) -> None:
    fields = pa.schema([("x", pa.int32()), ("x", pa.int32())])
    ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_arrays([pa.array([1], pa.int32())] * 2, schema=fields)])
    with pytest.raises(InputError, match="two columns have one name"):
        StoredTable(tmp_path / "t.arrow", ADVICE)
    ipc(tmp_path / "t.arrow", [pa.RecordBatch.from_pydict({"y": pa.array([None], pa.int32())})])
    with pytest.raises(InputError, match="missing values"):
        StoredTable(tmp_path / "t.arrow", ADVICE).read_column("y")
    ipc(tmp_path / "t.arrow", [BATCH])
    with pytest.raises(InputError, match="there is no column x"):
        StoredTable(tmp_path / "t.arrow", ADVICE).read_column("x")
    with pytest.raises(InputError, match="type int32"):
        StoredTable(tmp_path / "t.arrow", ADVICE).read_numbers("pair", [np.int64, np.float64])


def test_an_empty_table_is_read(tmp_path: Path) -> None:
    write_table(tmp_path / "t.arrow", {"value": pa.array([], pa.string())})
    assert len(StoredTable(tmp_path / "t.arrow", ADVICE).read_column("value")) == 0


def test_the_file_may_be_any_bytes(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, BATCH.schema) as writer:
        writer.write_batch(BATCH)
    whole, rng = stream.getvalue(), np.random.default_rng(0)
    messages = []
    for _ in range(300):
        content = bytearray(whole)
        for position in rng.integers(len(whole), size=rng.integers(1, 4)):
            content[position] = rng.integers(256)
        (tmp_path / "t.arrow").write_bytes(content)
        try:
            table = StoredTable(tmp_path / "t.arrow", ADVICE)
            table.validate()
            table.batch.to_pandas()
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert all("t.arrow" in message for message in messages)
