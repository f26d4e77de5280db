"""Choice of an engine, and gold tasks in the form that engines take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import compute_fingerprint
from wisecrowd.data.alignment import as_truth_series, encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import TruthLike
from wisecrowd.engines.base import Engine, GoldByShard
from wisecrowd.engines.local import LocalEngine, StreamEngine
from wisecrowd.errors import InputError, UsageError, preview


def engine_for(
    choice: str, crowd: Crowd | ShardedCrowd, gold: Any = None, *, n_jobs: int = 1, compiled: bool | None = None
) -> Engine:
    """Return an engine over a crowd.

    Parameters
    ----------
    choice : str
        "local", "ray", or "ray:ADDRESS" of a cluster.
    crowd : Crowd or ShardedCrowd
        Votes.
    gold : ndarray, callable or None
        Class codes of gold tasks, -1 elsewhere: an array by task, or a function of the shard number.
    n_jobs : int, default 1
        Number of threads of a local engine; -1 uses all cores.
    compiled : bool, optional
        Whether to use the compiled kernels. By default the size of a chunk decides.

    Returns
    -------
    Engine

    Raises
    ------
    UsageError
        If there is no such engine, or no cluster at the address.
    MissingExtra
        If Ray is not installed.

    Examples
    --------
    >>> type(engine_for("local", Crowd.from_triples([("t1", "ann", "cat")]))).__name__
    'LocalEngine'
    """
    name, _, address = choice.partition(":")
    if name == "ray":
        from wisecrowd.engines.ray import RayEngine

        return RayEngine(crowd, gold, address=address or None, compiled=compiled)
    if choice != "local":
        raise UsageError(f"engine must be 'local', 'ray', or 'ray:ADDRESS' of a cluster; got {choice!r}")
    if isinstance(crowd, Crowd):
        return LocalEngine(crowd, gold, n_jobs, compiled)
    return StreamEngine(crowd, gold, n_jobs, compiled)


def encode_gold_by_shard(truth: TruthLike, crowd: ShardedCrowd) -> GoldByShard:
    """Encode the truth of gold tasks by shard, in one pass over the task ids.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or ndarray
        Truth of some tasks by task id.
    crowd : ShardedCrowd
        Votes in shards.

    Returns
    -------
    callable
        Function of the shard number that returns class codes by task, -1 where the truth is unknown.

    Raises
    ------
    InputError
        If no task with truth is in the crowd.

    Examples
    --------
    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> gold = encode_gold_by_shard({"t2": "dog"}, crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1))
    >>> gold(0).tolist(), gold(1).tolist()
    ([-1], [1])
    """
    truth_by_task = as_truth_series(truth, crowd)
    shards = crowd.shards
    codes: list[NDArray[np.int32] | None] = []
    for shard in shards:
        in_shard = truth_by_task.index.isin(shard.tasks)
        codes.append(encode_truth(truth_by_task[in_shard], shard) if in_shard.any() else None)
    if len(truth_by_task) and all(code is None for code in codes):
        raise InputError(
            f"none of the {len(truth_by_task):,} tasks with truth is in the crowd; the truth starts with "
            f"{preview(truth_by_task.index)}, the crowd with {preview(shards[0].tasks)}. Check that both use the same ids"
        )
    return _SparseGold([_gold_entries(code) for code in codes], [shard.n_tasks for shard in shards])


class _SparseGold:
    """Class codes of gold tasks by shard, stored as the positions and codes of the gold tasks only."""

    def __init__(self, entries: list[tuple[NDArray[Any], NDArray[Any]]], shard_sizes: list[int]) -> None:
        self.entries, self.shard_sizes = entries, shard_sizes

    @property
    def digest(self) -> str:
        """Fingerprint of the gold tasks."""
        return compute_fingerprint(self.shard_sizes, self.entries)

    def __call__(self, number: int) -> NDArray[np.int32]:
        gold = np.full(self.shard_sizes[number], -1, dtype=np.int32)
        position, code = self.entries[number]
        gold[position] = code
        return gold


def _gold_entries(codes: NDArray[np.int32] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions and codes of gold tasks."""
    position = np.empty(0, dtype=np.intp) if codes is None else np.flatnonzero(codes >= 0)
    return position, position if codes is None else codes[position]
