"""Standard input and remote files: copied once, within a limit, and named by their origin in messages."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.io import source_files
from wisecrowd.io.problems import display_name
from wisecrowd.io.source_files import fetch_source, is_remote

VOTES = b"task,worker,label\nt1,ann,cat\nt1,bob,dog\nt2,ann,cat\n"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Make bytes the standard input."""

    def set_stdin(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return set_stdin


@pytest.fixture
def storage() -> Iterator[Any]:
    """Remote storage in the memory of this process."""
    fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")
    storage = fsspec.filesystem("memory")
    yield storage
    storage.store.clear()


def test_local_files_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fetch_source("votes.csv") == Path("votes.csv")
    assert fetch_source(f"file://{tmp_path}/votes.csv") == tmp_path / "votes.csv"
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "votes.csv").write_bytes(VOTES)
    assert not is_remote("s3:/votes.csv"), "a local file has precedence"
    assert not is_remote("C:/votes.csv"), "a drive is no scheme"


@pytest.mark.parametrize(
    "content",
    [VOTES, gzip.compress(VOTES), VOTES.replace(b",", b"\t"), b'{"task": "t1", "worker": "ann", "label": "cat"}\n'],
    ids=["csv", "gzip", "tsv", "json"],  # gzip stores the time, and the processes of a run need equal ids
)
def test_votes_come_through_standard_input(pipe: Callable[[bytes], None], content: bytes) -> None:
    pipe(content)
    crowd = wc.read("-")
    assert crowd.tasks[0] == "t1"
    assert wc.read("-") == crowd, "the copy is read again"


def test_parquet_comes_through_standard_input(pipe: Callable[[bytes], None], tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")])
    wc.write(crowd, tmp_path / "votes.parquet")
    pipe((tmp_path / "votes.parquet").read_bytes())
    assert wc.read("-") == crowd


def test_messages_call_it_standard_input(pipe: Callable[[bytes], None]) -> None:
    pipe(b"task,worker,z\n1,2,3\n")
    with pytest.raises(InputError, match=r"^standard input: there is no label column"):
        wc.read("-")
    pipe(b"")
    with pytest.raises(InputError, match=r"^standard input is empty"):
        wc.read("-")


def test_a_terminal_and_a_closed_input_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(UsageError, match="standard input is a terminal"):
        fetch_source("-")
    stream.close()
    with pytest.raises(InputError, match="standard input is closed"):
        fetch_source("-")


def test_input_without_end_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        n_bytes = 0

        def read(self, size: int = -1) -> bytes:
            self.n_bytes += size
            return b"a" * size

    endless = Endless()
    monkeypatch.setattr(
        sys, "stdin", type("Stdin", (), {"buffer": endless, "closed": False, "isatty": lambda _: False})()
    )
    with pytest.raises(InputError, match=r"standard input has more than 10.0 MB, more than max_unpacked allows"):
        wc.read("-", max_unpacked="10MB")
    assert endless.n_bytes < 20_000_000
    monkeypatch.setattr(source_files, "get_copy_limit", lambda _: (1000, "half of the free disk space"))
    with pytest.raises(InputError, match="half of the free disk space"):
        fetch_source("-")


def test_votes_come_from_remote_storage(storage: Any) -> None:
    storage.pipe("/bucket/votes.csv", VOTES)
    crowd = wc.read("memory://bucket/votes.csv")
    assert crowd.n_votes == 3
    copy = fetch_source("memory://bucket/votes.csv")
    assert display_name(copy) == "memory://bucket/votes.csv"
    assert fetch_source(Path("memory://bucket/votes.csv")) == copy, "pathlib drops a slash, and nothing is copied twice"
    storage.pipe("/bucket/votes.csv", VOTES + b"t3,cy,dog\n")
    assert wc.read("memory://bucket/votes.csv").n_votes == 4, "a changed file is copied again"


def test_compressed_truth_features_and_members_come_from_remote_storage(storage: Any) -> None:
    storage.pipe("/b/gold.csv.gz", gzip.compress(b"task,truth\nt1,cat\n"))
    storage.pipe("/b/X.csv", b"task,x\nt1,1.5\n")
    storage.pipe("/b/members.csv", b"worker,kind\nann,person\n")
    assert wc.read_truth("memory://b/gold.csv.gz").to_dict() == {"t1": "cat"}
    assert wc.read_features("memory://b/X.csv").table.loc["t1", "x"] == 1.5
    from wisecrowd.io.members import read_members

    assert read_members("memory://b/members.csv").index.tolist() == ["ann"]


@pytest.mark.slow
def test_remote_files_have_the_limits_of_local_ones(storage: Any) -> None:
    storage.pipe("/b/large.csv", VOTES * 1000)
    with pytest.raises(InputError, match=r"memory://b/large.csv has more than 1.0 KB"):
        wc.read("memory://b/large.csv", max_unpacked="1KB")
    storage.pipe("/b/bomb.csv.gz", gzip.compress(VOTES + b"t,w,l\n" * 20_000_000))
    with pytest.raises(InputError, match=r"memory://b/bomb.csv.gz: it unpacks to more than"):
        wc.read("memory://b/bomb.csv.gz")


def test_absent_files_folders_and_unknown_storage_are_named(storage: Any) -> None:
    storage.pipe("/b/votes.csv", VOTES)
    with pytest.raises(InputError, match=r"there is no file memory://b/absent.csv"):
        wc.read("memory://b/absent.csv")
    with pytest.raises(InputError, match="memory://b is a folder in remote storage"):
        wc.read("memory://b")
    with pytest.raises(InputError, match=r"nosuch://b/votes.csv cannot be read: Protocol not known"):
        wc.read("nosuch://b/votes.csv")


@pytest.mark.parametrize("address", ["https://example.org/votes.csv", "http://example.org/votes.csv"])
def test_web_pages_are_not_downloaded(address: str) -> None:
    with pytest.raises(InputError, match=rf"{address} is a web address.*curl -L -O {address}"):
        wc.read(address)
    with pytest.raises(InputError, match="web address"):
        wc.read(Path(address))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")

    def fail(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(InputError, match="s3:// addresses need a further package; install it with: pip install s3fs"):
        wc.read("s3://bucket/votes.csv")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"also need gcsfs.*wisecrowd\[remote\]"):
        wc.read("gs://bucket/votes.csv")


def test_old_copies_are_removed(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_COPIES", 2)
    monkeypatch.setattr(source_files, "_copies", {})
    for number in range(3):
        storage.pipe(f"/b/{number}.csv", VOTES)
    copies = [fetch_source(f"memory://b/{number}.csv") for number in range(3)]
    assert [copy.exists() for copy in copies] == [False, True, True]


def test_shards_are_not_made_of_remote_files(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra cluster is not installed")
    with pytest.raises(InputError, match="copy them to a local folder first"):
        wc.shard_files("s3://bucket/votes.csv", tmp_path / "crowd")
