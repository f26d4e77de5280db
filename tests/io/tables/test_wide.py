"""Wide tables with a header: a row per task and a column per worker."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import EmptyInput, MissingColumn

TEXT = "photo,ann,bob,cy\n007,cat,,dog\n008, ,dog,dog\n009,NA,cat,\n"
TRIPLES = [("007", "ann", "cat"), ("007", "cy", "dog"), ("008", "bob", "dog"), ("008", "cy", "dog")]
TRIPLES += [("009", "ann", "NA"), ("009", "bob", "cat")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "wide.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_cells_are_votes(path: Path, separator: str) -> None:
    path.write_text(TEXT.replace(",", separator), encoding="utf-8")
    assert wc.read(path, format="wide") == wc.Crowd.from_triples(TRIPLES)


def test_excel_and_parquet(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table.to_excel(tmp_path / "wide.xlsx", index=False)
    table.to_parquet(tmp_path / "wide.parquet", index=False)
    for name in ("wide.xlsx", "wide.parquet"):
        assert wc.read(tmp_path / name, format="wide") == wc.Crowd.from_triples(TRIPLES)


def test_the_task_column_is_named_recognised_or_the_first(path: Path) -> None:
    path.write_text("ann,nr,bob\ncat,1,dog\n", encoding="utf-8")
    assert wc.read(path, format="wide", task="nr").workers.tolist() == ["ann", "bob"]
    path.write_text("ann,task,bob\ncat,1,dog\n", encoding="utf-8")
    assert wc.read(path, format="wide").workers.tolist() == ["ann", "bob"]
    path.write_text("x,ann,bob\n1,cat,dog\n", encoding="utf-8")
    assert wc.read(path, format="wide").tasks.tolist() == ["1"]


def test_numbers_are_labels_or_measurements(path: Path) -> None:
    path.write_text("task,ann,bob\n1,0.5,0.75\n", encoding="utf-8")
    assert wc.read(path, format="wide", numeric=True).label.tolist() == [0.5, 0.75]
    assert wc.read(path, format="wide", classes=["0.5", "0.75"]).n_classes == 2


def test_empty_worker_columns_are_left_out_with_a_note(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text("task,ann,bob,cy\n1,cat,,\n2,dog,, \n", encoding="utf-8")
    with caplog.at_level("INFO", "wisecrowd.io"):
        assert wc.read(path, format="wide").workers.tolist() == ["ann"]
    assert "left out 2 worker columns without votes: 'bob', 'cy'" in caplog.text


def test_the_error_of_an_ordinary_table_advises_this_format(path: Path) -> None:
    with pytest.raises(MissingColumn, match=r'say format="wide" \(--format wide\)'):
        wc.read(path)
    path.write_text("task,ann,bob,cy\n1,cat,dog,cat\n", encoding="utf-8")
    with pytest.raises(MissingColumn, match=r'each further column holds the labels of one worker, say format="wide"'):
        wc.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,ann,ann\n1,x,y\n", "several columns are called 'ann'"),
        ("task\n1\n", "the only column found is 'task'"),
        ("task,ann\n,x\n2,y\n", "1 row have labels but no task"),
        ('[{"task": 1, "ann": "x"}]', "this is JSON"),
    ],
)
def test_problems_are_reported(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        wc.read(path, format="wide")


def test_rows_without_a_task_can_be_dropped(path: Path) -> None:
    path.write_text("task,ann\n,x\n2,y\n", encoding="utf-8")
    assert wc.read(path, format="wide", missing="drop").tasks.tolist() == ["2"]


def test_a_table_without_votes_and_options_for_long_tables(path: Path) -> None:
    with pytest.raises(UsageError, match="has no label column"):
        wc.read(path, format="wide", label="ann")
    assert not wc.read(path, format="wide", worker=False).has_workers
    path.write_text("task,ann,bob\n1,,\n", encoding="utf-8")
    with pytest.raises(EmptyInput, match="every cell below the header is empty"):
        wc.read(path, format="wide")


@pytest.mark.parametrize("header", ["task,worker,label", "image_id,rater,answer"])
def test_a_long_table_is_recognised_by_its_columns(tmp_path: Path, header: str) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"{header}\nt1,ann,cat\nt1,bob,dog\nt2,ann,cat\n")
    columns = ", ".join(repr(name) for name in header.split(","))
    message = rf'this is a long table, with a row per vote and the columns {columns}; .* Leave out format="wide" \(--format wide\)'
    with pytest.raises(InputError, match=message):
        wc.read(path, format="wide")
    (finding,) = wc.check_votes(path, format="wide").errors
    assert "this is a long table" in finding.message


def test_a_long_table_is_recognised_by_tasks_that_repeat(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("nr,who,what\n" + "".join(f"{task},w{worker},cat\n" for task in range(4) for worker in range(3)))
    with pytest.raises(InputError, match="it has 12 rows but only 4 tasks in the column 'nr', as a long table has"):
        wc.read(path, format="wide")
    assert wc.read(path, format="wide", duplicates="keep").n_tasks == 4  # the user chose a rule for that
