"""Posteriors of a crowd in shards, computed shard by shard on request and written to a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.sharded import MAX_COLLECTED_CELLS, Shard, ShardedCrowd
from wisecrowd.engines import Chunk, ChunkFunction, engine_for
from wisecrowd.engines.base import GoldByShard
from wisecrowd.errors import UsageError
from wisecrowd.utils.files import atomic_path


@dataclass(frozen=True, eq=False)
class PosteriorStream:
    """Posteriors of a crowd in shards, computed when they are requested.

    Iteration yields the task ids and the posterior of each shard. The posteriors are computed by an engine of the same kind
    as in the fit: on a cluster, the actors load the shards and send the posteriors, and the driver reads only the task
    ids. A copy (by pickle or `copy.deepcopy`) uses this machine, because the cluster may not exist any more.

    Attributes
    ----------
    crowd : ShardedCrowd
        Votes in shards.
    gold : callable or None
        Class codes of gold tasks by shard number.
    posterior_function : callable
        Chunk function that returns the posterior of the chunk's tasks.
    shared : tuple
        Parameters of the chunk function.
    engine : str, default "local"
        Engine that computes the posteriors, as in `engine_for`.
    n_jobs : int, default 1
        Number of threads of a local engine.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
    >>> sharded = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
    >>> stream = PosteriorStream(sharded, None, lambda chunk: chunk.crowd.vote_counts, ())
    >>> [(tasks.tolist(), posterior.tolist()) for tasks, posterior in stream]
    [(['t1'], [[1.0, 0.0]]), (['t2'], [[0.0, 2.0]])]
    """

    crowd: ShardedCrowd
    gold: GoldByShard | None
    posterior_function: ChunkFunction
    shared: tuple[Any, ...]
    engine: str = "local"
    n_jobs: int = 1

    def __iter__(self) -> Iterator[tuple[pd.Index, NDArray[Any]]]:
        with closing(engine_for(self.engine, self.crowd, self.gold, n_jobs=self.n_jobs)) as engine:
            posteriors = engine.map(self.posterior_function, *self.shared)
            for info, posterior in zip(self.crowd.shard_infos, posteriors, strict=True):
                yield Shard(self.crowd, info).tasks, posterior

    def map(self, function: ChunkFunction, *shared: Any) -> Iterator[Any]:
        """Yield ``function(chunk, posterior, *shared)`` of every shard, in the order of tasks.

        Parameters
        ----------
        function : callable
            Function of a chunk, the posterior of its tasks and the shared parameters.
        *shared : object
            Further arguments of the function, the same for every chunk.

        Yields
        ------
        object
        """
        with closing(engine_for(self.engine, self.crowd, self.gold, n_jobs=self.n_jobs)) as engine:
            yield from engine.map(apply_to_posterior, self.posterior_function, self.shared, function, shared)

    def sum(self, function: ChunkFunction, *shared: Any) -> Any:
        """Return the sum of ``function(chunk, posterior, *shared)`` over all shards.

        Parameters
        ----------
        function : callable
            Function of a chunk, the posterior of its tasks and the shared parameters.
        *shared : object
            Further arguments of the function, the same for every chunk.

        Returns
        -------
        number, ndarray or tuple of them
        """
        with closing(engine_for(self.engine, self.crowd, self.gold, n_jobs=self.n_jobs)) as engine:
            return engine.sum(apply_to_posterior, self.posterior_function, self.shared, function, shared)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "engine": "local"}

    def concatenate(self) -> NDArray[Any]:
        """Return the posterior of all tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)

        Raises
        ------
        UsageError
            If the result would not fit in memory.
        """
        if self.crowd.n_tasks * self.crowd.n_classes > MAX_COLLECTED_CELLS:
            raise UsageError(
                f"the posterior of {self.crowd.n_tasks:,} tasks does not fit in memory; iterate over "
                "fitted.posterior_tables(), or write it with fitted.write_labels('labels.parquet')"
            )
        return np.concatenate([posterior for _, posterior in self])


def apply_to_posterior(
    chunk: Chunk,
    posterior_function: ChunkFunction,
    posterior_shared: tuple[Any, ...],
    function: ChunkFunction,
    shared: tuple[Any, ...],
) -> Any:
    """Chunk function: apply a function to a chunk and the posterior that another chunk function computes.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    posterior_function : callable
        Chunk function that returns the posterior.
    posterior_shared : tuple
        Its parameters.
    function : callable
        Function of the chunk, its posterior and ``shared``.
    shared : tuple
        Further arguments of the function, the same for every chunk.

    Returns
    -------
    object
        Result of ``function``.
    """
    return function(chunk, posterior_function(chunk, *posterior_shared), *shared)


def write_labels(
    parts: Iterable[tuple[pd.DataFrame, NDArray[Any]]],
    path: str | os.PathLike[str],
    *,
    proba: bool = False,
    column: str = "confidence",
) -> None:
    """Write labels with their probability to a Parquet file, atomically.

    Parameters
    ----------
    parts : iterable of (DataFrame, ndarray)
        Posterior with tasks as index and classes as columns, and the probability that each label is right.
    path : path-like
        File that ends in ".parquet" or ".pq".
    proba : bool, default False
        Write the probability of every class as well, in columns ``p_CLASS``.
    column : str, default "confidence"
        Name of the column of these probabilities.

    Raises
    ------
    UsageError
        If the file name has another suffix.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/labels.parquet"
    >>> table = pd.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]}, index=pd.Index(["t1", "t2"], name="task"))
    >>> write_labels([(table, np.array([0.8, 0.7]))], path)
    >>> pd.read_parquet(path)["label"].tolist()
    ['cat', 'dog']
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(path).suffix.lower() not in (".parquet", ".pq"):
        raise UsageError(
            f"labels are written as Parquet; got the file name {Path(path).name!r}. Use the suffix .parquet"
        )
    with atomic_path(path) as partial:
        writer = None
        try:
            for table, right_probs in parts:
                posterior = table.to_numpy()
                best = posterior.argmax(axis=1)
                columns = {"task": table.index, "label": table.columns[best], column: right_probs}
                if proba:
                    columns |= {f"p_{name}": posterior[:, code] for code, name in enumerate(table.columns)}
                rows = pa.table({name: pa.array(values) for name, values in columns.items()})
                writer = writer or pq.ParquetWriter(partial, rows.schema)
                writer.write_table(rows)
        finally:
            if writer is not None:
                writer.close()
