"""Times of votes: reading, parts of a crowd, and round trips."""

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, read, write
from wisecrowd.complete.ds_fill import DSFill
from wisecrowd.errors import InputError
from wisecrowd.io.tables.chunks import write_chunks

NOON = 1717156800.0  # 2024-05-31 12:00 UTC


def crowd() -> Crowd:
    frame = pd.DataFrame(
        {
            "task": ["t1", "t1", "t2", "t2"],
            "worker": ["ann", "bob", "ann", "bob"],
            "label": ["cat", "dog", "dog", "dog"],
            "at": ["2024-05-31 12:00:00.25", None, "2024-05-31 12:00:02", "2024-05-31 12:00:01"],
        }
    )
    return Crowd.from_frame(frame, time="at")


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-31 12:00",
        "2024-05-31T12:00:00Z",
        "2024-05-31 14:00:00+02:00",
        "5/31/2024 12:00:00",
        "31 May 2024 12:00",
        "1717156800",
        "1717156800000",
        "1717156800000000",
        "1717156800000000000",
        "1.7171568e9",
    ],
)
def test_times_are_read_however_they_are_written(tmp_path, text):
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label,created_at\nt1,ann,cat,{text}\nt1,bob,cat,\n")
    assert read(path).time.tolist()[0] == NOON
    assert np.isnan(read(path).time[1])


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[s]", "datetime64[ns, UTC]"])
def test_times_of_dataframes(dtype):
    at = pd.Series(["2024-05-31 12:00"]).astype(dtype)
    frame = pd.DataFrame({"task": ["t1"], "worker": ["ann"], "label": ["cat"], "at": at})
    assert Crowd.from_frame(frame, time="at").time.tolist() == [NOON]


@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.jsonl", "votes.parquet", "folder"])
def test_round_trip(tmp_path, name):
    write(crowd(), tmp_path / name)
    again = read(tmp_path / name)
    assert again == crowd()
    assert np.array_equal(again.time, crowd().time, equal_nan=True)
    assert not read(tmp_path / name, time=False).has_times


@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet"])
def test_pieces_of_which_some_have_no_times(tmp_path, name):
    votes = crowd().take([0, 1, 2, 3])
    chunks = [votes[[0]].take([1]), votes[[1]]]
    write_chunks(chunks, tmp_path / name, times=True)
    again = read(tmp_path / name)
    assert again.n_votes == 3
    assert np.isnan(again.time).tolist() == [True, False, False]


def test_parts_and_unions_keep_times():
    votes = crowd()
    assert votes[[1]].time.tolist() == [NOON + 2, NOON + 1]
    assert votes.select_workers(["bob"]).time.tolist()[1] == NOON + 1
    assert np.array_equal(Crowd.join_chunks(votes.split_tasks(2)).time, votes.time, equal_nan=True)
    timeless = Crowd.from_triples([("t3", "ann", "cat")])
    assert np.isnan(Crowd.concat([votes, timeless]).time).sum() == 2
    assert Crowd.concat([votes, timeless]).take([4]).has_times is False


def test_filled_votes_have_no_time():
    sparse = Crowd.concat([crowd(), Crowd.from_triples([("t3", "ann", "cat")])])
    filled = DSFill(min_votes=0).complete(sparse)
    assert filled.n_votes > sparse.n_votes
    assert np.isnan(filled.time[~filled.observed]).all()
    assert filled.select_observed() == sparse


def test_times_belong_to_what_a_crowd_is():
    votes = crowd()
    rows = np.arange(votes.n_votes)
    timeless = votes.replace_fields(rows, time=None)
    assert timeless != votes
    assert timeless == votes.replace_fields(rows, time=np.full(len(rows), np.nan))
    assert timeless == Crowd.from_frame(votes.to_frame().drop(columns="time"))


def test_a_column_that_was_not_named_may_be_something_else(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,time\nt1,ann,cat,12.5\nt2,ann,dog,8\n")  # how long it took
    assert not read(path).has_times
    assert read(path, time="time").time.tolist() == [12.5, 8.0]
    path.write_text("task,worker,label,timestamp\nt1,ann,cat,soon\n")
    assert not read(path).has_times
    with pytest.raises(InputError, match=r"expected times in the time column; got 'soon' \(line 2\)"):
        read(path, time="timestamp")
    with pytest.raises(InputError, match="there is no column 'when' to be the time"):
        read(path, time="when")


def test_dates_in_two_ways_are_refused(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,at\nt1,ann,cat,31/05/2024 12:00\nt2,ann,cat,05/31/2024 12:00\n")
    with pytest.raises(InputError, match=r"got '05/31/2024 12:00' \(line 3\)"):
        read(path, time="at")


def test_infinite_times_are_refused():
    with pytest.raises(InputError, match="times must be finite"):
        Crowd.from_codes([0], [0], [0], tasks=["t"], workers=["w"], classes=["c"], time=[np.inf])


def test_a_row_without_a_time_is_no_row_with_a_hole(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,timestamp\nt1,ann,cat,\nt2,ann,cat,2024-05-31\n,ann,cat,2024-05-31\n")
    assert read(path, missing="drop").n_votes == 2
