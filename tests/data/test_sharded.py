"""Folders of shards: what is written is what is read, whole or refused, and chunks are crowds."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import Crowd, DawidSkene, MajorityVote
from wisecrowd.data import sharded as sharded_module
from wisecrowd.data.sharded import Shard, ShardedCrowd, finish_shards, open_shards, write_shard
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.stored_files import write_table

votes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.5, 1.0, 2.0])),
    min_size=1, max_size=25, unique_by=lambda row: row[:2],
)  # fmt: skip


def crowd_of(rows: list[tuple[int, int, int, float]], *, weighted: bool) -> Crowd:
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "weight"])
    return Crowd.from_frame(frame, weight="weight" if weighted else None, tasks=range(8), classes=range(3))


@settings(max_examples=min(25, settings.default.max_examples), deadline=None)
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


@settings(max_examples=min(25, settings.default.max_examples), deadline=None)
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
    with pytest.raises(InputError, match="lacks 1 of its shards, or their files are too short: '000001'"):
        open_shards(tmp_path / "whole")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"version": 2, "shards": [{"name": 1}]}'])
def test_a_strange_record_is_refused(text: str, tmp_path: Path) -> None:
    small(tmp_path / "crowd")
    (tmp_path / "crowd" / "crowd.json").write_text(text)
    with pytest.raises(InputError, match=r"crowd\.json is damaged"):
        open_shards(tmp_path / "crowd")


def test_another_layout_is_refused(tmp_path: Path) -> None:
    small(tmp_path / "crowd")
    path = tmp_path / "crowd" / "crowd.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    with pytest.raises(InputError, match="layout version 99, but this wisecrowd reads version 2"):
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


# ---------------------------------------------------------------------- folders from a stranger


def sealed(folder: Path, **changes: Any) -> ShardedCrowd:
    """A folder whose digests are right although its contents are not: an attacker can compute digests, too."""
    columns: dict[str, Any] = {
        "pair": [0, 1, 0], "weight": None, "n_votes": [2, 1], "worker": [0, 1], "label": [0, 1],
        "workers": ["ann", "bob"], "classes": ["cat", "dog"],
    }  # fmt: skip
    columns |= changes
    codes = {name: np.array(columns[name], dtype=np.int32) for name in ("pair", "worker", "label")}
    weight = None if columns["weight"] is None else np.array(columns["weight"])
    info = write_shard(folder, 0, ["t1", "t2"], np.array(columns["n_votes"]), codes["pair"], weight)
    return finish_shards(
        folder, [info], classes=pd.Index(columns["classes"]), workers=pd.Index(columns["workers"]),
        pair_worker=codes["worker"], pair_label=codes["label"], weighted=weight is not None,
    )  # fmt: skip


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("pair", [[0, -1, 0], [0, 2, 0], [-(2**31), 0, 0], [0, 0, 2**31 - 1]])
def test_pairs_outside_the_crowd_are_refused(pair: list[int], verify: bool, tmp_path: Path) -> None:
    sealed(tmp_path / "crowd", pair=pair)
    for method in (MajorityVote(), DawidSkene()):
        with pytest.raises(
            InputError, match=r"000000\.votes\.arrow is damaged: vote \d has the pair -?\d+, and pairs lie in 0…1"
        ):
            method.fit(open_shards(tmp_path / "crowd", verify))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"worker": [-1, 1]}, "worker codes of pairs lie outside 0…1"),
        ({"worker": [0, 7]}, "worker codes of pairs lie outside 0…1"),
        ({"label": [0, -3]}, "label codes of pairs lie outside 0…1"),
        ({"worker": [1, 0]}, "not in ascending order"),
        ({"worker": [0, 0], "label": [0, 0]}, "repeated"),
        ({"classes": ["cat", "cat"]}, "repeats 'cat'"),
        ({"workers": ["ann", None]}, "missing value"),
    ],
)
def test_vocabularies_that_do_not_fit_are_refused(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    sealed(tmp_path / "crowd", **changes)
    with pytest.raises(InputError, match=reason):
        MajorityVote().fit(open_shards(tmp_path / "crowd"))


@pytest.mark.parametrize("weight", [[1.0, np.nan, 1.0], [1.0, -1.0, 1.0], [0.0, 1.0, 1.0], [np.inf, 1.0, 1.0]])
def test_invalid_weights_are_refused(weight: list[float], tmp_path: Path) -> None:
    sealed(tmp_path / "crowd", weight=weight)
    with pytest.raises(InputError, match="is damaged: weights must"):
        DawidSkene().fit(open_shards(tmp_path / "crowd"))


def damage(folder: Path, name: str, columns: dict[str, Any]) -> None:
    write_table(folder / "shards" / f"000000.{name}.arrow", {key: pa.array(value) for key, value in columns.items()})


@pytest.mark.parametrize(
    ("name", "columns", "reason"),
    [
        ("votes", {"pair": np.zeros(2, dtype=np.int32)}, r"000000\.votes\.arrow has 2 rows, and crowd\.json says 3"),
        ("votes", {"pair": np.zeros(3, dtype=np.int64)}, "the column pair has the type int64"),
        ("votes", {"pair": np.zeros(3)}, "the column pair has the type double"),
        ("votes", {"pair": pa.array([0, None, 1], pa.int32())}, "the column pair has missing values"),
        ("votes", {"other": np.zeros(3, dtype=np.int32)}, "no column pair"),
        ("tasks", {"task": ["t1"], "n_votes": np.array([3], dtype=np.uint8)}, r"has 1 rows, and crowd\.json says 2"),
        ("tasks", {"task": ["t1", "t2"], "n_votes": np.array([2, 2], dtype=np.uint8)}, "do not have 3 votes together"),
        ("tasks", {"task": ["t1", "t2"], "n_votes": np.array([4, 2**64 - 1], dtype=np.uint64)}, "do not have 3 votes"),
        ("tasks", {"task": ["t1", "t2"], "n_votes": np.array([4, -1])}, "the column n_votes has the type int64"),
        ("tasks", {"task": pa.array(["t1", None]), "n_votes": np.array([2, 1], dtype=np.uint8)}, "missing values"),
    ],
)
def test_files_that_do_not_fit_are_refused(name: str, columns: dict[str, Any], reason: str, tmp_path: Path) -> None:
    sealed(tmp_path / "crowd")
    damage(tmp_path / "crowd", name, columns)
    with pytest.raises(InputError, match=reason):
        MajorityVote().fit(open_shards(tmp_path / "crowd", verify=False))


def change(folder: Path, **fields: Any) -> None:
    content = json.loads((folder / "crowd.json").read_text())
    shard = {name: fields.pop(name) for name in list(fields) if name.startswith("shard_")}
    for name, value in shard.items():
        content["shards"][0][name.removeprefix("shard_")] = value
    (folder / "crowd.json").write_text(json.dumps(content | fields))


HUGE = 400_000_000


@pytest.mark.parametrize(
    "fields",
    [
        {"shard_n_tasks": HUGE, "n_tasks": HUGE}, {"shard_n_votes": HUGE, "n_votes": HUGE}, {"n_tasks": HUGE},
        {"shard_n_tasks": -1}, {"shard_n_tasks": 2.0}, {"shard_n_tasks": True}, {"shard_n_votes": "3"},
        {"shard_n_votes": 10**30}, {"shard_name": "../../../etc/passwd"}, {"shard_name": 0}, {"shard_name": "\ud800"},
        {"shard_sha256": None}, {"shard_more": 1}, {"shards": {}}, {"shards": [[]]}, {"shards": None}, {"weighted": "yes"},
        {"has_workers": 1}, {"sha256": "x"}, {"version": None}, {"version": [[[]]]},
    ],
    ids=str,
)  # fmt: skip
def test_a_tampered_record_is_refused_before_anything_is_allocated(fields: dict[str, Any], tmp_path: Path) -> None:
    sealed(tmp_path / "crowd")
    change(tmp_path / "crowd", **fields)
    with pytest.raises(InputError, match=r"crowd\.json is damaged|too short|layout version"):
        open_shards(tmp_path / "crowd")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"version": ' + "9" * 5000 + "}", '{"version": NaN}', '{"version": 1e999}']
)
def test_json_that_no_parser_likes_is_refused(text: str, tmp_path: Path) -> None:
    sealed(tmp_path / "crowd")
    (tmp_path / "crowd" / "crowd.json").write_text(text)
    with pytest.raises(InputError, match=r"crowd\.json is damaged"):
        open_shards(tmp_path / "crowd")


@pytest.mark.parametrize("name", ["classes.arrow", "workers.arrow", "pairs.arrow", "shards/000000.tasks.arrow"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    sealed(tmp_path / "crowd")
    (tmp_path / "crowd" / name).unlink()
    with pytest.raises(InputError, match=Path(name).name.split(".")[0]):
        open_shards(tmp_path / "crowd")


def test_changed_votes_are_noticed_unless_asked_not_to(tmp_path: Path) -> None:
    crowd = small(tmp_path / "crowd")
    wanted = MajorityVote().fit(crowd).labels_
    pair = np.array(crowd.shards[0].pairs.vote_pairs)
    write_table(tmp_path / "crowd" / "shards" / "000000.votes.arrow", {"pair": pa.array(pair[::-1].copy())})
    with pytest.raises(InputError, match=r"shard 000000 of .* was changed after it was written.*verify=False"):
        MajorityVote().fit(open_shards(tmp_path / "crowd"))
    changed = MajorityVote().fit(Crowd.open(tmp_path / "crowd", verify=False)).labels_
    assert not changed.equals(wanted)
    for again in (
        pickle.loads(pickle.dumps(open_shards(tmp_path / "crowd", verify=verify))) for verify in (True, False)
    ):
        if again.verify:
            with pytest.raises(InputError, match="was changed"):
                _ = again.shards[0].layout
        else:
            assert again.shards[0].layout.n_votes == 6


@pytest.mark.parametrize("name", ["classes", "workers"])
def test_exchanged_names_are_noticed(name: str, tmp_path: Path) -> None:
    small(tmp_path / "crowd")
    ids = [0, 2] if name == "classes" else ["w0", "w1", "nobody"]
    write_table(tmp_path / "crowd" / f"{name}.arrow", {"value": pa.array(ids)})
    with pytest.raises(InputError, match="was changed after it was written"):
        _ = open_shards(tmp_path / "crowd").classes
    assert getattr(open_shards(tmp_path / "crowd", verify=False), name).tolist() == ids


@pytest.mark.parametrize("ids", ["text", "numbers", "dates"])
def test_digests_hold_for_all_types_of_ids(ids: str, tmp_path: Path) -> None:
    kinds = {"text": [f"t{i}" for i in range(9)], "numbers": range(9), "dates": pd.date_range("2024-01-01", periods=9)}
    triples = [(task, worker, worker % 2) for task in kinds[ids] for worker in range(3)]
    crowd = Crowd.from_triples(triples).to_shards(tmp_path / "crowd", votes_per_shard=6)
    assert crowd.n_shards > 1
    assert MajorityVote().fit(open_shards(tmp_path / "crowd")).labels_.index.tolist() == list(kinds[ids])


def test_a_file_is_checked_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = small(tmp_path / "crowd")
    checked = []

    def count(values: Any, n: int) -> bool:
        checked.append(len(values))
        return len(values) == 0 or (values.min() >= 0 and values.max() < n)

    monkeypatch.setattr(sharded_module, "are_codes", count)
    for _ in range(3):
        _ = [shard.layout for shard in crowd.shards]
    assert checked == [6, 6, 6]
    pair = np.array(crowd.shards[1].pairs.vote_pairs)
    pair[2] = -1
    write_table(tmp_path / "crowd" / "shards" / "000001.votes.arrow", {"pair": pa.array(pair)})
    with pytest.raises(InputError, match="vote 2 has the pair -1"):
        _ = crowd.shards[1].layout
