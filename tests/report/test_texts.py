"""Texts of tasks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.problems import MissingColumn
from wisecrowd.report.texts import read_texts


def test_the_columns_are_recognised_or_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text('question,other,sentence\n007,x,"two\nlines, quoted"\n8,y,\n', encoding="utf-8")
    assert read_texts(path).to_dict() == {"007": "two\nlines, quoted"}
    assert read_texts(path, task="question", text="other").to_dict() == {"007": "x", "8": "y"}


def test_a_dataset_folder_may_have_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no texts"):
        read_texts(tmp_path)
    pd.DataFrame({"task": ["a"], "text": ["What?"]}).to_parquet(tmp_path / "texts.parquet")
    assert read_texts(tmp_path).to_dict() == {"a": "What?"}
    pd.DataFrame({"task": ["a"], "number": [1]}).to_parquet(tmp_path / "texts.parquet")
    with pytest.raises(InputError, match="expected the columns task and text; got 'task', 'number'"):
        read_texts(tmp_path)


def test_missing_columns_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text("task,colour\n1,red\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column of texts was recognised"):
        read_texts(path)
    with pytest.raises(MissingColumn, match="'words'"):
        read_texts(path, text="words")
    path.write_text("colour,text\nred,x\n", encoding="utf-8")
    with pytest.raises(MissingColumn, match="task"):
        read_texts(path)
    with pytest.raises(InputError, match="absent"):
        read_texts(tmp_path / "absent.csv")
