from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import UsageError
from wisecrowd.io.tables.chunks import write_chunks


@pytest.fixture
def filled() -> wc.Crowd:
    """Some tasks are full already, so that their chunk has nothing that was filled in."""
    votes = [(f"t{task}", worker, "é,x" if task % 2 else 'say "y"') for task in range(2) for worker in "ab"]
    votes += [(f"t{task}", "a", "é,x") for task in range(2, 7)]
    return wc.GMV().complete(wc.Crowd.from_triples(votes))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_pieces_come_back_as_the_whole(filled: wc.Crowd, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"votes.{suffix}"
    write_chunks(filled.split_tasks(3), path)
    assert wc.read(path) == filled
    assert not filled.observed.all()


def test_columns_are_the_same_whatever_the_first_piece_says(filled: wc.Crowd, tmp_path: Path) -> None:
    assert filled[:2].observed.all()
    write_chunks([filled[:2], filled[2:]], tmp_path / "votes.csv")
    header = (tmp_path / "votes.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.replace('"', "") == "task,worker,label,weight,observed"
    write_chunks([filled[:2]], tmp_path / "votes.parquet")
    assert pq.read_schema(tmp_path / "votes.parquet").names == header.replace('"', "").split(",")


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([(7, 1, 0), (8, 2, 1)])
    write_chunks(crowd.split_tasks(2), tmp_path / "votes.parquet")
    assert wc.read(tmp_path / "votes.parquet") == crowd


def test_a_file_appears_whole_or_not_at_all(filled: wc.Crowd, tmp_path: Path) -> None:
    def broken() -> Iterator[wc.Crowd]:
        yield filled[:2]
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError, match="the power went"):
        write_chunks(broken(), tmp_path / "votes.csv")
    assert list(tmp_path.iterdir()) == []


def test_bad_input(filled: wc.Crowd, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"end it in \.csv, \.tsv or \.parquet"):
        write_chunks([filled], tmp_path / "votes.xlsx")
    with pytest.raises(UsageError, match="there are no chunks to write"):
        write_chunks([], tmp_path / "votes.csv")
