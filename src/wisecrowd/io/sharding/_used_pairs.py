"""Removal of (worker, label) pairs that no vote uses after repeated votes were dropped from the shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.rows import are_codes
from wisecrowd.data.sharded import ShardInfo, load_shard_info, write_shard
from wisecrowd.errors import InputError
from wisecrowd.io.sharding._state import remove
from wisecrowd.utils import progress
from wisecrowd.utils.files import atomic_path
from wisecrowd.utils.stored_files import StoredTable

#: What to do about a damaged scratch folder.
ADVICE = "Start again: fresh=True (--fresh)"


def find_used_pairs(raw: Path, infos: list[ShardInfo], n_pairs: int, record: Path) -> NDArray[np.int64]:
    """Return the pairs that some vote uses.

    Parameters
    ----------
    raw : Path
        Folder of the shards.
    infos : list of ShardInfo
        Shards.
    n_pairs : int
        Number of pairs.
    record : Path
        File that stores the result, so that the shards are read once.

    Returns
    -------
    ndarray
        Used pairs in ascending order.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).to_shards("crowd")
    >>> find_used_pairs(Path("crowd"), list(crowd.shard_infos), 5, Path("used.parquet")).tolist()
    [0, 1]
    """
    if not record.exists():
        is_used = np.zeros(n_pairs, dtype=bool)
        for info in infos:
            is_used[_read_pairs(StoredTable(_get_file(raw, info, "votes"), ADVICE), n_pairs)] = True
        with atomic_path(record) as partial:
            pq.write_table(pa.table({"pair": np.flatnonzero(is_used)}), partial)
    return pq.read_table(record)["pair"].to_numpy()


def renumber_pairs(
    raw: Path, folder: Path, infos: list[ShardInfo], used_pairs: NDArray[np.int64], n_pairs: int
) -> list[ShardInfo]:
    """Write shards again with pairs numbered among the used ones. It resumes where it was interrupted.

    Parameters
    ----------
    raw : Path
        Folder of the shards.
    folder : Path
        Folder to write.
    infos : list of ShardInfo
        Shards.
    used_pairs : ndarray
        Used pairs in ascending order.
    n_pairs : int
        Number of pairs.

    Returns
    -------
    list of ShardInfo
        New shards.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).to_shards("raw")
    >>> [info] = renumber_pairs(Path("raw"), Path("crowd"), list(crowd.shard_infos), np.array([0, 1]), 2)
    >>> info == crowd.shard_infos[0]
    True
    """
    if len(used_pairs) == n_pairs:  # the numbers stay
        if raw != folder:
            folder.mkdir(exist_ok=True)
            (raw / "shards").rename(folder / "shards")
        return infos
    new_number = np.full(n_pairs, -1, dtype=np.int32)
    new_number[used_pairs] = np.arange(len(used_pairs), dtype=np.int32)
    new_infos = []
    for number, info in enumerate(infos):
        progress.report("Dropping unused pairs", number, len(infos))
        finished = folder / "shards" / f"{info.name}.json"
        if finished.exists():
            new_infos.append(load_shard_info(finished))
        else:
            votes, tasks = (StoredTable(_get_file(raw, info, kind), ADVICE) for kind in ("votes", "tasks"))
            tasks.validate()
            weight = votes.read_numbers("weight", [np.float64]) if "weight" in votes.batch.schema.names else None
            pair, counts = new_number[_read_pairs(votes, n_pairs)], tasks.read_column("n_votes").to_numpy()
            new_infos.append(write_shard(folder, number, tasks.read_column("task"), counts, pair, weight))
        for kind in ("votes", "tasks"):
            remove(_get_file(raw, info, kind))
    return new_infos


def _get_file(folder: Path, info: ShardInfo, kind: str) -> Path:
    return folder / "shards" / f"{info.name}.{kind}.arrow"


def _read_pairs(votes: StoredTable, n_pairs: int) -> NDArray[np.int32]:
    """Return the pair of each vote."""
    pair = votes.read_numbers("pair", [np.int32])
    if not are_codes(pair, n_pairs):
        raise InputError(f"{votes.path} is damaged: it has pairs outside 0…{n_pairs - 1}. {ADVICE}")
    return pair
