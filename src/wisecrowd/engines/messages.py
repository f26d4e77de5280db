"""What goes between processes when a crowd is in several: chunks on their way out, sums on their way back."""

from __future__ import annotations

import itertools
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.sharded import CrowdSlice, open_shards
from wisecrowd.engines.base import Chunk, add
from wisecrowd.errors import InputError, UsageError, WisecrowdError

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class FromFolder:
    """Shards of a folder that another process is to load.

    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> folder = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
    >>> [chunk.crowd.tasks.tolist() for chunk in FromFolder(folder.folder, folder.digest, range(1, 2), [None]).chunks()]
    [['t2']]
    """

    folder: Path
    digest: str
    numbers: range
    clamps: list[NDArray[np.int32] | None]
    compiled: bool | None = None

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, in memory."""
        here = socket.gethostname()
        try:
            whole = open_shards(self.folder)
        except InputError as error:
            raise InputError(f"{error} (seen from {here}; every machine must see the same folder)") from None
        if whole.digest != self.digest:
            raise InputError(
                f"{self.folder} holds other votes on {here} than where the work began; use one folder for all"
            )
        shards = whole.shards
        for number, gold in zip(self.numbers, self.clamps, strict=True):
            shard, ids = shards[number], partial(getattr, whole.shards[number], "tasks")
            # Copied: nothing of a file, or of a store that others need, is held on to.
            pairs = whole.pairs.of(np.array(shard.pairs.of_vote))
            crowd = CrowdSlice(whole.workers, whole.classes, pairs, shard.offset, _own(shard._weight), ids)
            yield Chunk(crowd, _own(gold), number, len(shards), compiled=self.compiled)


@dataclass(frozen=True)
class FromMemory:
    """A chunk of a crowd in memory, to be held by another process.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> [chunk] = FromMemory.of(crowd, None, 1, 2, number=1, many=2).chunks()
    >>> chunk.crowd.tasks.tolist(), chunk.crowd.pairs.of_vote.tolist()
    (['t2'], [1])
    """

    workers: pd.Index | None
    classes: Any
    pairs: Pairs
    offset: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    ids: bytes
    gold: NDArray[np.int32] | None
    number: int
    many: int
    compiled: bool | None

    @classmethod
    def of(
        cls, crowd: Crowd, gold: NDArray[np.int32] | None, begin: int, end: int, *, number: int, many: int,
        compiled: bool | None = None,
    ) -> FromMemory:  # fmt: skip
        """The tasks ``begin:end``."""
        offset, pairs = crowd.offset[begin : end + 1], crowd.pairs
        votes = slice(offset[0], offset[-1])
        return cls(
            crowd.workers, crowd.classes, Pairs(pairs.worker, pairs.label, pairs.of_vote[votes], pairs.n_workers),
            offset - offset[0], crowd.weight[votes] if crowd.is_weighted else None, pickle.dumps(crowd.tasks[begin:end]),
            None if gold is None else gold[begin:end], number, many, compiled,
        )  # fmt: skip

    def chunks(self) -> Iterator[Chunk]:
        """The one chunk, in memory."""
        pairs, ids = self.pairs, partial(pickle.loads, self.ids)
        known = Pairs(np.array(pairs.worker), np.array(pairs.label), np.array(pairs.of_vote), pairs.n_workers)
        crowd = CrowdSlice(self.workers, self.classes, known, np.array(self.offset), _own(self.weight), ids)
        yield Chunk(crowd, _own(self.gold), self.number, self.many, compiled=self.compiled)


def cuts(offset: NDArray[np.int64], many: int) -> list[tuple[int, int]]:
    """Consecutive tasks, in at most so many chunks with about as many votes each.

    >>> cuts(np.array([0, 2, 3, 6]), 2), cuts(np.array([0, 9, 9]), 2)
    ([(0, 2), (2, 3)], [(0, 1), (1, 2)])
    """
    inner = np.searchsorted(offset, np.linspace(offset[0], offset[-1], many + 1)[1:-1])
    ends = np.unique(np.concatenate([[0], inner, [len(offset) - 1]])).tolist()
    return list(itertools.pairwise(ends)) or [(0, 0)]


def _own(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else np.array(array)


# ---------------------------------------------------------------------- sums


@dataclass(frozen=True)
class Table:
    """Of a table over all pairs the rows that are not zero; the message that it is in says which they are."""

    cells: NDArray[Any]
    n_pairs: int


@dataclass(frozen=True)
class Message:
    """What a process answers: a value, or an error of the work, pickled; or that it missed what another should send.

    >>> Message(value=(1.0, np.ones(2))).unpacked()
    (1.0, array([1., 1.]))
    """

    value: Any = None
    rows: Rows | None = None
    error: bytes | None = None
    missed: bool = False

    @classmethod
    def packed(cls, value: Any, rows: Rows | None, n_pairs: int) -> Message:
        """A value in which tables over all pairs are zero but for some rows, so that only these are sent.

        >>> table = np.array([[0, 0], [0, 0], [1, 2], [0, 0]])
        >>> Message.packed(table, np.array([2], dtype=np.int32), 4).value.cells.tolist()
        [[1, 2]]
        """

        def leaf(part: Any) -> Any:
            if isinstance(part, np.ndarray) and part.ndim and len(part) == n_pairs and part.dtype.kind in "biufc":
                cells = part[rows]
                if np.count_nonzero(cells) == np.count_nonzero(part):
                    return Table(cells, n_pairs)
            return part

        return cls(value if rows is None else _over(leaf, value), rows)

    def unpacked(self) -> Any:
        """The value in arrays of its own, which may be written to."""

        def leaf(part: Any) -> Any:
            if isinstance(part, Table):
                table = np.zeros((part.n_pairs, *part.cells.shape[1:]), part.cells.dtype)
                table[self.rows] = part.cells
                return table
            return np.array(part) if isinstance(part, np.ndarray) and not part.flags.writeable else part

        return _over(leaf, self.value)

    def added_to(self, total: Any) -> Any:
        """The sum of a value of this process and the one in the message, in place where that can be.

        >>> message = Message.packed(np.array([0, 0, 5, 0]), np.array([2], dtype=np.int32), 4)
        >>> message.added_to(np.ones(4, dtype=int)).tolist()
        [1, 1, 6, 1]
        """

        def leaf(one: Any, other: Any) -> Any:
            if not isinstance(other, Table):
                return add(one, other)
            one = one.astype(np.result_type(one, other.cells), copy=not one.flags.writeable)
            one[self.rows] += other.cells
            return one

        return self.unpacked() if total is None else _over(leaf, total, self.value)


def few(label_probs: NDArray[np.bool_]) -> Rows | None:
    """The rows that are marked; None when they are half of all or more, for then sending them alone does not pay.

    >>> few(np.array([False, True, False])), few(np.array([True, True, False]))
    (array([1], dtype=int32), None)
    """
    rows = np.flatnonzero(label_probs).astype(np.int32)
    return rows if 2 * len(rows) < len(label_probs) else None


def union(rows: Rows | None, others: Rows | None, n_pairs: int) -> Rows | None:
    """Rows that are among the ones or the others, in the sense of `few`.

    >>> union(np.array([1], dtype=np.int32), np.array([3], dtype=np.int32), 5)
    array([1, 3], dtype=int32)
    """
    if rows is None or others is None:
        return None
    label_probs = np.zeros(n_pairs, dtype=bool)
    label_probs[rows] = label_probs[others] = True
    return few(label_probs)


def children(place: int, many: int) -> Iterator[int]:
    """The actors whose sums an actor adds to its own, nearest first: a binary tree.

    >>> list(children(0, 6)), list(children(4, 6)), list(children(3, 6))
    ([1, 2, 4], [5], [])
    """
    step = 1
    while place % (2 * step) == 0 and place + step < many:
        yield place + step
        step *= 2


def frozen(value: Any) -> Any:
    """A value whose arrays nobody changes by adding to them.

    >>> frozen((1, np.ones(2)))[1].flags.writeable
    False
    """

    def leaf(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
        return part

    return _over(leaf, value)


def portable(error: Exception) -> bytes:
    """An error pickled, or what it says if it cannot be; where a fault of the program arose goes along as a note.

    >>> pickle.loads(portable(InputError("no votes")))
    InputError('no votes')
    """
    if not isinstance(error, WisecrowdError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # whatever a foreign error does when it is pickled
        pickled = pickle.dumps(WisecrowdError(f"{type(error).__name__}: {error}"))
    return pickled


class LeftBehind:
    """In place of what is too large to go along with work in every call.

    >>> LeftBehind("Crowd").n_tasks
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: a Crowd does not go along with work to other processes; give it among what is shared
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"a {self.kind} does not go along with work to other processes; give it among what is shared")


def _over(leaf: Callable[..., Any], value: Any, *others: Any) -> Any:
    """A function of the numbers and arrays of values that are tuples alike, in such tuples."""
    if not isinstance(value, tuple):
        return leaf(value, *others)
    parts = [_over(leaf, *together) for together in zip(value, *others, strict=True)]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
