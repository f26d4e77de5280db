"""Small files that unpack to large ones are refused, whatever compresses them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import compressed_files, read_project
from wisecrowd.io.compressed_files import check_unpacked_size, get_unpacked_limit, limit_unpacked, open_input
from wisecrowd.io.features import read_features
from wisecrowd.io.members import read_members
from wisecrowd.io.sharding import shard_files

#: Unpacked bytes of the bombs of these tests, and the limit below which nothing is a bomb.
BOMB_BYTES, MIN_LIMIT_BYTES = 1 << 22, 1 << 20


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limit, so that small bombs suffice."""
    monkeypatch.setattr(compressed_files, "MIN_LIMIT_BYTES", MIN_LIMIT_BYTES)


def zstd(content: bytes) -> bytes:
    compressed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return compressed


def repeat(row: bytes) -> bytes:
    return row * (BOMB_BYTES // len(row))


CSV = b"task,worker,label\nt,ann,cat\n" + repeat(b"t,ann,cat\n")
TSV = CSV.replace(b",", b"\t")
ROW = {"task": "t", "worker": "ann", "label": "cat"}
JSONL = repeat(json.dumps(ROW).encode() + b"\n")
JSON = b"[" + b",".join([json.dumps(ROW).encode()] * (BOMB_BYTES // 50)) + b"]"
FEATURES = b"task,x\n" + repeat(b"0,0\n")
TRUTH = b"task,truth\n" + repeat(b"t,cat\n")
MEMBERS = b"worker,kind,note\n" + repeat(b"ann,person," + b"x" * 2000 + b"\n")
TASKS = json.dumps([{"id": 1, "data": {}, "annotations": [], "meta": "x" * BOMB_BYTES}]).encode()
TOLOKA = b"INPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\n" + repeat(b"a" * 2000 + b"\tb\tc\n")


def zip_of(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, task=np.zeros(BOMB_BYTES // 64), X=np.zeros((BOMB_BYTES // 64, 8)))
    return file.getvalue()


def parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, compression="zstd")
    return file.getvalue()


def repeated_rows(n_rows: int) -> bytes:
    return parquet({"task": pa.repeat(1, n_rows), "worker": pa.repeat(1, n_rows), "label": pa.repeat(1, n_rows)})


def long_texts() -> bytes:
    """A table in which every row refers to the same long text."""
    n_rows = 64
    text = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), n_rows), pa.array(["x" * (1 << 16)]))
    return parquet({"task": pa.array(range(n_rows)), "text": text, "worker": pa.array(range(n_rows))})


Read = Callable[..., Any]
#: File name, content and reader; contents are made by the test, because compressing all of them takes a second.
BOMBS: dict[str, tuple[str, Callable[[], bytes], Read]] = {
    "csv.gz": ("votes.csv.gz", lambda: gzip.compress(CSV), wc.read),
    "csv.bz2": ("votes.csv.bz2", lambda: bz2.compress(CSV), wc.read),
    "csv.zst": ("votes.csv.zst", lambda: zstd(CSV), wc.read),
    "tsv.gz": ("votes.tsv.gz", lambda: gzip.compress(TSV), wc.read),
    "jsonl.gz": ("votes.jsonl.gz", lambda: gzip.compress(JSONL), wc.read),
    "json.gz": ("votes.json.gz", lambda: gzip.compress(JSON), wc.read),
    "parquet": ("votes.parquet", lambda: repeated_rows(BOMB_BYTES // 8), wc.read),
    "truth": ("truth.csv.gz", lambda: gzip.compress(TRUTH), wc.read_truth),
    "features.csv.gz": ("X.csv.gz", lambda: gzip.compress(FEATURES), read_features),
    "features.npz": ("X.npz", npz, read_features),
    "features.parquet": ("X.parquet", long_texts, read_features),
    "members": ("members.csv.gz", lambda: gzip.compress(MEMBERS), read_members),
    "doccano": (
        "export.zip",
        lambda: zip_of("ann.jsonl", repeat(b'{"id": 1, "label": ["x"], "text": "' + b"x" * 2000 + b'"}\n')),
        read_project,
    ),
    "cvat": (
        "export.zip",
        lambda: zip_of("annotations.xml", b"<annotations>" + repeat(b"<version>" + b"x" * 2000 + b"</version>")),
        read_project,
    ),
    "label studio": ("export.json.gz", lambda: gzip.compress(TASKS), read_project),
    "toloka": ("assignments.tsv.gz", lambda: gzip.compress(TOLOKA), read_project),
}


def find_error(read: Callable[[], Any]) -> str:
    try:
        read()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_unless_they_are_allowed(tmp_path: Path, bomb: str) -> None:
    name, make_content, read = BOMBS[bomb]
    path, content = tmp_path / name, make_content()
    path.write_bytes(content)
    assert len(content) * compressed_files.MAX_RATIO < BOMB_BYTES
    with pytest.raises(InputError, match=r"unpacks to .*, too much for a file of .*max_unpacked=\"16GB\""):
        read(path)
    with pytest.raises(InputError, match=r"unpacks to .*more than max_unpacked, 100\.0 KB"):
        read(path, max_unpacked="100KB")
    # Repeated rows and the like are refused after all of it was unpacked.
    assert "unpack" not in find_error(lambda: read(path, max_unpacked="1GB"))


def test_a_check_reports_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(CSV))
    assert "unpacks to more than" in wc.check_votes(path).errors[0].message
    assert [finding.name for finding in wc.check_votes(path, max_unpacked="1GB").errors] == ["duplicate-votes"]


@pytest.mark.slow
@pytest.mark.parametrize("bomb", ["csv.gz", "parquet"])
def test_shards_of_a_bomb(tmp_path: Path, bomb: str) -> None:
    name, make_content, _ = BOMBS[bomb]
    (tmp_path / name).write_bytes(make_content())
    with pytest.raises(InputError, match="too much for a file of"):
        shard_files(tmp_path / name, tmp_path / "crowd")
    assert not (tmp_path / "crowd").exists()
    crowd = shard_files(tmp_path / name, tmp_path / "crowd", duplicates="first", max_unpacked="1GB")
    assert crowd.n_votes == 1


@pytest.mark.slow
def test_honest_files_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"task{n},{rng.integers(50)},{rng.integers(5)}" for n in range(50_000)]
    content = "\n".join(["task,worker,label", *rows]).encode()
    for name, compress in (("votes.csv.gz", gzip.compress), ("votes.csv.bz2", bz2.compress), ("votes.csv.zst", zstd)):
        (tmp_path / name).write_bytes(compress(content))
        assert wc.read(tmp_path / name).n_votes == 50_000


def test_no_more_is_read_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(BOMB_BYTES)))
    with open_input(path) as file:
        assert len(file.read(MIN_LIMIT_BYTES)) == MIN_LIMIT_BYTES
        with pytest.raises(InputError, match="unpacks to more than"):
            file.read(1)
        assert file.n_bytes == MIN_LIMIT_BYTES + 1
    with open_input(path) as file:
        with pytest.raises(InputError, match="unpacks to more than"):
            file.read()
        assert file.n_bytes == MIN_LIMIT_BYTES + 1


def test_the_free_memory_is_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(b"task,worker,label\n" + rng.bytes(100_000).hex().encode()))
    monkeypatch.setattr(compressed_files, "get_free_memory", lambda: 200_000)
    with pytest.raises(InputError, match="too much for the free memory"):
        wc.read(path)
    assert get_unpacked_limit(1000) == 50_000
    assert get_unpacked_limit(1000, in_memory=False) == MIN_LIMIT_BYTES


def test_limits_are_nested_and_end() -> None:
    before = get_unpacked_limit(1)
    with limit_unpacked("2MB"):
        with limit_unpacked(None):
            assert get_unpacked_limit(1) == 2_000_000
        with limit_unpacked(5):
            assert get_unpacked_limit(1) == 5
        assert get_unpacked_limit(1) == 2_000_000
    assert get_unpacked_limit(1) == before
    with pytest.raises(UsageError, match="max_unpacked must be a size"), limit_unpacked("much"):
        pass


def test_declared_sizes() -> None:
    check_unpacked_size(MIN_LIMIT_BYTES, 1)
    with pytest.raises(InputError, match=r"the array unpacks to 1\.0 MB, too much for a file of 1 bytes"):
        check_unpacked_size(MIN_LIMIT_BYTES + 1, 1, "the array")


@pytest.mark.parametrize("name", ["votes.csv.gz", "votes.csv.bz2", "votes.csv.zst", "votes.jsonl.gz", "votes.json.gz"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    content = {"csv": CSV, "jsonl": JSONL, "json": JSON}[name.split(".")[1]][:5000]
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}[name.rsplit(".", 1)[1]]
    packed = compress(content)
    for damaged in (packed[: len(packed) // 2], packed[:20] + bytes(20) + packed[40:], b"no archive"):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            wc.read(tmp_path / name)


@pytest.mark.parametrize("bomb", ["json.gz", "features.csv.gz", "toloka", "csv.gz"])
def test_large_files_are_unpacked_once_before_they_are_kept(
    tmp_path: Path, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed_files, "SAFE_BYTES", 0)
    name, make_content, read = BOMBS[bomb]
    (tmp_path / name).write_bytes(make_content())
    sizes: list[int | None] = []
    read_bytes = compressed_files._BoundedFile.read

    def record(file: Any, size: int | None = -1) -> bytes:
        sizes.append(size)
        return read_bytes(file, size)

    monkeypatch.setattr(compressed_files._BoundedFile, "read", record)
    with pytest.raises(InputError, match="too much for a file of"):
        read(tmp_path / name)
    assert -1 not in sizes, "all of it was asked for at once"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_plain_text_with_the_suffix_of_a_compression_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"votes.csv{suffix}"
    path.write_text("task,worker,label\ncafé,ann,cat\n" * 40, encoding="utf-8")
    message = rf"its name ends in {suffix}, but it is not compressed; rename it to votes\.csv, or compress it"
    with pytest.raises(InputError, match=message):
        wc.read(path)


def test_another_compression_than_the_suffix_says_is_named(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(bz2.compress(b"task,worker,label\n1,ann,cat\n"))
    with pytest.raises(InputError, match=r"it is compressed by bz2; rename it to votes\.csv\.bz2"):
        wc.read(path)


def test_a_damaged_compressed_file_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(b"\0" + gzip.compress(b"task,worker,label\n1,ann,cat\n"))
    with pytest.raises(InputError, match="it may be damaged or cut off"):
        wc.read(path)
