"""Results of methods that were fitted on shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.errors import DiskFull, InputError, UsageError


def small(folder: Path) -> ShardedCrowd:
    triples = [(f"t{task}", f"w{worker}", (task + worker // 2) % 2) for task in range(6) for worker in range(3)]
    return Crowd.from_triples(triples).to_shards(folder, votes_per_shard=6)


def test_methods_say_at_the_door_whether_they_stream(tmp_path: Path) -> None:
    from wisecrowd import EBCC, KOS

    crowd = small(tmp_path / "crowd")
    for method in (KOS(), EBCC()):
        with pytest.raises(UsageError, match=r"needs the votes in memory.*crowd\.load\(\)"):
            method.fit(crowd)
    with pytest.raises(UsageError, match="n_init=3 perturbs"):
        DawidSkene(n_init=3).fit(crowd)
    with pytest.raises(UsageError, match="spectral start looks at all votes"):
        DawidSkene(init="spectral").fit(crowd)
    with pytest.raises(UsageError, match="engine must be 'local', 'ray'"):
        DawidSkene(engine="spark").fit(crowd)


def test_gold_of_other_tasks_is_refused_and_some_may_be_strange(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    with pytest.raises(InputError, match="none of the 1 tasks with truth is in the crowd"):
        DawidSkene().fit(crowd, truth={"elsewhere": 1})
    fitted = DawidSkene().fit(crowd, truth={"elsewhere": 1, "t5": 0})
    assert fitted.proba_.loc["t5", 0] == 1


def test_answers_come_shard_by_shard_and_to_a_file(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    fitted = DawidSkene().fit(crowd)
    tables = list(fitted.posterior_tables())
    assert len(tables) == crowd.n_shards == 3
    assert pd.concat(tables).equals(fitted.proba_)
    fitted.write_labels(tmp_path / "labels.parquet", proba=True)
    read = pd.read_parquet(tmp_path / "labels.parquet").set_index("task")
    assert read["label"].tolist() == fitted.labels_.tolist()
    assert np.array_equal(read[["p_0", "p_1"]].to_numpy(), fitted.posterior_)


def test_what_would_fill_memory_is_not_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = small(tmp_path / "crowd")
    fitted = DawidSkene().fit(crowd)
    monkeypatch.setattr("wisecrowd.base.posterior_stream.MAX_COLLECTED_CELLS", 5)
    with pytest.raises(UsageError, match=r"does not fit in memory.*posterior_tables\(\).*write_labels"):
        _ = fitted.labels_
    assert len(fitted.workers_) == 3


def test_a_second_fit_forgets_the_first(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    method = DawidSkene().fit(crowd)
    method.fit(crowd.load()[:2])
    assert len(method.labels_) == 2
    assert len(method.fit(crowd).labels_) == 6


def test_known_workers_answer_for_new_votes(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    new = Crowd.from_triples([("new", "w0", 1), ("new", "w1", 1)])
    streamed, whole = DawidSkene().fit(crowd), DawidSkene().fit(crowd.load())
    assert np.allclose(streamed.predict_proba(new), whole.predict_proba(new), atol=1e-12)
    with pytest.raises(UsageError, match="needs the votes in memory"):
        whole.predict(crowd)


def test_an_interrupted_writer_leaves_no_labels(tmp_path: Path) -> None:
    fitted = DawidSkene().fit(small(tmp_path / "crowd"))
    whole = fitted._posterior_stream.posterior_function

    def fails_at_last(chunk: Any, *shared: Any) -> Any:
        if chunk.number == 2:
            raise OSError(28, "No space left on device")
        return whole(chunk, *shared)

    object.__setattr__(fitted._posterior_stream, "posterior_function", fails_at_last)
    with pytest.raises(DiskFull, match=r"no room for .*labels\.parquet; make room"):
        fitted.write_labels(tmp_path / "labels.parquet")
    assert not [path for path in tmp_path.iterdir() if "labels" in path.name]


def test_majority_vote_of_a_crowd_in_memory_has_one_table() -> None:
    fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")]))
    assert [table.index.tolist() for table in fitted.posterior_tables()] == [["t1"]]
