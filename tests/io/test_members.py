"""Tables of who is who among workers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.members import parse_kind, read_members
from wisecrowd.io.problems import MissingColumn

ROWS = [("7", "machine", "gpt"), ("007", "person", None)]


@pytest.mark.parametrize("name", ["members.csv", "members.tsv", "members.parquet", "members.csv.gz"])
def test_all_tables_say_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    frame = pd.DataFrame(ROWS, columns=["worker", "kind", "group"])
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        text = frame.to_csv(index=False, sep="\t" if name.endswith(".tsv") else ",")
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert read_members(path).reset_index().to_numpy().tolist() == [list(row) for row in ROWS]


def test_columns_go_by_many_names(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text("Annotator ID,Type,Model\na, LLM ,gpt\nb,Human,\nc,,llama\n")
    found = read_members(path)
    assert found["kind"].tolist() == ["machine", "person", None]
    assert found["group"].tolist() == ["gpt", None, "llama"]
    path.write_text("who,kind\na,machine\n")
    assert read_members(path, worker="who")["kind"].to_dict() == {"a": "machine"}


def test_semicolons_are_recognised_as_for_votes(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text("worker;kind\na;machine\n")
    assert read_members(path)["kind"].to_dict() == {"a": "machine"}


def test_one_of_both_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text("worker,group\na,x\nb,x\n")
    assert read_members(path)["kind"].isna().all()
    path.write_text("worker,kind\na,person\n")
    assert read_members(path)["group"].isna().all()


def test_saying_it_twice_does_no_harm_and_contradictions_do(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text("worker,kind\na,machine\na,llm\n")
    assert read_members(path).index.tolist() == ["a"]
    path.write_text("worker,kind\na,machine\na,person\n")
    with pytest.raises(InputError, match=r"members\.csv: it contradicts itself about 'a'; keep one row"):
        read_members(path)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("worker,kind\na,robot\n", InputError, "the kind of 'a' must be person or machine; got 'robot'"),
        ("worker,kind\na,persn\n", InputError, "Did you mean 'person'"),
        ("worker,note\na,x\n", MissingColumn, "the columns are 'worker', 'note'"),
        ("worker,team,vendor\na,x,y\n", MissingColumn, "could be 'team' or 'vendor'; call it 'group'"),
        ("group,kind\nx,person\n", MissingColumn, "no worker column"),
        ("worker,kind\n ,person\n", InputError, "every row needs a worker"),
        ("worker,kind\na,person,more\n", InputError, "cannot be read as a table separated by ','"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, kind: type[InputError], message: str) -> None:
    path = tmp_path / "members.csv"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_members(path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_members(tmp_path / "nothing.csv")
    other = tmp_path / "members.ods"
    other.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"\.csv, \.tsv, \.xlsx or \.parquet"):
        read_members(other)
    broken = tmp_path / "members.parquet"
    broken.write_bytes(b"no parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_members(broken)


def test_kinds_go_by_many_names() -> None:
    assert [parse_kind(word) for word in ("People", "judge", "AI", "crowd")] == ["person", "machine", "machine", None]
