"""Folders of shards: what is written is what is read, whole or refused, and chunks are crowds."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import Crowd
from wisecrowd.data.sharded import Shard, ShardedCrowd, open_shards, write_shard
from wisecrowd.errors import InputError, UsageError

votes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.5, 1.0, 2.0])),
    min_size=1, max_size=25, unique_by=lambda row: row[:2],
)  # fmt: skip


def crowd_of(rows: list[tuple[int, int, int, float]], *, weighted: bool) -> Crowd:
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "weight"])
    return Crowd.from_frame(frame, weight="weight" if weighted else None, tasks=range(8), classes=range(3))


@settings(max_examples=25, deadline=None)
@given(rows=votes, weighted=st.booleans(), size=st.integers(1, 30))
def test_what_is_written_is_what_is_read(
    rows: list[Any], weighted: bool, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    crowd = crowd_of(rows, weighted=weighted)
    folder = tmp_path_factory.mktemp("shards") / "crowd"
    sharded = crowd.to_shards(folder, votes_per_shard=size)
    assert sharded.load() == crowd
    assert (sharded.n_tasks, sharded.n_votes, sharded.n_workers) == (crowd.n_tasks, crowd.n_votes, crowd.n_workers)
    assert sharded.tasks.equals(crowd.tasks)
    assert sharded.drop_workers().vote_counts.tolist() == crowd.vote_counts.tolist()
    assert sum(len(shard) for shard in sharded.shards) == crowd.n_tasks


@settings(max_examples=25, deadline=None)
@given(rows=votes, weighted=st.booleans(), size=st.integers(1, 12))
def test_a_shard_is_the_crowd_of_its_tasks(
    rows: list[Any], weighted: bool, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    crowd = crowd_of(rows, weighted=weighted)
    sharded = crowd.to_shards(tmp_path_factory.mktemp("shards") / "crowd", votes_per_shard=size)
    begin = 0
    for shard in sharded.shards:
        part = crowd[begin : begin + shard.n_tasks]
        begin += shard.n_tasks
        for name in ("task", "worker", "label", "weight", "offset"):
            assert getattr(shard, name).tolist() == getattr(part, name).tolist()
        assert shard.vote_counts.tolist() == part.vote_counts.tolist()
        assert shard.votes_per_worker.tolist() == part.votes_per_worker.tolist()
        assert len(shard.pairs) == len(crowd.pairs)
        assert repr(shard) == repr(part)


def test_without_workers(tmp_path: Path) -> None:
    crowd = Crowd.from_counts(pd.DataFrame({"no": [1, 1, 0], "yes": [2, 0, 1]}))
    sharded = crowd.to_shards(tmp_path / "crowd", votes_per_shard=2)
    assert sharded.workers is None
    assert not sharded.has_workers
    assert sharded.load() == crowd
    assert "no worker ids" in repr(sharded)
    with pytest.raises(UsageError, match="no worker ids"):
        _ = sharded.n_workers


def small(folder: Path) -> ShardedCrowd:
    triples = [(f"t{task}", f"w{worker}", (task + worker // 2) % 2) for task in range(6) for worker in range(3)]
    return Crowd.from_triples(triples).to_shards(folder, votes_per_shard=6)


def test_equal_votes_have_equal_digests(tmp_path: Path) -> None:
    one, other = small(tmp_path / "one"), small(tmp_path / "other")
    assert one.digest == other.digest
    changed = Crowd.from_triples([("t1", "w1", 0)]).to_shards(tmp_path / "changed")
    assert changed.digest != one.digest


def test_another_process_opens_the_same_files(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    again, shard = pickle.loads(pickle.dumps((crowd, crowd.shards[1])))
    assert again.n_votes == crowd.n_votes
    assert isinstance(shard, Shard)
    assert shard == crowd.shards[1]
    assert len(pickle.dumps(crowd)) < 500


def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "crowd"
    with pytest.raises(InputError, match=r"has no crowd\.json.*wisecrowd shard"):
        open_shards(place)
    write_shard(place, 0, ["t1"], np.array([1]), np.array([0], dtype=np.int32))
    with pytest.raises(InputError, match=r"interrupted.*wisecrowd shard again"):
        open_shards(place)
    small(tmp_path / "whole")
    (tmp_path / "whole" / "shards" / "000001.votes.arrow").unlink()
    with pytest.raises(InputError, match="lacks 1 of its shards: '000001'"):
        open_shards(tmp_path / "whole")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"version": 1, "shards": [{"name": 1}]}'])
def test_a_strange_record_is_refused(text: str, tmp_path: Path) -> None:
    small(tmp_path / "crowd")
    (tmp_path / "crowd" / "crowd.json").write_text(text)
    with pytest.raises(InputError, match=r"crowd\.json is invalid"):
        open_shards(tmp_path / "crowd")


def test_another_layout_is_refused(tmp_path: Path) -> None:
    small(tmp_path / "crowd")
    path = tmp_path / "crowd" / "crowd.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    with pytest.raises(InputError, match="layout version 99, but this wisecrowd reads version 1"):
        open_shards(tmp_path / "crowd")


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    (tmp_path / "crowd" / "shards" / "000000.votes.arrow").write_bytes(b"nothing of Arrow's")
    with pytest.raises(InputError, match=r"000000\.votes\.arrow is damaged"):
        _ = crowd.shards[0].layout


def test_what_cannot_be_sharded(tmp_path: Path) -> None:
    numbers = Crowd.from_triples([("t1", "ann", 1.5)], numeric=True)
    with pytest.raises(UsageError, match="numbers"):
        numbers.to_shards(tmp_path / "crowd")
    small(tmp_path / "crowd")
    with pytest.raises(UsageError, match="not empty"):
        small(tmp_path / "crowd")
    with pytest.raises(UsageError, match="votes_per_shard must be 1 or more"):
        Crowd.from_triples([("t1", "ann", 1)]).to_shards(tmp_path / "other", votes_per_shard=0)
    with pytest.raises(UsageError, match="counts 2 votes of 1 tasks; got 1 votes"):
        write_shard(tmp_path, 0, ["t1"], np.array([2]), np.array([0], dtype=np.int32))


def test_task_ids_that_do_not_fit_in_memory_are_not_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = small(tmp_path / "crowd")
    monkeypatch.setattr("wisecrowd.data.sharded.MAX_COLLECTED_CELLS", 5)
    with pytest.raises(UsageError, match="task ids do not fit"):
        _ = crowd.tasks
