"""Crowds as Arrow tables."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.tables import crowd_tables
from wisecrowd.io.tables.crowd_tables import crowd_to_table, iter_text_tables

ROWS = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]


def test_rows_are_those_of_the_crowd() -> None:
    crowd = Crowd.from_triples(ROWS)
    assert [tuple(row.values()) for row in crowd_to_table(crowd).to_pylist()] == ROWS
    assert pa.types.is_dictionary(crowd_to_table(crowd).schema.field("task").type), "no text is repeated"


def test_columns_without_information_are_left_out_unless_asked_for() -> None:
    crowd = Crowd.from_triples(ROWS)
    assert crowd_to_table(crowd).column_names == ["task", "worker", "label"]
    table = crowd_to_table(crowd, extra_columns=("weight", "observed", "time"))
    assert table.column_names == ["task", "worker", "label", "weight", "observed", "time"]
    assert table["weight"].to_pylist() == [1, 1, 1]
    assert table["observed"].to_pylist() == [True] * 3
    assert table["time"].null_count == 3


def test_columns_with_information_are_written() -> None:
    frame = pd.DataFrame(ROWS, columns=["task", "worker", "label"]).assign(
        weight=[1.0, 2.0, 1.0], time=[0.0, 60.0, 120.0]
    )
    table = crowd_to_table(Crowd.from_frame(frame, weight="weight", time="time"))
    assert table["weight"].to_pylist() == [1, 2, 1]
    assert [value.timestamp() for value in table["time"].to_pylist()] == [0, 60, 120]


def test_numbers_and_votes_without_workers() -> None:
    numbers = crowd_to_table(Crowd.from_triples([("t1", "ann", 0.5)], numeric=True))
    assert numbers["label"].to_pylist() == [0.5]
    assert crowd_to_table(Crowd.from_triples(ROWS).drop_workers()).column_names[:2] == ["task", "label"]


@pytest.mark.parametrize("portion", [1, 2, 100])
def test_portions_of_text_are_the_whole(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd_tables, "_PORTION_VOTES", portion)
    crowd = Crowd.from_triples([(task, worker, task % 2 == 0) for task in range(2) for worker in range(2)])
    portions = list(iter_text_tables(crowd, lambda ids: ids.cast(pa.string())))
    assert len(portions) == max(1, -(-4 // portion))
    rows = pa.concat_tables(portions).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("0", "0", "true"), ("0", "1", "true"), ("1", "0", "false"), ("1", "1", "false")
    ]  # fmt: skip


def test_a_crowd_without_votes_is_one_empty_portion() -> None:
    (portion,) = iter_text_tables(Crowd.from_triples(ROWS).take([]), lambda ids: ids)
    assert portion.num_rows == 0
    assert portion.column_names == ["task", "worker", "label"]


def test_ids_of_several_types_cannot_be_written() -> None:
    with pytest.raises(InputError, match="the task ids mix types and cannot be written"):
        crowd_to_table(Crowd.from_codes([0, 1], [0, 0], [0, 0], tasks=[1, "b"], workers=["x"], classes=["p"]))
