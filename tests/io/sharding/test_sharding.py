"""Files become shards: the same crowd that `wisecrowd.read` gives, however often the work was interrupted."""

from __future__ import annotations

import contextlib
import csv
import datetime
import gzip
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError
from wisecrowd.utils import progress

pytest.importorskip("duckdb", reason="sharding files needs duckdb, of the extra [cluster]")

from wisecrowd.io.sharding import shard_files

#: Every test starts DuckDB several times; `tests/cli/test_shard.py` has the main paths for the fast tier.
pytestmark = pytest.mark.slow

HOSTILE = [
    text
    for texts in json.loads((Path(__file__).parents[2] / "hostile.json").read_text(encoding="utf-8")).values()
    for text in texts
    if not any("\ud800" <= char <= "\udfff" for char in text)
]
Row = tuple[Any, ...]


def write_csv(path: Path, rows: Sequence[Row], names: Sequence[str] = ("task", "worker", "label")) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(names)
        writer.writerows(rows)
    return path


def write_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def assert_same(sharded: ShardedCrowd, crowd: wc.Crowd) -> None:
    """The same ids, of the same kind and in the same order; the same votes of each task, in the same order."""
    loaded = sharded.load()
    assert crowd.classes is not None
    assert loaded.classes is not None
    for ours, theirs in ((loaded.classes, crowd.classes), (loaded.workers, crowd.workers), (loaded.tasks, crowd.tasks)):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours.dtype == theirs.dtype
            assert sorted(ours.tolist()) == sorted(theirs.tolist())
    assert loaded.classes.tolist() == crowd.classes.tolist()
    if crowd.workers is not None and loaded.workers is not None:
        assert loaded.workers.tolist() == crowd.workers.tolist()
    place = crowd.tasks.get_indexer(loaded.tasks)
    order = np.argsort(place[loaded.task], kind="stable")
    assert place[loaded.task][order].tolist() == crowd.task.tolist()
    assert loaded.label[order].tolist() == crowd.label.tolist()
    assert loaded.weight[order].tolist() == crowd.weight.tolist()
    if crowd.worker is not None:
        assert loaded.worker is not None
        assert loaded.worker[order].tolist() == crowd.worker.tolist()
    assert (sharded.pairs.worker.tolist(), sharded.pairs.label.tolist()) == (
        crowd.pairs.worker.tolist(),
        crowd.pairs.label.tolist(),
    )


@pytest.fixture
def rows() -> list[Row]:
    """A crowd of 200 votes without repeats."""
    made = wc.simulate_crowd(50, 10, 3, votes_per_task=4, random_state=0).crowd
    return list(made.to_frame().itertuples(index=False, name=None))


@pytest.fixture
def files(tmp_path: Path, rows: list[Row]) -> list[Path]:
    """The same votes in five files, of text and of Parquet, in no order of tasks."""
    shuffled = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    parts = [shuffled[start : start + 40] for start in range(0, 200, 40)]
    found = [write_csv(tmp_path / f"{number}.csv", part) for number, part in enumerate(parts[:3])]
    for number, part in enumerate(parts[3:], start=3):
        task, worker, label = (list(column) for column in zip(*part, strict=True))
        found.append(write_parquet(tmp_path / f"{number}.parquet", task=task, worker=worker, label=label))
    return found


# ---------------------------------------------------------------------- the crowd is that of `wisecrowd.read`


@pytest.mark.slow
def test_any_files_make_the_crowd_of_their_rows(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    crowd = shard_files(files, tmp_path / "crowd", votes_per_shard=30)
    assert crowd.n_shards >= 5
    assert_same(crowd, wc.Crowd.from_triples(rows))
    assert_same(wc.Crowd.open(tmp_path / "crowd"), wc.Crowd.from_triples(rows))
    assert not (tmp_path / "crowd" / ".sharding").exists()
    for shard in crowd.shards:
        assert shard.tasks.is_monotonic_increasing


ids = st.one_of(st.sampled_from(HOSTILE), st.sampled_from("abc"), st.text(st.characters(codec="utf-8"), max_size=20))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*but count as different:wisecrowd.errors.DataWarning")
@pytest.mark.filterwarnings("ignore:.*rows were dropped because:wisecrowd.errors.DataWarning")
@settings(max_examples=min(20, settings.default.max_examples))
@given(
    votes=st.lists(st.tuples(ids, ids, ids), min_size=1, max_size=30),
    n_files=st.integers(1, 3),
    votes_per_shard=st.integers(1, 30),
    duplicates=st.sampled_from(["first", "last", "distinct", "keep"]),
    weighted=st.booleans(),
    has_workers=st.booleans(),
    parquet=st.booleans(),
)
def test_odd_ids_are_those_of_read(
    tmp_path_factory: pytest.TempPathFactory, votes: list[Row], n_files: int, votes_per_shard: int, duplicates: Any,
    weighted: bool, has_workers: bool, parquet: bool,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("odd")
    names = ["task", "worker", "label", *(["weight"] if weighted else [])]
    told = [(*vote, 0.5 + number % 3) if weighted else vote for number, vote in enumerate(votes)]
    cuts = np.linspace(0, len(told), n_files + 1).astype(int)
    paths = [
        write_csv(folder / f"{number}.csv", told[begin:end], names)
        for number, (begin, end) in enumerate(itertools.pairwise(cuts))
    ]
    whole = write_csv(folder / "whole.csv", told, names)
    if parquet:
        columns = dict(zip(names, map(list, zip(*told, strict=True)), strict=True))
        whole = write_parquet(folder / "whole.parquet", **columns)
        paths = [write_parquet(folder / f"{number}.parquet", **{name: pa.array(values[begin:end], pa.array(values).type)
                                                                for name, values in columns.items()})
                 for number, (begin, end) in enumerate(itertools.pairwise(cuts))]  # fmt: skip
    options: dict[str, Any] = {"duplicates": duplicates} if has_workers else {"worker": False}
    with pytest.warns(DataWarning, match="class of its own") if _suspicious(votes) else contextlib.nullcontext():
        crowd = shard_files(paths, folder / "crowd", votes_per_shard=votes_per_shard, n_jobs=1, **options)
        assert_same(crowd, wc.read(whole, **options))


def _suspicious(votes: list[Row]) -> bool:
    from wisecrowd.io.tables.numeric_labels import find_suspect_numbers

    return len(find_suspect_numbers(pd.Index(sorted({vote[2] for vote in votes})))) > 0


TEXTS = {
    "leading zeros": "task,worker,label\n007,1,NA\n7,1,null\n08,1,None\n9,1,1.0\n",
    "separated by semicolons": "task;worker;label\nt1;ann;a,b\nt2;ann;c\n",
    "quotes and lines": 'task,worker,label\n"two\nlines","a ""b""",x\n\nt2,"a,b",y\n',
    "empty text": 'task,worker,label\n"",ann,""\nt2,"",x\n',
    "names of other tools": "Item_ID,annotator,answer,time\nt1,ann,x,12\nt2,bob,y,13\n",
    "weights": "task,worker,label,weight\nt1,ann,x,0.5\nt1,bob,y,1e1\n",
    "weights of one": "task,worker,label,weight\nt1,ann,x,1\nt1,bob,y,1.0\n",
    "byte-order mark": "\ufefftask,worker,label\nt1,ann,x\n",
    "line ends of Windows": "task,worker,label\r\nt1,ann,x\r\nt2,ann,y\r\n",
    "no last line end": "task,worker,label\nt1,ann,x",
    "other columns": "x,task,y,worker,label,z\n1,t1,2,ann,x,3\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_odd_text(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"votes.{suffix}"
    raw = TEXTS[name].encode()
    path.write_bytes(gzip.compress(raw) if suffix.endswith("gz") else raw)
    assert_same(shard_files(path, tmp_path / "crowd"), wc.read(path, time=False))


TABLES: dict[str, dict[str, Any]] = {
    "integers": {"task": [10, 9, -3], "worker": [2, 10, 1], "label": [1, 0, 1]},
    "small integers": {name: pa.array([3, 1, 2], pa.int16()) for name in ("task", "worker", "label")},
    "large integers": {"task": [2**62 + 1, 2**62, 0], "worker": pa.array([2**64 - 1, 0, 1], pa.uint64()), "label": list("aba")},
    "whole floats": {"task": [10.0, 9.0, -0.0], "worker": [1.0, 2.0, 1.0], "label": [0.0, 1.0, 1.0]},
    "fractions": {"task": [0.5, 10.0, 9.0], "worker": [1.5, 2.0, 1.0], "label": list("aba")},
    "truth values": {"task": [True, False, True], "worker": list("abc"), "label": [True, False, False]},
    "days": {name: [datetime.date(2024, 5, day) for day in (3, 1, 2)] for name in ("task", "worker", "label")},
    "moments": {name: [datetime.datetime(2024, 5, day) for day in (3, 1, 2)] for name in ("task", "worker", "label")},
    "categories": {name: pa.array(["b", "a", "b"]).dictionary_encode() for name in ("task", "label")} | {"worker": [1, 2, 3]},
    "large text": {name: pa.array(["b", "a", "c"], pa.large_string()) for name in ("task", "worker", "label")},
    "long text": {name: [letter * 100 for letter in "bac"] for name in ("task", "worker", "label")},
    "names that differ by case": {"Task": [1, 1, 1], "task": [1, 2, 3], "worker": [1, 2, 3], "label": [1, 2, 1]},
    "our own names": {"task": [1, 2, 3], "worker": list("abc"), "label": list("xyx"), "row": [1, 1, 1], "id": [0, 0, 0]},
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_kinds_of_ids_stay(tmp_path: Path, name: str) -> None:
    path = write_parquet(tmp_path / "votes.parquet", **TABLES[name])
    assert_same(shard_files(path, tmp_path / "crowd", votes_per_shard=1), wc.read(path))


@pytest.mark.slow
def test_many_batches_are_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wc.simulate_crowd(3000, 40, 4, votes_per_task=5, random_state=2).crowd
    for name in ("votes.csv", "votes.parquet"):
        wc.write(made, tmp_path / name)
    monkeypatch.setattr("wisecrowd.io.sharding._row_stream.BLOCK_BYTES", 4096)
    monkeypatch.setattr("wisecrowd.io.sharding._row_stream._BATCH_ROWS", 1000)
    for name in ("votes.csv", "votes.parquet"):
        crowd = shard_files(tmp_path / name, tmp_path / f"{name}.crowd", votes_per_shard=2000)
        assert_same(crowd, wc.read(tmp_path / name))
        assert 6 <= crowd.n_shards <= 9


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_show(tmp_path: Path, files: list[Path], n_jobs: int) -> None:
    one = shard_files(files, tmp_path / "one", votes_per_shard=50, n_jobs=1)
    assert shard_files(files, tmp_path / "two", votes_per_shard=50, n_jobs=n_jobs).digest == one.digest


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebirds", "rte", "labelme"])
def test_real_votes(tmp_path: Path, data_folder: Path, name: str) -> None:
    path = data_folder / name / "annotations.parquet"
    if not path.exists():
        pytest.skip(f"WISECROWD_DATA has no dataset {name!r}")
    assert_same(shard_files(path, tmp_path / "crowd", votes_per_shard=2000), wc.read(path, time=False))


def test_too_little_memory(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    with pytest.raises(InputError, match=r"memory limit is too low; raise it .*--memory 8GB.*same command to go on"):
        shard_files(files, tmp_path / "crowd", memory="1MB")
    assert_same(shard_files(files, tmp_path / "crowd"), wc.Crowd.from_triples(rows))


# ---------------------------------------------------------------------- repeats and holes


@pytest.mark.parametrize("duplicates", ["first", "last", "distinct", "keep"])
@pytest.mark.parametrize("weighted", [False, True])
def test_repeats_over_files(tmp_path: Path, duplicates: Any, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 5, (120, 3)), columns=["task", "worker", "label"]).astype(str)
    if weighted:
        frame["weight"] = rng.integers(1, 4, 120).astype(float)
    for number in range(4):
        frame[30 * number : 30 * (number + 1)].to_csv(tmp_path / f"{number}.csv", index=False)
    crowd = shard_files(tmp_path / "?.csv", tmp_path / "crowd", duplicates=duplicates, votes_per_shard=20)
    weight = "weight" if weighted else None
    assert_same(crowd, wc.Crowd.from_frame(frame, weight=weight, duplicates=duplicates))


@pytest.mark.slow
def test_repeats_are_refused_and_a_rule_goes_on_from_there(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    again = write_csv(tmp_path / "z.csv", rows[:1])
    with pytest.raises(InputError, match=r"1 rows .* worker 'w\d+' labelled task 't\d+' twice.*duplicates='first'"):
        shard_files([*files, again], tmp_path / "crowd", votes_per_shard=30)
    reported: list[str] = []
    with progress.listen(lambda what, *_: reported.append(what)):
        crowd = shard_files([*files, again], tmp_path / "crowd", votes_per_shard=30, duplicates="first")
    assert "Reading files" not in reported
    assert_same(crowd, wc.Crowd.from_triples(rows))


def test_holes(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt1,ann,x\n\nt2,,y\nt3,bob,\n")
    with pytest.raises(InputError, match=r"votes\.csv: 1 of the first 3 rows has no worker \(line 4\).*--missing drop"):
        shard_files(path, tmp_path / "crowd")
    assert_same(shard_files(path, tmp_path / "crowd", missing="drop"), wc.read(path, missing="drop"))
    table = write_parquet(
        tmp_path / "v.parquet", task=[1.0, None, np.nan, 2.0], worker=list("abcd"), label=[None, *"xyz"]
    )
    with pytest.raises(InputError, match=r"2 of the first 4 rows have no task \(row 1, 2\)"):
        shard_files(table, tmp_path / "more")
    assert_same(shard_files(table, tmp_path / "more", missing="drop"), wc.read(table, missing="drop"))


@pytest.mark.parametrize(
    ("weights", "advice"),
    [("0", r"1 of the first 2 weights do not lie between .* \(line 3\)"), ("much", "must hold numbers.*line 3"),
     ("", "do not lie between"), ("inf", "do not lie between"), ("1e300", "do not lie between")],
)  # fmt: skip
def test_bad_weights(tmp_path: Path, weights: str, advice: str) -> None:
    (tmp_path / "votes.csv").write_text(f"task,worker,label,weight\nt1,a,x,1\nt2,a,x,{weights}\n")
    with pytest.raises(InputError, match=advice):
        shard_files(tmp_path / "votes.csv", tmp_path / "crowd")


# ---------------------------------------------------------------------- what is refused


BAD: dict[str, tuple[str, str]] = {
    "a row of another length": ("task,worker,label\nt1,ann,x\nt2,ann\n", "line 3 has 2 columns, not 3"),
    "a quotation mark left open": ('task,worker,label\nt1,ann,"x\n', "never closed"),
    "another encoding": ("task,worker,label\nt1,ann,\udce9\n", "not in UTF-8"),
    "no label column": ("task,worker\nt1,ann\n", "no label column"),
    "no votes": ("task,worker,label\n", "no votes"),
    "nothing": ("", "is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str) -> None:
    text, advice = BAD[name]
    (tmp_path / "votes.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=advice):
        shard_files(tmp_path / "votes.csv", tmp_path / "crowd")
    assert not (tmp_path / "crowd" / "crowd.json").exists()


def test_a_file_without_votes_among_others(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    write_csv(tmp_path / "9.csv", [])
    assert_same(shard_files([*files, tmp_path / "9.csv"], tmp_path / "crowd"), wc.Crowd.from_triples(rows))


def test_fractional_labels(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "v.parquet", task=[1, 2], worker=[1, 2], label=[0.5, 1.0])
    with pytest.raises(InputError, match=r"fractional numbers \(0\.5, 1\.0\)"):
        shard_files(path, tmp_path / "crowd")


def test_too_many_pairs(tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.io.sharding._stages.MAX_PAIRS", 5)
    with pytest.raises(InputError, match="different combinations of worker and label, and at most 5 are supported"):
        shard_files(files, tmp_path / "crowd")


@pytest.mark.slow
def test_kinds_that_do_not_mix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def one(name: str, task: Any) -> Path:
        return write_parquet(tmp_path / name, task=task, worker=["ann"], label=["x"])

    numbers, text = (
        one("numbers.parquet", [7]),
        write_csv(tmp_path / "text.csv", [("007", "bob", "x"), ("7", "bob", "x")]),
    )
    with caplog.at_level("INFO", "wisecrowd"):
        assert sorted(shard_files([numbers, text], tmp_path / "a").tasks) == ["007", "7"]
    assert "numbers in" in caplog.text
    assert "all are read as text" in caplog.text
    crowd = shard_files([numbers, one("more.parquet", [8.0])], tmp_path / "b")
    assert crowd.tasks.tolist() == [7, 8]
    assert crowd.tasks.dtype == np.int64
    assert sorted(shard_files([numbers, one("half.parquet", [0.5])], tmp_path / "c").tasks) == [0.5, 7.0]
    with pytest.raises(InputError, match=r"bool values in .*truths\.parquet and int64 values in .*numbers\.parquet"):
        shard_files([one("truths.parquet", [True]), numbers], tmp_path / "d")
    with pytest.raises(InputError, match="holds list<"):
        shard_files(one("lists.parquet", [[1]]), tmp_path / "e")
    with pytest.raises(InputError, match=r"task column cannot be read as double.*"):
        shard_files([one("large.parquet", [2**60 + 1]), one("half.parquet", [0.5])], tmp_path / "f")
    weighted = write_parquet(tmp_path / "w.parquet", task=[1], worker=["a"], label=["x"], weight=[2.0])
    with pytest.raises(InputError, match=r"w\.parquet has a weight column and .*numbers\.parquet has none"):
        shard_files([numbers, weighted], tmp_path / "g")


@pytest.mark.slow
def test_paths(tmp_path: Path, files: list[Path], rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in [1]" / "deep").mkdir(parents=True)
    for file in files:
        file.rename(tmp_path / "in [1]" / "deep" / file.name)
    (tmp_path / "in [1]" / "_SUCCESS.csv").write_text("not votes")
    (tmp_path / "in [1]" / "notes.txt").write_text("not votes")
    whole = wc.Crowd.from_triples(rows)
    assert_same(shard_files("in [1]", "in [1]/it's * one?", votes_per_shard=50), whole)
    assert_same(shard_files(["in [1]/deep/0.csv", "in [[]1]/d*/*.csv", "in [1]/deep"], "two"), whole)
    with pytest.raises(InputError, match=r"no file matches x\*"):
        shard_files("x*.csv", "three")
    with pytest.raises(InputError, match="there is no file or folder nowhere"):
        shard_files("nowhere.csv", "three")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no CSV, TSV or Parquet files in the folder empty"):
        shard_files("empty", "three")
    with pytest.raises(UsageError, match="no files of votes were given"):
        shard_files([], "three")
    (tmp_path / "votes.jsonl").write_text('{"task": 1, "worker": 2, "label": 3}\n')
    with pytest.raises(InputError, match="shards are made of CSV, TSV and Parquet"):
        shard_files("votes.jsonl", "three")
    assert not Path("three").exists()


def test_options_that_do_not_exist(tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for options, advice in (
        ({"duplicates": "frist"}, "Did you mean 'first'"),
        ({"missing": "keep"}, "missing must be"),
        ({"votes_per_shard": 0}, "1 or more"),
        ({"memory": "plenty"}, "memory must be given as 4GB"),
        ({"n_jobs": 0}, "n_jobs"),
    ):
        with pytest.raises(UsageError, match=advice):
            shard_files(files, tmp_path / "crowd", **options)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[cluster\]"):
        shard_files(files, tmp_path / "crowd")
