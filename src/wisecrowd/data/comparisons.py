"""Comparisons of two items by workers: which one is better, or neither."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike, as_table, read_numbers
from wisecrowd.data.rows import as_codes, as_weights, draw_heldout
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.utils.notebook import MAX_ROWS, render_html
from wisecrowd.utils.text import count_noun

#: Outcomes of a comparison, in the order of their codes.
OUTCOMES = ("left", "right", "tie")
LEFT, RIGHT, TIE = range(3)

#: Words for the outcomes in the label column, in lower case without spaces, dashes, underscores and brackets.
_OUTCOME_WORDS = {
    LEFT: ("left", "a", "modela", "responsea", "answera", "first", "x", "chosenleft"),
    RIGHT: ("right", "b", "modelb", "responseb", "answerb", "second", "y", "chosenright"),
    TIE: ("tie", "tied", "draw", "equal", "same", "both", "neither", "none", "bothbad", "bothgood", "tiebothbad"),
}
_OUTCOME_BY_WORD = {word: outcome for outcome, words in _OUTCOME_WORDS.items() for word in words}
_PUNCTUATION = r"[\s_\-()]+"

#: Treatment of a pair that a worker judged in both orders.
Swapped: TypeAlias = Literal["average", "keep", "reconcile"]
#: Treatment of a pair that a worker judged several times in the same order.
RepeatedComparisons: TypeAlias = Literal["error", "first", "last", "keep"]


class PairCounts(NamedTuple):
    """Total weight of the outcomes by pair of items, without regard to the side on which an item was shown.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Item codes, ``first < second``.
    first_wins, second_wins, ties : ndarray of shape (n_pairs,)
        Total weight of each outcome.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    first_wins: NDArray[np.float64]
    second_wins: NDArray[np.float64]
    ties: NDArray[np.float64]


class Comparisons:
    """Sparse, immutable comparisons of pairs of items.

    Comparison ``n`` says that worker ``workers[worker[n]]`` saw item ``items[left[n]]`` on the left and ``items[right[n]]``
    on the right, for the prompt ``tasks[task[n]]``, and that the outcome was ``OUTCOMES[outcome[n]]``. Rows are sorted, and all
    arrays are read-only.

    Build comparisons with `from_frame` or `from_tuples`.

    Parameters
    ----------
    left, right : array-like of shape (n_votes,)
        Positions in ``items``.
    outcome : array-like of shape (n_votes,)
        0 if the left item is better, 1 if the right item is better, 2 for a tie.
    items : Index
        Item ids.
    worker : array-like of shape (n_votes,), optional
        Positions in ``workers``.
    workers : Index, optional
        Worker ids; None if the comparisons have no worker ids.
    task : array-like of shape (n_votes,), optional
        Positions in ``tasks``.
    tasks : Index, optional
        Ids of prompts or contexts; None if there are none.
    weight : array-like of shape (n_votes,), optional
        Weight of each comparison; every one counts once by default.

    Raises
    ------
    InputError
        If columns differ in length, contain invalid codes, or compare an item with itself.

    Examples
    --------
    >>> votes = [("ann", "tea", "milk", "tea"), ("bob", "milk", "tea", "tie"), ("ann", "tea", "water", "water")]
    >>> comparisons = Comparisons.from_tuples(votes)
    >>> comparisons
    Comparisons(3 comparisons: 3 items, 2 pairs, 2 workers, 33% ties)
    >>> comparisons.items.tolist()
    ['milk', 'tea', 'water']
    """

    answer_type: ClassVar[AnswerType] = "pairwise"

    def __init__(
        self,
        left: ArrayLike,
        right: ArrayLike,
        outcome: ArrayLike,
        *,
        items: pd.Index,
        worker: ArrayLike | None = None,
        workers: pd.Index | None = None,
        task: ArrayLike | None = None,
        tasks: pd.Index | None = None,
        weight: ArrayLike | None = None,
    ) -> None:
        self.items = vocab.as_vocabulary(items, "item")
        self.workers = None if workers is None else vocab.as_vocabulary(workers, "worker")
        self.tasks = None if tasks is None else vocab.as_vocabulary(tasks, "task")
        columns: dict[str, NDArray[Any] | None] = {
            "left": as_codes(left, len(self.items), "left item"),
            "right": as_codes(right, len(self.items), "right item"),
            "outcome": as_codes(outcome, len(OUTCOMES), "outcome"),
            "worker": None if self.workers is None else as_codes(worker, len(self.workers), "worker"),
            "task": None if self.tasks is None else as_codes(task, len(self.tasks), "task"),
            "weight": as_weights(weight),
        }
        lengths = {name: len(column) for name, column in columns.items() if column is not None}
        if len(set(lengths.values())) > 1:
            raise InputError(f"all columns need one value per comparison; got lengths {lengths}")
        # A fixed order of the rows, so that sums do not depend on the order of a file.
        vocabularies = {"task": self.tasks, "worker": self.workers, "left": self.items, "right": self.items}
        codes = [(columns[name], len(index)) for name, index in vocabularies.items() if index is not None]
        order = _argsort_columns([*codes, (columns["outcome"], len(OUTCOMES))], columns["weight"])
        for name, column in columns.items():
            values = None if column is None else column[order]
            if values is not None:
                values.setflags(write=False)
            setattr(self, name, values)
        itself = np.flatnonzero(self.left == self.right)
        if itself.size:
            raise InputError(
                f"{count_noun(itself.size, 'row')} with one item on both sides, such as "
                f"{preview([self.items[self.left[itself[0]]]])}; drop these rows"
            )

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int32]
    worker: NDArray[np.int32] | None
    task: NDArray[np.int32] | None
    weight: NDArray[np.float64] | None

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        left: str = "left",
        right: str = "right",
        label: str = "label",
        worker: str | None = "worker",
        task: str | None = None,
        weight: str | None = None,
        items: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        tasks: Sequence[Any] | pd.Index | None = None,
        duplicates: RepeatedComparisons = "error",
        swapped: Swapped = "average",
        missing: Literal["error", "drop"] = "error",
    ) -> Comparisons:
        """Build comparisons from a table with one comparison per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        left, right, label : str
            Names of the columns. The label is the id of the better item, or a word: left, right, a, b, model_a, model_b, tie,
            "both bad" and the like, in any case.
        worker : str or None, default="worker"
            Column of the worker ids; None reads comparisons without worker ids.
        task : str, default=None
            Column of the prompt or context of each comparison.
        weight : str, default=None
            Column with the weight of each comparison.
        items, workers, tasks : sequence or Index, default=None
            Vocabularies in their order. By default, the ids of the table, sorted.
        duplicates : {"error", "first", "last", "keep"}, default="error"
            Treatment of several comparisons of one pair in the same order by one worker on one task.
        swapped : {"average", "keep", "reconcile"}, default="average"
            Treatment of a pair that one worker judged in both orders on one task. "average" keeps both, each with half the
            weight, so that the two count as one comparison and still show whether the worker prefers a side. "keep" counts both.
            "reconcile" replaces them by one comparison: the common winner, or a tie if they contradict each other.
        missing : {"error", "drop"}, default="error"
            Treatment of rows with a missing value.

        Returns
        -------
        Comparisons

        Raises
        ------
        InputError
            If a column is absent, a label is neither an item of its row nor a known word, or comparisons repeat while
            ``duplicates="error"``.

        Examples
        --------
        >>> frame = {"model_a": ["m1", "m2"], "model_b": ["m2", "m3"], "winner": ["model_a", "tie (bothbad)"]}
        >>> arena = Comparisons.from_frame(frame, left="model_a", right="model_b", label="winner", worker=None)
        >>> arena.to_frame()["label"].tolist()
        ['m1', 'tie']
        """
        check_choice("duplicates", duplicates, ("error", "first", "last", "keep"))
        check_choice("swapped", swapped, ("average", "keep", "reconcile"))
        check_choice("missing", missing, ("error", "drop"))
        required = [name for name in (left, right, label, worker, task, weight) if name is not None]
        table = as_table(frame, required)
        absent = [name for name in required if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}. Name your columns, for example "
                'left="model_a", right="model_b", label="winner", worker="judge"'
            )
        if missing == "drop":
            is_missing = np.logical_or.reduce([vocab.find_missing(table[name]) for name in required])
            table = table.filter(pa.array(~is_missing)) if is_missing.any() else table
        left_column, right_column = _as_text_or_same(table[left], table[right])
        vocab.check_no_missing(left_column, "left item")
        vocab.check_no_missing(right_column, "right item")
        both = pa.chunked_array([*left_column.chunks, *right_column.chunks], type=left_column.type)
        item_codes, item_index = vocab.encode_ids(both, "item", items)
        n_rows = table.num_rows
        left_codes, right_codes = item_codes[:n_rows], item_codes[n_rows:]
        outcome = _encode_outcomes(table[label], left_codes, right_codes, item_index)
        worker_codes, worker_index = (
            (None, None) if worker is None else vocab.encode_ids(table[worker], "worker", workers)
        )
        task_codes, task_index = (None, None) if task is None else vocab.encode_ids(table[task], "task", tasks)
        rows = _Rows(
            left_codes,
            right_codes,
            outcome,
            worker_codes,
            task_codes,
            None if weight is None else read_numbers(table[weight]),
        )
        if worker is not None:
            rows = rows.drop_repeated(duplicates, item_index, worker_index).merge_swapped(swapped)
        return cls(
            rows.left,
            rows.right,
            rows.outcome,
            items=item_index,
            worker=rows.worker,
            workers=worker_index,
            task=rows.task,
            tasks=task_index,
            weight=rows.weight,
        )

    @classmethod
    def from_tuples(cls, tuples: Iterable[Sequence[Any]], **options: Any) -> Comparisons:
        """Build comparisons from tuples of worker, left item, right item and label.

        Parameters
        ----------
        tuples : iterable of (worker, left, right, label)
            The comparisons.
        **options
            Keyword arguments of `from_frame`.

        Returns
        -------
        Comparisons

        Examples
        --------
        >>> Comparisons.from_tuples([("ann", "a1", "a2", "left")]).n_votes
        1
        """
        rows = list(tuples)
        invalid = next((row for row in rows if len(row) != 4), None)
        if invalid is not None:
            raise InputError(f"each row must be (worker, left, right, label); got {preview([invalid])}")
        columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
        names = ("worker", "left", "right", "label")
        return cls.from_frame(dict(zip(names, map(list, columns), strict=True)), **options)

    @staticmethod
    def concat(parts: Sequence[Comparisons]) -> Comparisons:
        """Concatenate comparisons and unite their vocabularies by id.

        Parameters
        ----------
        parts : sequence of Comparisons
            All with worker ids or none, all with tasks or none.

        Returns
        -------
        Comparisons

        Examples
        --------
        >>> parts = [Comparisons.from_tuples([(name, "x", "y", "x")]) for name in ("ann", "bob")]
        >>> Comparisons.concat(parts).n_workers
        2
        """
        if not parts:
            raise UsageError("concat needs at least one part; got none")
        if len({(part.workers is None, part.tasks is None) for part in parts}) > 1:
            raise UsageError(
                "only comparisons of one form can be concatenated: all with worker ids or none, all with tasks or none"
            )
        first = parts[0]
        items, left = vocab.unite_codes([(part.items, part.left) for part in parts])
        _, right = vocab.unite_codes([(part.items, part.right) for part in parts])
        workers, worker, tasks, task = None, None, None, None
        if first.workers is not None:
            workers, worker = vocab.unite_codes([(vocab.as_index(part.workers), part.worker) for part in parts])
        if first.tasks is not None:
            tasks, task = vocab.unite_codes([(vocab.as_index(part.tasks), part.task) for part in parts])
        is_weighted = any(part.weight is not None for part in parts)
        return Comparisons(
            left,
            right,
            np.concatenate([part.outcome for part in parts]),
            items=items,
            worker=worker,
            workers=workers,
            task=task,
            tasks=tasks,
            weight=np.concatenate([part.vote_weight for part in parts]) if is_weighted else None,
        )

    # ------------------------------------------------------------------ sizes and derived quantities

    @property
    def n_votes(self) -> int:
        """Number of comparisons."""
        return len(self.left)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_workers(self) -> int:
        """Number of workers; raises UsageError if there are no worker ids."""
        if self.workers is None:
            raise UsageError("these comparisons have no worker ids")
        return len(self.workers)

    @property
    def n_tasks(self) -> int:
        """Number of prompts; raises UsageError if comparisons have no task."""
        if self.tasks is None:
            raise UsageError("these comparisons have no tasks; name the column of prompts with task=")
        return len(self.tasks)

    @property
    def has_workers(self) -> bool:
        """True if comparisons have worker ids."""
        return self.workers is not None

    def __len__(self) -> int:
        return self.n_votes

    @cached_property
    def vote_weight(self) -> NDArray[np.float64]:
        """Weight of each comparison."""
        return np.ones(self.n_votes) if self.weight is None else self.weight

    @cached_property
    def pair_counts(self) -> PairCounts:
        """Total weight of every outcome of every pair of items that was compared."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        pairs, pair = np.unique(low.astype(np.int64) * self.n_items + high, return_inverse=True)
        first_wins = (self.left == low) == (self.outcome == LEFT)
        outcome = np.where(self.outcome == TIE, TIE, np.where(first_wins, LEFT, RIGHT))
        cell = pair.astype(np.int64) * len(OUTCOMES) + outcome
        counts = np.bincount(cell, self.vote_weight, len(pairs) * len(OUTCOMES)).reshape(-1, len(OUTCOMES))
        first, second = np.divmod(pairs, self.n_items)
        return PairCounts(first.astype(np.int32), second.astype(np.int32), *counts.T.astype(np.float64))

    @cached_property
    def item_counts(self) -> pd.DataFrame:
        """Wins, losses and ties of every item, as a table indexed by item."""
        pairs, n = self.pair_counts, self.n_items

        def sum_by_item(of_first: NDArray[np.float64], of_second: NDArray[np.float64]) -> NDArray[Any]:
            return np.bincount(pairs.first, of_first, n) + np.bincount(pairs.second, of_second, n)

        columns = {
            "wins": sum_by_item(pairs.first_wins, pairs.second_wins),
            "losses": sum_by_item(pairs.second_wins, pairs.first_wins),
            "ties": sum_by_item(pairs.ties, pairs.ties),
        }
        return pd.DataFrame(columns, index=self.items.rename("item"))

    def find_components(self, *, strong: bool = False) -> NDArray[np.int32]:
        """Return the component of the comparison graph that each item belongs to.

        Scores of items in different components cannot be compared.

        Parameters
        ----------
        strong : bool, default=False
            Follow wins only: an item reaches those that it has beaten or tied. A maximum-likelihood score exists only if all
            items reach each other.

        Returns
        -------
        ndarray of shape (n_items,)
            Number of the component, from 0, the largest first.

        Examples
        --------
        >>> votes = [("ann", "a", "b", "a"), ("ann", "c", "d", "c"), ("ann", "b", "e", "b")]
        >>> Comparisons.from_tuples(votes).find_components().tolist()
        [0, 0, 1, 1, 0]
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pairs = self.pair_counts
        forward, backward = pairs.first_wins + pairs.ties > 0, pairs.second_wins + pairs.ties > 0
        source = np.concatenate([pairs.first[forward], pairs.second[backward]])
        target = np.concatenate([pairs.second[forward], pairs.first[backward]])
        graph = coo_array((np.ones(len(source)), (source, target)), shape=(self.n_items, self.n_items)).tocsr()
        _, component = connected_components(graph, directed=True, connection="strong" if strong else "weak")
        sizes = np.bincount(component)
        first_item = np.full(len(sizes), self.n_items)
        np.minimum.at(first_item, component, np.arange(self.n_items))
        rank = np.empty(len(sizes), dtype=np.int32)
        rank[np.lexsort((first_item, -sizes))] = np.arange(len(sizes), dtype=np.int32)
        return rank[component]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal comparisons have equal digests."""
        sha = hashlib.sha256(b"comparisons")
        for index in (self.items, self.workers, self.tasks):
            sha.update(b"-" if index is None else pd.util.hash_array(index.to_numpy(dtype=object)).tobytes())
        weight = None if self.weight is None or (self.weight == 1).all() else self.weight
        for array in (self.left, self.right, self.outcome, self.worker, self.task, weight):
            sha.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

    # ------------------------------------------------------------------ selections

    def take(self, rows: ArrayLike) -> Comparisons:
        """Select comparisons by row; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the comparisons to keep.

        Returns
        -------
        Comparisons

        Examples
        --------
        >>> votes = [("ann", "a", "b", "a"), ("bob", "a", "b", "b")]
        >>> Comparisons.from_tuples(votes).take([True, False]).n_votes
        1
        """
        selection = np.asarray(rows)
        positions = np.sort(np.arange(self.n_votes)[selection if selection.size else slice(0)])
        return Comparisons(
            self.left[positions],
            self.right[positions],
            self.outcome[positions],
            items=self.items,
            worker=None if self.worker is None else self.worker[positions],
            workers=self.workers,
            task=None if self.task is None else self.task[positions],
            tasks=self.tasks,
            weight=None if self.weight is None else self.weight[positions],
        )

    def select_workers(self, workers: Iterable[Any]) -> Comparisons:
        """Select the comparisons of some workers; the vocabularies stay the same.

        Parameters
        ----------
        workers : iterable
            Worker ids.

        Returns
        -------
        Comparisons

        Examples
        --------
        >>> votes = [("ann", "a", "b", "a"), ("bob", "a", "b", "b")]
        >>> Comparisons.from_tuples(votes).select_workers(["bob"]).n_votes
        1
        """
        if self.workers is None or self.worker is None:
            raise UsageError("these comparisons have no worker ids, so workers cannot be selected")
        selection = pd.Index(list(workers))
        position = self.workers.get_indexer(selection)
        if (position < 0).any():
            raise InputError(f"unknown workers: {preview(selection[position < 0])}")
        return self.take(np.isin(self.worker, position))

    def hide(self, fraction: float = 0.2, *, random_state: int = 0) -> tuple[Comparisons, Comparisons]:
        """Split the comparisons at random into visible and held-out ones, to validate without gold.

        Parameters
        ----------
        fraction : float, default=0.2
            Fraction of the comparisons to hold out.
        random_state : int, default=0
            Seed.

        Returns
        -------
        visible, heldout : Comparisons
            Both over the vocabularies of these comparisons.

        Examples
        --------
        >>> votes = [("ann", "a", f"b{n}", "a") for n in range(10)]
        >>> [part.n_votes for part in Comparisons.from_tuples(votes).hide(0.2)]
        [8, 2]
        """
        is_heldout = draw_heldout(self.n_votes, fraction, random_state)
        return self.take(~is_heldout), self.take(is_heldout)

    def sum_equal(self, *, workers: bool = True, tasks: bool = True) -> Comparisons:
        """Sum equal comparisons into one row whose weight is their total weight.

        Fits depend on these sums only, so comparisons that do not fit in memory can be read in parts: sum each part, and
        concatenate the sums. Without workers and tasks there are at most three rows per ordered pair of items.

        Parameters
        ----------
        workers, tasks : bool, default=True
            Keep the comparisons of different workers, or on different tasks, apart. Otherwise the sums have no worker ids, or no
            tasks.

        Returns
        -------
        Comparisons

        Examples
        --------
        >>> part = Comparisons.from_tuples([("ann", "a", "b", "a"), ("bob", "a", "b", "a"), ("cy", "a", "b", "b")])
        >>> total = Comparisons.concat([part.sum_equal(workers=False), part.sum_equal(workers=False)]).sum_equal()
        >>> total.n_votes, total.vote_weight.tolist()
        (2, [4.0, 2.0])
        """
        worker, task = self.worker if workers else None, self.task if tasks else None
        columns = [column for column in (self.outcome, self.right, self.left, worker, task) if column is not None]
        order = np.lexsort(columns)
        is_new = np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in columns])
        rows = order[is_new]
        weight = np.bincount(np.cumsum(is_new) - 1, self.vote_weight[order], len(rows))
        return Comparisons(
            self.left[rows],
            self.right[rows],
            self.outcome[rows],
            items=self.items,
            worker=None if worker is None else worker[rows],
            workers=None if worker is None else self.workers,
            task=None if task is None else task[rows],
            tasks=None if task is None else self.tasks,
            weight=weight,
        )

    # ------------------------------------------------------------------ output

    def to_frame(self) -> pd.DataFrame:
        """Convert the comparisons to a table with one row per comparison.

        Returns
        -------
        DataFrame
            Columns worker, task, left, right and label (id of the better item, or "tie"); and weight unless all count once.

        Examples
        --------
        >>> Comparisons.from_tuples([("ann", "a1", "a2", "left")]).to_frame().to_dict("records")
        [{'worker': 'ann', 'left': 'a1', 'right': 'a2', 'label': 'a1'}]
        """
        columns: dict[str, Any] = {}
        if self.workers is not None:
            columns["worker"] = self.workers.take(self.worker)  # type: ignore[arg-type]  # has worker codes
        if self.tasks is not None:
            columns["task"] = self.tasks.take(self.task)  # type: ignore[arg-type]  # has task codes
        columns["left"], columns["right"] = self.items.take(self.left), self.items.take(self.right)
        winner = self.items.take(np.where(self.outcome == RIGHT, self.right, self.left)).to_numpy(dtype=object)
        columns["label"] = np.where(self.outcome == TIE, OUTCOMES[TIE], winner)
        if self.weight is not None:
            columns["weight"] = self.vote_weight
        return pd.DataFrame(columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparisons):
            return NotImplemented
        return self.n_votes == other.n_votes and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.take(np.arange(min(self.n_votes, MAX_ROWS))).to_frame())

    def __repr__(self) -> str:
        n_pairs = len(self.pair_counts.first)
        workers = "no worker ids" if self.workers is None else count_noun(len(self.workers), "worker")
        prompts = "" if self.tasks is None else f", {count_noun(len(self.tasks), 'task')}"
        ties = float(self.vote_weight[self.outcome == TIE].sum() / max(self.vote_weight.sum(), 1e-300))
        return (
            f"Comparisons({count_noun(self.n_votes, 'comparison')}: {count_noun(self.n_items, 'item')}, "
            f"{count_noun(n_pairs, 'pair')}, {workers}{prompts}, {ties:.0%} ties)"
        )


@dataclass(frozen=True)
class _Rows:
    """Columns of comparisons as codes, in the order of a table."""

    left: NDArray[Any]
    right: NDArray[Any]
    outcome: NDArray[Any]
    worker: NDArray[Any] | None
    task: NDArray[Any] | None
    weight: NDArray[Any] | None

    def take(self, rows: NDArray[Any]) -> _Rows:
        columns = (self.left, self.right, self.outcome, self.worker, self.task, self.weight)
        return _Rows(*(None if column is None else column[rows] for column in columns))  # type: ignore[arg-type]  # same fields

    def _number_groups(self, *, ordered: bool) -> NDArray[np.int64]:
        """Number the groups of comparisons of one worker on one task and pair; ``ordered`` separates the two orders."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        columns = [self.worker, self.task, *((self.left, self.right) if ordered else (low, high))]
        present = [column for column in columns if column is not None]
        order = _argsort_columns([(column, int(column.max()) + 1) for column in present])
        is_new = np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in present])
        group = np.empty(len(order), dtype=np.int64)
        group[order] = np.cumsum(is_new) - 1
        return group

    def drop_repeated(self, rule: RepeatedComparisons, items: pd.Index, workers: pd.Index | None) -> _Rows:
        """Apply the rule for comparisons that repeat in the same order.

        Parameters
        ----------
        rule : RepeatedComparisons
            Rule for repeated comparisons.
        items : Index
            Items, for messages.
        workers : Index or None
            Workers, for messages.

        Returns
        -------
        _Rows
        """
        if rule == "keep" or not len(self.left):
            return self
        group = self._number_groups(ordered=True)
        _, first = np.unique(group, return_index=True)
        if len(first) == len(group):
            return self
        if rule == "error":
            repeated = np.setdiff1d(np.arange(len(group)), first)
            row = repeated[0]
            worker = "" if workers is None or self.worker is None else f"worker {preview([workers[self.worker[row]]])} "
            raise InputError(
                f"{count_noun(repeated.size, 'repeated comparison')}; for example {worker}compared "
                f"{preview([items[self.left[row]]])} with {preview([items[self.right[row]]])} twice. Choose duplicates='first' or "
                "'last' to keep one of them, or 'keep' to count all (--duplicates on the command line)"
            )
        if rule == "last":
            _, first = np.unique(group[::-1], return_index=True)
            first = len(group) - 1 - first
        return self.take(np.sort(first))

    def merge_swapped(self, rule: Swapped) -> _Rows:
        """Apply the rule for pairs that a worker judged in both orders."""
        if rule == "keep" or not len(self.left):
            return self
        group = self._number_groups(ordered=False)
        is_forward = self.left < self.right
        n_groups = int(group.max()) + 1
        in_both = (np.bincount(group, is_forward, n_groups) > 0) & (np.bincount(group, ~is_forward, n_groups) > 0)
        rows_in_both = in_both[group]
        if not rows_in_both.any():
            return self
        weight = np.ones(len(group)) if self.weight is None else self.weight
        if rule == "average":
            size = np.bincount(group, minlength=n_groups)
            return _Rows(
                self.left, self.right, self.outcome, self.worker, self.task,
                np.where(rows_in_both, weight / size[group], weight),
            )  # fmt: skip
        # One comparison per group, in the order of the first: the common winner, or a tie.
        low_wins = self.outcome != TIE
        winner = np.where(self.outcome == LEFT, self.left, self.right)
        _, first = np.unique(group, return_index=True)
        agrees = np.bincount(group, low_wins & (winner == winner[first][group]), n_groups) == np.bincount(
            group, minlength=n_groups
        )
        outcome = self.outcome.copy()
        outcome[rows_in_both & ~agrees[group]] = TIE
        mean_weight = np.bincount(group, weight, n_groups) / np.bincount(group, minlength=n_groups)
        merged = _Rows(
            self.left, self.right, outcome, self.worker, self.task, np.where(rows_in_both, mean_weight[group], weight)
        )
        is_first = np.zeros(len(group), dtype=bool)
        is_first[first] = True
        return merged.take(np.flatnonzero(~rows_in_both | is_first))


def _argsort_columns(
    columns: Sequence[tuple[NDArray[Any] | None, int]], last: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Return the permutation that sorts rows by columns of codes with given numbers of values, then by ``last``."""
    codes = [(column, n_values) for column, n_values in columns if column is not None]
    if math.prod(max(n_values, 1) for _, n_values in codes) < 2**63:
        key = np.zeros(len(codes[0][0]), dtype=np.int64)
        for column, n_values in codes:  # one key sorts several times faster than several columns
            key = key * max(n_values, 1) + column
        keys = [key]
    else:
        keys = [column for column, _ in reversed(codes)]
    return np.lexsort(keys if last is None else [last, *keys]).astype(np.int64)


def _as_text_or_same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return two columns of ids in one type: their common type, or text."""
    left, right = (
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in (left, right)
    )
    if left.type.equals(right.type):
        return left, right
    return left.cast(pa.string()), right.cast(pa.string())


def _encode_outcomes(
    label: pa.ChunkedArray, left: NDArray[Any], right: NDArray[Any], items: pd.Index
) -> NDArray[np.int32]:
    """Return the outcome of each row from the id of the better item, or from a word such as "left" or "tie"."""
    vocab.check_no_missing(label, "label")
    if pa.types.is_dictionary(label.type):
        label = label.cast(label.type.value_type)
    label_codes, labels = vocab.encode_ids(label, "label")
    position = items.get_indexer(vocab.match_id_type(labels, items))[label_codes]
    words = pd.Series(labels.astype(str)).str.lower().str.replace(_PUNCTUATION, "", regex=True)
    by_word = words.map(_OUTCOME_BY_WORD).fillna(-1).to_numpy(dtype=np.int32)[label_codes]
    outcome = np.where(position == left, LEFT, np.where(position == right, RIGHT, -1)).astype(np.int32)
    # A label that names no item of its row is a word.
    from_word = outcome < 0
    outcome[from_word] = by_word[from_word]
    unknown = np.flatnonzero(outcome < 0)
    if unknown.size:
        row = unknown[0]
        raise InputError(
            f"{count_noun(unknown.size, 'label')} that is neither an item of its row nor a known word: "
            f"{preview(labels[np.unique(label_codes[unknown])])}, for example for {preview([items[left[row]]])} and "
            f"{preview([items[right[row]]])}. Write the id of the better item, or left, right or tie"
        )
    used_words = set(words.iloc[np.unique(label_codes[from_word])])
    ambiguous = [item for item in items.astype(str) if item.lower() in used_words] if used_words else []
    if ambiguous:
        raise InputError(
            f"{preview(ambiguous)} is both an item and a word for an outcome, so labels are ambiguous; rename the item"
        )
    return outcome
