"""Crowds of fewer votes and of more: parts of one, and several made one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.rows import Duplicates, Rows, shuffled_within
from wisecrowd.errors import InputError, UsageError, some

if TYPE_CHECKING:
    from wisecrowd.data.crowd import Crowd


class Divisible:
    """The ways to take a crowd apart and to put crowds together, mixed into `Crowd`."""

    if TYPE_CHECKING:  # what a crowd has
        tasks: pd.Index
        workers: pd.Index | None
        classes: pd.Index | None
        tasks_given: bool
        task: NDArray[np.int32]
        worker: NDArray[np.int32] | None
        label: NDArray[Any]

        def __init__(self, task: ArrayLike, worker: ArrayLike | None, label: ArrayLike, **parts: Any) -> None: ...
        @property
        def n_tasks(self) -> int: ...
        @property
        def n_votes(self) -> int: ...
        @property
        def votes(self) -> NDArray[np.float64]: ...
        @property
        def offset(self) -> NDArray[np.int64]: ...
        @property
        def observed(self) -> NDArray[np.bool_]: ...
        @property
        def _rows(self) -> Rows: ...
        @property
        def worker_codes(self) -> NDArray[np.int32]: ...
        def _hold(self, rows: Rows) -> None: ...

    def __getitem__(self, index: Any) -> Self:
        """The sub-crowd of some tasks (slice, integer or boolean index), in the order of the index."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:  # how scikit-learn indexes arrays
            index = index[0]
        if isinstance(index, slice) and index.step in (
            None,
            1,
        ):  # rows are in the order of tasks: no need to look for them
            start, stop, _ = index.indices(self.n_tasks)
            rows = np.arange(self.offset[start], self.offset[max(start, stop)])
            return self._replace(rows, task=self.task[rows] - start, tasks=self.tasks[start:stop])
        positions = np.arange(self.n_tasks)[index if isinstance(index, slice) else np.asarray(index)]
        if positions.ndim != 1:
            raise UsageError("index a crowd by a slice, a mask or a list of task positions, for example crowd[[3]]")
        place = np.full(self.n_tasks, -1, dtype=np.int32)
        place[positions] = np.arange(len(positions), dtype=np.int32)
        if len(np.unique(positions)) != len(positions):
            raise UsageError("a task can be taken only once; draw without replacement")
        rows = np.flatnonzero(place[self.task] >= 0)
        return self._replace(rows, task=place[self.task[rows]], tasks=self.tasks[positions])

    def take(self, rows: ArrayLike) -> Self:
        """The crowd of some rows only (mask or positions), over the same vocabularies.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> crowd.take([True, False]).n_votes
        1
        """
        chosen = np.asarray(rows)
        return self._replace(np.sort(np.arange(self.n_votes)[chosen if chosen.size else slice(0)]))

    def select_workers(self, workers: Iterable[Any]) -> Self:
        """Keep the votes of some workers; every task stays, also when nobody is left on it.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "cat")])
        >>> crowd.select_workers(["ann"])
        Crowd(1 labels: 2 tasks x 1 workers, 2 classes, 0.5 labels/task)
        """
        if self.workers is None:
            raise UsageError("this crowd has no worker ids, so no worker can be selected")
        wanted = vocab.as_vocabulary(workers, "worker")
        position = self.workers.get_indexer(wanted)
        if (position < 0).any():
            raise InputError(f"unknown workers: {some(wanted[position < 0])}")
        place = np.full(len(self.workers), -1, dtype=np.int32)
        place[position] = np.arange(len(position), dtype=np.int32)
        rows = np.flatnonzero(place[self.worker_codes] >= 0)
        return self._replace(rows, worker=place[self.worker_codes[rows]], workers=wanted)

    def only_observed(self) -> Self:
        """Drop the votes that a completer filled in.

        >>> from wisecrowd import Crowd
        >>> Crowd.from_triples([("t1", "ann", "cat")]).only_observed().n_votes
        1
        """
        return self if bool(self.observed.all()) else self.take(self.observed)

    def without_workers(self) -> Self:
        """Forget who said what: one weighted row per (task, class) that somebody chose.

        >>> from wisecrowd import Crowd
        >>> Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat")]).without_workers()
        Crowd(2 labels: 1 tasks, no worker ids, 1 classes, 2.0 labels/task)
        """
        counts = self.only_observed().votes
        task, label = np.nonzero(counts)
        return type(self)(
            task, None, label, tasks=self.tasks, workers=None, classes=self.classes, weight=counts[task, label],
            duplicates="keep", tasks_given=self.tasks_given,
        )  # fmt: skip

    def hide(self, fraction: float = 0.2, *, random_state: int = 0) -> tuple[Self, Self]:
        """Split the votes at random into (kept, hidden), over the same vocabularies, to validate without gold.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([(task, worker, "x") for task in range(10) for worker in "abcde"])
        >>> kept, hidden = crowd.hide(0.2)
        >>> kept.n_votes, hidden.n_votes
        (40, 10)
        """
        if not 0 < fraction < 1:
            raise UsageError(f"fraction must lie between 0 and 1; got {fraction}")
        hidden = np.zeros(self.n_votes, dtype=bool)
        count = round(fraction * self.n_votes)
        hidden[np.random.default_rng(random_state).permutation(self.n_votes)[:count]] = True
        return self.take(~hidden), self.take(hidden)

    def at_most(self, n: int, *, random_state: int = 0) -> Self:
        """Keep no more than ``n`` votes on each task, drawn at random: what fewer labels would have been worth.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([(task, worker, "x") for task in range(10) for worker in "abcde"])
        >>> crowd.at_most(2).n_votes
        20
        """
        if n < 1:
            raise UsageError(f"at least one vote on each task must stay; got {n}")
        order, rank = shuffled_within(self.task, self.n_tasks, np.random.default_rng(random_state))
        return self.take(np.sort(order[rank < n]))

    def shards(self, n: int) -> list[Self]:
        """Split by task into ``n`` crowds of about equally many votes, over the same workers and classes.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([(task, "ann", "x") for task in range(10)])
        >>> [len(shard) for shard in crowd.shards(3)]
        [3, 4, 3]
        """
        if n < 1:
            raise UsageError(f"a crowd splits into one shard or more; got {n}")
        cuts = np.searchsorted(self.offset, np.linspace(0, self.n_votes, n + 1)[1:-1].round())
        edges = [0, *np.maximum.accumulate(cuts).tolist(), self.n_tasks]
        return [self[start:stop] for start, stop in pairwise(edges)]

    @classmethod
    def concat(cls, crowds: Sequence[Crowd], *, duplicates: Duplicates = "error") -> Self:
        """One crowd of all votes; vocabularies are united by id.

        >>> from wisecrowd import Crowd
        >>> ann = Crowd.from_triples([("t1", "ann", "cat")])
        >>> bob = Crowd.from_triples([("t1", "bob", "dog")])
        >>> Crowd.concat([ann, bob])
        Crowd(2 labels: 1 tasks x 2 workers, 2 classes, 2.0 labels/task)
        """
        if not crowds:
            raise UsageError("concat wants at least one crowd")
        if len({(crowd.has_workers, crowd.is_numeric) for crowd in crowds}) > 1:
            raise UsageError("only crowds of one form can be joined: all with worker ids or none, all numeric or none")
        first = crowds[0]
        tasks = vocab.union([crowd.tasks for crowd in crowds])
        workers = (
            None
            if first.workers is None
            else vocab.union([crowd.workers for crowd in crowds if crowd.workers is not None])
        )
        classes = (
            None
            if first.classes is None
            else vocab.union([crowd.classes for crowd in crowds if crowd.classes is not None])
        )

        def joined(codes: Sequence[NDArray[Any]], old: Sequence[pd.Index], new: pd.Index) -> NDArray[Any]:
            return np.concatenate([new.get_indexer(index)[code] for code, index in zip(codes, old, strict=True)])

        return cls(
            joined([crowd.task for crowd in crowds], [crowd.tasks for crowd in crowds], tasks),
            None if workers is None else joined(
                [crowd.worker_codes for crowd in crowds], [vocab.as_index(crowd.workers) for crowd in crowds], workers),
            np.concatenate([crowd.label for crowd in crowds]) if classes is None else joined(
                [crowd.label for crowd in crowds], [vocab.as_index(crowd.classes) for crowd in crowds], classes),
            tasks=tasks, workers=workers, classes=classes,
            weight=np.concatenate([c.weight for c in crowds]) if any(c.is_weighted for c in crowds) else None,
            observed=np.concatenate([c.observed for c in crowds]),
            time=np.concatenate([c.time for c in crowds]) if any(c.has_times for c in crowds) else None,
            duplicates=duplicates if first.has_workers else "keep",
            tasks_given=all(crowd.tasks_given for crowd in crowds) and tasks is first.tasks,
        )  # fmt: skip

    @classmethod
    def joined(cls, chunks: Iterable[Self]) -> Self:
        """One crowd of chunks over the same workers and classes, tasks after tasks: undoes `shards`.

        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([(task, "ann", "x") for task in range(10)])
        >>> Crowd.joined(crowd.shards(3)) == crowd
        True
        """
        columns = [_Column(default) for default in (None, None, None, 1.0, True, np.nan)]
        tasks: list[pd.Index] = []
        first: Self | None = None
        n_before = 0
        for chunk in chunks:
            first = chunk if first is None else first
            if not (_same(first.workers, chunk.workers) and _same(first.classes, chunk.classes)):
                raise UsageError("chunks over the same workers and classes were wanted; concat unites vocabularies")
            for column, values in zip(columns, chunk._rows._replace(task=chunk.task + np.int32(n_before)), strict=True):
                column.add(values, chunk.n_votes)
            tasks.append(chunk.tasks)
            n_before += chunk.n_tasks
        if first is None:
            raise UsageError("joined wants at least one chunk")
        rows = [column.whole() for column in columns]
        whole = cls.__new__(cls)
        whole.tasks = tasks[0] if len(tasks) == 1 else vocab.as_vocabulary(tasks[0].append(tasks[1:]), "task")
        whole.workers, whole.classes, whole.tasks_given = first.workers, first.classes, first.tasks_given
        whole._hold(Rows(*rows))  # type: ignore[arg-type]  # in the order of its fields
        return whole

    def _replace(self, rows: NDArray[Any], **changed: Any) -> Self:
        """A crowd of some rows with some fields changed."""
        kept = self._rows
        fields: dict[str, Any] = {
            "task": self.task[rows],
            "worker": None if self.worker is None else self.worker[rows],
            "label": self.label[rows],
            "tasks": self.tasks,
            "workers": self.workers,
            "classes": self.classes,
            "weight": None if kept.weight is None else kept.weight[rows],
            "observed": None if kept.observed is None else kept.observed[rows],
            "time": None if kept.time is None else kept.time[rows],
            "duplicates": "keep",  # what was accepted once is not judged again
            "tasks_given": self.tasks_given,
        }
        return type(self)(**(fields | changed))


def _same(one: pd.Index | None, other: pd.Index | None) -> bool:
    return one is other or (one is not None and other is not None and one.equals(other))


class _Column:
    """Values that come in chunks, in an array that grows where it is: no chunk is kept until there is room for all of them."""

    def __init__(self, default: Any) -> None:
        self.default, self.n = default, 0
        self.values: NDArray[Any] | None = None

    def add(self, chunk: NDArray[Any] | None, n: int) -> None:
        """``n`` further values; a chunk that says nothing has the default throughout."""
        if chunk is not None and self.values is None:
            self.values = np.full(self.n, 0 if self.default is None else self.default, dtype=chunk.dtype)
        if self.values is not None:
            if self.n + n > len(self.values):
                self.values.resize((self.n + n) * 9 // 8, refcheck=False)
            self.values[self.n : self.n + n] = self.default if chunk is None else chunk
        self.n += n

    def whole(self) -> NDArray[Any] | None:
        """All of them; None where no chunk said anything."""
        if self.values is not None:
            self.values.resize(self.n, refcheck=False)
        return self.values
