"""Answers that are too many for memory: inferred shard by shard when they are asked for, and written as they come."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.sharded import MOST_CELLS, ShardedCrowd
from wisecrowd.engines.base import Chunk, Work
from wisecrowd.engines.local import Clamp, StreamEngine
from wisecrowd.errors import UsageError
from wisecrowd.utils.files import atomic_path


@dataclass(frozen=True, eq=False)
class Answers:
    """The posteriors of a crowd in shards, not yet inferred; a pass over it gives task ids and posteriors by shard.

    >>> import tempfile
    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
    >>> fitted = DawidSkene().fit(crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1))
    >>> [tasks.tolist() for tasks, posterior in fitted._unread]
    [['t1'], ['t2']]
    """

    crowd: ShardedCrowd
    gold: Clamp | None
    answer: Work
    """Work that gives the posterior of a chunk's tasks."""
    shared: tuple[Any, ...]

    def __iter__(self) -> Iterator[tuple[pd.Index, NDArray[Any]]]:
        yield from StreamEngine(self.crowd, self.gold).each(self._of, *self.shared)

    def _of(self, chunk: Chunk, *shared: Any) -> tuple[pd.Index, NDArray[Any]]:
        return chunk.crowd.tasks, self.answer(chunk, *shared)

    def posterior(self) -> NDArray[Any]:
        """All of them, in memory if they fit."""
        if self.crowd.n_tasks * self.crowd.n_classes > MOST_CELLS:
            raise UsageError(
                f"the posterior of {self.crowd.n_tasks:,} tasks would not fit in memory; take it shard by shard: "
                "for table in fitted.posterior_tables(), or write it: fitted.write_labels('labels.parquet')"
            )
        return np.concatenate([posterior for _, posterior in self])


def write_answers(tables: Iterable[pd.DataFrame], path: str | os.PathLike[str], *, proba: bool = False) -> None:
    """Write tables of tasks x classes to one Parquet file, whole or not at all: task, label, confidence.

    >>> import tempfile
    >>> place = tempfile.mkdtemp() + "/labels.parquet"
    >>> table = pd.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]}, index=pd.Index(["t1", "t2"], name="task"))
    >>> write_answers([table], place)
    >>> pd.read_parquet(place)["label"].tolist()
    ['cat', 'dog']
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).suffix.lower() not in (".parquet", ".pq"):
        raise UsageError(
            f"answers are written as Parquet; end the name in .parquet, and not as {Path(path).name!r} does"
        )
    with atomic_path(path) as partial:
        writer = None
        try:
            for table in tables:
                posterior = table.to_numpy()
                best = posterior.argmax(axis=1)
                columns = {"task": table.index, "label": table.columns[best], "confidence": posterior.max(axis=1)}
                if proba:
                    columns |= {f"p_{name}": posterior[:, place] for place, name in enumerate(table.columns)}
                rows = pa.table({name: pa.array(values) for name, values in columns.items()})
                writer = writer or pq.ParquetWriter(partial, rows.schema)
                writer.write_table(rows)
        finally:
            if writer is not None:
                writer.close()
