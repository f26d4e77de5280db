"""Round trips of votes with any ids through every format."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import MAX_WEIGHT, MIN_WEIGHT

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*but count as different:wisecrowd.errors.DataWarning"
)  # so they are meant

TABLES = ["votes.csv", "votes.tsv", "votes.parquet", "votes.jsonl"]
HOSTILE = ["007", "7", "NA", "null", "None", "nan", "", " ", "a,b", 'say "no"', "two\nlines", "\r\n", "\t", "é", "日本", "true",
           "1.0", "1e5", ";", "'", "\\", "\\n", "2020-01-01", "-", "\ufeff"]  # fmt: skip

# A zero byte makes a CSV file one that is not text.
texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
numbers = st.floats(allow_nan=False, allow_infinity=False)
weights = st.floats(min_value=MIN_WEIGHT, max_value=MAX_WEIGHT)


@st.composite
def crowds(draw: st.DrawFn, ids: st.SearchStrategy[Any] = texts, numeric: bool = False) -> Crowd:
    pairs = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=20, unique=True))
    label = draw(st.lists(numbers if numeric else ids, min_size=len(pairs), max_size=len(pairs)))
    crowd = Crowd.from_triples([(*pair, said) for pair, said in zip(pairs, label, strict=True)], numeric=numeric)
    form = draw(st.sampled_from(["plain", "weighted", "completed", "without workers"]))
    if form == "plain" or (form == "without workers" and numeric):
        return crowd
    if form == "without workers":
        return crowd.drop_workers()
    weight = draw(st.lists(weights, min_size=len(pairs), max_size=len(pairs)))
    observed = np.array(draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))))
    return Crowd.from_codes(
        crowd.task,
        crowd.worker,
        crowd.label,
        tasks=crowd.tasks,
        workers=crowd.workers,
        classes=crowd.classes,
        weight=weight,
        observed=observed if form == "completed" and not observed.all() else None,
    )


def again(crowd: Crowd, name: str) -> Crowd:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        wc.write(crowd, path)
        assert [entry.name for entry in Path(folder).iterdir()] == [name], "nothing is left beside it"
        options: dict[str, Any] = {} if "." not in name else {"numeric": crowd.is_numeric}
        if not crowd.has_workers and "." in name:
            options["worker"] = False
        return wc.read(path, **options)


@pytest.mark.parametrize("name", [*TABLES, "dataset"])
@given(crowd=crowds())
def test_text_ids(name: str, crowd: Crowd) -> None:
    assert again(crowd, name) == crowd


@pytest.mark.parametrize("name", [*TABLES, "dataset"])
@given(crowd=crowds(numeric=True))
def test_numbers(name: str, crowd: Crowd) -> None:
    assert again(crowd, name) == crowd


@pytest.mark.parametrize("name", ["votes.parquet", "votes.jsonl", "dataset"])
@given(crowd=crowds(st.integers(-(2**63), 2**63 - 1)))
def test_integer_ids_where_the_format_knows_integers(name: str, crowd: Crowd) -> None:
    assert again(crowd, name) == crowd


@given(crowd=crowds(st.integers(0, 99)))
def test_integer_ids_become_text_in_csv(crowd: Crowd) -> None:
    read = again(crowd, "votes.csv")
    assert set(read.tasks) == {str(task) for task in crowd.tasks}
    assert read.n_votes == crowd.n_votes


@pytest.mark.parametrize("name", ["votes.parquet", "votes.jsonl", "dataset"])
def test_zero_bytes_and_booleans(name: str) -> None:
    crowd = Crowd.from_triples([("a\0", "x", True), ("a", "x", False), ("\0", "x", True)])
    assert again(crowd, name) == crowd


@pytest.mark.slow
@given(crowd=crowds(), data=st.data())
def test_a_folder_keeps_what_nobody_used(crowd: Crowd, data: st.DataObject) -> None:
    spare = data.draw(st.lists(texts, unique=True, max_size=3))

    def more(index: pd.Index) -> pd.Index:
        return pd.Index(data.draw(st.permutations([*index, *(text for text in spare if text not in index)])))

    tasks, workers, classes = (
        more(crowd.tasks),
        more(pd.Index(["x"]) if crowd.workers is None else crowd.workers),
        more(crowd.classes),
    )
    larger = Crowd.from_codes(
        tasks.get_indexer(crowd.tasks)[crowd.task],
        None if crowd.workers is None else workers.get_indexer(crowd.workers)[crowd.worker],
        classes.get_indexer(crowd.classes)[crowd.label],
        tasks=tasks,
        workers=None if crowd.workers is None else workers,
        classes=classes,
        duplicates="keep",
    )
    assert again(larger, "dataset") == larger


def test_repeated_votes_survive(tmp_path: Path) -> None:
    crowd = Crowd.from_triples([("a", "x", "p"), ("a", "x", "p"), ("a", "x", "q")], duplicates="keep")
    for name in (*TABLES, "votes.csv.gz", "votes.jsonl.gz", "dataset"):
        wc.write(crowd, tmp_path / name)
        assert wc.read(tmp_path / name, duplicates="keep") == crowd
