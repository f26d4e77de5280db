"""Shards whose votes were settled by dropping some: (worker, label) pairs that only those had are dropped as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.sharded import Part, write_shard
from wisecrowd.io.sharding._state import remove
from wisecrowd.utils import progress
from wisecrowd.utils.files import atomic_path, read_json


def used_pairs(raw: Path, parts: list[Part], n_pairs: int, note: Path) -> NDArray[np.int64]:
    """The pairs that some vote is, ascending; once they are noted, the shards need not be looked at again.

    >>> from wisecrowd import Crowd
    >>> whole = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).to_shards("crowd")
    >>> used_pairs(Path("crowd"), list(whole.parts), 5, Path("used.parquet")).tolist()
    [0, 1]
    """
    if not note.exists():
        used = np.zeros(n_pairs, dtype=bool)
        for part in parts:
            used[_read(raw, part, "votes")["pair"].to_numpy()] = True
        with atomic_path(note) as partial:
            pq.write_table(pa.table({"pair": np.flatnonzero(used)}), partial)
    return pq.read_table(note)["pair"].to_numpy()


def renumber(raw: Path, folder: Path, parts: list[Part], used: NDArray[np.int64], n_pairs: int) -> list[Part]:
    """Write shards again, with the places that pairs have among the used ones; it goes on where it was interrupted.

    >>> from wisecrowd import Crowd
    >>> whole = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).to_shards("raw")
    >>> [part] = renumber(Path("raw"), Path("crowd"), list(whole.parts), np.array([0, 1]), 2)
    >>> part == whole.parts[0]
    True
    """
    if len(used) == n_pairs:  # all keep their places
        if raw != folder:
            folder.mkdir(exist_ok=True)
            (raw / "shards").rename(folder / "shards")
        return parts
    place = np.full(n_pairs, -1, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    written = []
    for number, part in enumerate(parts):
        progress.report("Dropping unused pairs", number, len(parts))
        finished = folder / "shards" / f"{part.name}.json"
        if finished.exists():
            written.append(Part(**read_json(finished)))
        else:
            votes, tasks = _read(raw, part, "votes"), _read(raw, part, "tasks")
            weight = votes["weight"].to_numpy() if "weight" in votes.column_names else None
            pair, counts = place[votes["pair"].to_numpy()], tasks["n_votes"].to_numpy()
            written.append(write_shard(folder, number, tasks["task"].chunk(0), counts, pair, weight))
        for kind in ("votes", "tasks"):
            remove(_file(raw, part, kind))
    return written


def _file(folder: Path, part: Part, kind: str) -> Path:
    return folder / "shards" / f"{part.name}.{kind}.arrow"


def _read(folder: Path, part: Part, kind: str) -> pa.Table:
    with pa.memory_map(str(_file(folder, part, kind))) as source:
        return pa.ipc.open_file(source).read_all()
