"""Votes as a file holds them, and the options for reading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.crowd import Crowd, Missing, Vocabulary
from wisecrowd.data.rows import WEIGHT_RANGE, Duplicates, are_weights
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.numeric_labels import parse_numbers
from wisecrowd.io.tables.spellings import unify_spellings

#: Truth by task: the column "truth" and optionally "split", indexed by task.
TruthTable: TypeAlias = pd.DataFrame
#: Function that returns the line numbers of some rows, or None if they are unknown.
LineFinder: TypeAlias = Callable[[Sequence[int]], list[int] | None]
#: Rules for repeated votes of a worker on a task.
DUPLICATE_RULES: tuple[Duplicates, ...] = ("error", "first", "last", "distinct", "keep")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading votes.

    Parameters
    ----------
    task, label, weight : str, optional
        Names of columns. Without them, common names are recognised.
    worker, time : str or False, optional
        Names of columns. False leaves the column out.
    tasks, workers, classes : sequence, optional
        Vocabularies in their order.
    numeric : bool, default=False
        Read labels as numbers.
    ordered : bool, default=False
        Read classes as ordered, from lowest to highest.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for repeated votes of a worker on a task.
    missing : {"error", "drop"}, default="error"
        Rule for rows with an empty cell.
    normalise : bool, default=False
        Unify spellings of ids and labels.
    question : str, optional
        Question of a labelling tool's export.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to.

    Examples
    --------
    >>> ReadOptions(task="question").missing
    'error'
    """

    task: str | None = None
    worker: str | Literal[False] | None = None
    label: str | None = None
    weight: str | None = None
    time: str | Literal[False] | None = None
    tasks: Vocabulary = None
    workers: Vocabulary = None
    classes: Vocabulary = None
    numeric: bool = False
    ordered: bool = False
    duplicates: Duplicates = "error"
    missing: Missing = "error"
    normalise: bool = False
    question: str | None = None
    max_unpacked: int | str | None = None

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, ("error", "drop"))
        check_choice("duplicates", self.duplicates, DUPLICATE_RULES)

    @property
    def names_columns(self) -> bool:
        """True if the options name a column of a table."""
        return any((self.task, self.worker, self.label, self.weight, self.time))


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """Numbers of rows that the rules of reading removed or changed.

    Parameters
    ----------
    n_rows : int
        Rows with a vote in the file, before the rules.
    n_incomplete : int, default=0
        Rows that were dropped because a value is missing.
    n_repeated : int, default=0
        Rows that were dropped because they repeat a worker's vote on a task.
    respelled : mapping of str to int, default={}
        Rows with a value that took another spelling, by role (task, worker, label).
    left_out : mapping of str to int, default={}
        Answers in the export of a labelling tool that are no votes, by reason.

    Examples
    --------
    >>> RowCounts(n_rows=4, n_incomplete=1, n_repeated=1).describe_dropped()
    "dropped 2 of 4 rows: 1 with a missing value and 1 that repeat a worker's vote on a task"
    """

    n_rows: int
    n_incomplete: int = 0
    n_repeated: int = 0
    respelled: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_complete(self) -> int:
        """Rows without missing values."""
        return self.n_rows - self.n_incomplete

    def describe_dropped(self) -> str:
        """Describe the dropped rows for a message.

        Returns
        -------
        str
            Counts by reason; empty if no row was dropped.
        """
        reasons = [
            (self.n_incomplete, "with a missing value"), (self.n_repeated, "that repeat a worker's vote on a task")
        ]  # fmt: skip
        listed = " and ".join(f"{n:,} {reason}" for n, reason in reasons if n)
        n_dropped = self.n_incomplete + self.n_repeated
        return f"dropped {n_dropped:,} of {self.n_rows:,} rows: {listed}" if n_dropped else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON.

        Returns
        -------
        dict
            ``read``, ``dropped_missing``, ``dropped_repeated``, ``respelled`` and ``left_out``.
        """
        return {
            "read": self.n_rows,
            "dropped_missing": self.n_incomplete,
            "dropped_repeated": self.n_repeated,
            "respelled": dict(self.respelled),
            "left_out": dict(self.left_out),
        }


class ReadVotes(NamedTuple):
    """Votes and the numbers of rows that reading removed or changed.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    counts : RowCounts
        Numbers of rows.
    """

    crowd: Crowd
    counts: RowCounts


@dataclass(frozen=True, kw_only=True)
class VoteTable:
    """Votes of a file before validation.

    Parameters
    ----------
    table : pyarrow.Table
        Columns ``task``, ``label`` and optionally ``worker``, ``weight``, ``observed`` and ``time``.
    tasks, workers, classes : sequence, optional
        Vocabularies, if the format holds more than the rows do, such as tasks without votes.
    numeric : bool, default=False
        Whether labels are numbers.
    ordered : bool, default=False
        Whether the format says that the classes are ordered.
    notes : tuple of str, default=()
        Remarks for the user, such as which column was read as which.
    line_finder : callable, optional
        Function from row positions to line numbers of the file. Formats without lines have none.
    replacements : tuple of str, default=()
        Remarks for the user about unified spellings.
    respelled : mapping of str to int, default={}
        Rows whose spelling was replaced, by role.
    left_out : mapping of str to int, default={}
        Answers of a labelling tool that are no votes, by reason.
    columns : mapping of str to str, default={}
        Column of the file by role, if it has columns that a user can name.
    ends_in_line_break : bool, default=True
        Whether the file ends in a line break. One without may be cut off.

    Examples
    --------
    >>> votes = VoteTable(table=pa.table({"task": ["t1"], "worker": ["ann"], "label": ["cat"]}))
    >>> votes.to_crowd(ReadOptions())
    Crowd(1 vote: 1 task x 1 worker, 1 class, 1.0 votes/task)
    """

    table: pa.Table
    tasks: Vocabulary = None
    workers: Vocabulary = None
    classes: Vocabulary = None
    numeric: bool = False
    ordered: bool = False
    notes: tuple[str, ...] = ()
    line_finder: LineFinder | None = None
    replacements: tuple[str, ...] = ()
    respelled: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    ends_in_line_break: bool = True

    def describe_rows(self, rows: Sequence[int]) -> str:
        """Describe the position of rows for a message.

        Parameters
        ----------
        rows : sequence of int
            Positions in the table, in ascending order.

        Returns
        -------
        str
            Line numbers of the file, or else positions from 0.

        Examples
        --------
        >>> VoteTable(table=pa.table({"task": []}), line_finder=lambda rows: [row + 2 for row in rows]).describe_rows([0, 3])
        'line 2, 5'
        """
        word, positions = self.locate_rows(rows[:4])  # one more than a message shows
        return f"{word} {preview(positions)}"

    def locate_rows(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """Return the positions of rows and the word for them.

        Parameters
        ----------
        rows : sequence of int
            Positions in the table, in ascending order.

        Returns
        -------
        word : {"line", "row"}
            Unit of the positions.
        positions : list of int
            Line numbers of the file, or else positions from 0.

        Examples
        --------
        >>> VoteTable(table=pa.table({"task": []})).locate_rows([0, 3])
        ('row', [0, 3])
        """
        lines = None if self.line_finder is None else self.line_finder(rows)
        return ("row", list(rows)) if lines is None else ("line", lines)

    def drop_incomplete_rows(self) -> VoteTable:
        """Return the rows with a value in every column except the time.

        Returns
        -------
        VoteTable
            Complete rows, which keep their line numbers.

        Examples
        --------
        >>> table = pa.table({"task": ["a", None, "b"], "label": [1.0, 2.0, 3.0]})
        >>> votes = VoteTable(table=table, line_finder=lambda rows: [row + 2 for row in rows])
        >>> votes.drop_incomplete_rows().describe_rows([1])
        'line 4'
        """
        required = [name for name in self.table.column_names if name != "time"]
        incomplete = np.logical_or.reduce([vocab.find_missing(self.table[name]) for name in required])
        if not incomplete.any():
            return self
        complete_rows, line_finder = np.flatnonzero(~incomplete), self.line_finder
        return replace(
            self,
            table=self.table.filter(pa.array(~incomplete)),
            line_finder=None if line_finder is None else lambda rows: line_finder(complete_rows[list(rows)].tolist()),
        )

    def unify_spellings(self, options: ReadOptions) -> VoteTable:
        """Unify spellings of tasks, workers and labels that differ by case, space, Unicode form or number form.

        Parameters
        ----------
        options : ReadOptions
            Vocabularies, whose spellings are chosen before others.

        Returns
        -------
        VoteTable
            Votes with one spelling of each value.

        Examples
        --------
        >>> votes = VoteTable(table=pa.table({"task": ["a", "b", "b"], "label": ["1", "1.0", "1"]}))
        >>> votes.unify_spellings(ReadOptions()).table["label"].to_pylist()
        ['1', '1', '1']
        """
        table, notes, respelled = self.table, [], {}
        vocabularies: dict[str, Vocabulary] = {
            "task": self.tasks if options.tasks is None else options.tasks,
            "worker": self.workers if options.workers is None else options.workers,
            "label": self.classes if options.classes is None else options.classes,
        }
        for role, vocabulary in vocabularies.items():
            if role in table.column_names:
                preferred = None if vocabulary is None else list(vocabulary)
                before = table[role]
                column, note = unify_spellings(before, role, preferred)
                table = table.set_column(table.column_names.index(role), role, column)
                if note:
                    notes.append(note)
                    is_changed = pc.not_equal(before.cast(pa.large_string()), column.cast(pa.large_string()))
                    respelled[role] = pc.sum(is_changed).as_py()
        return replace(self, table=table, replacements=tuple(notes), respelled=respelled)

    def to_crowd(self, options: ReadOptions) -> Crowd:
        """Validate the votes and build a crowd.

        Parameters
        ----------
        options : ReadOptions
            Vocabularies and rules. They take precedence over those of the file.

        Returns
        -------
        Crowd
            The votes.

        Raises
        ------
        InputError
            If the votes are not valid under the options.
        """
        return self.to_counted_crowd(options).crowd

    def to_counted_crowd(self, options: ReadOptions) -> ReadVotes:
        """Validate the votes, build a crowd, and count the rows that the rules removed.

        Parameters
        ----------
        options : ReadOptions
            Vocabularies and rules. They take precedence over those of the file.

        Returns
        -------
        ReadVotes
            The votes and the counts.

        Raises
        ------
        InputError
            If the votes are not valid under the options.

        Examples
        --------
        >>> table = pa.table({"task": ["t1", "t1"], "worker": ["ann", "ann"], "label": ["cat", "dog"]})
        >>> VoteTable(table=table).to_counted_crowd(ReadOptions(duplicates="last")).counts.n_repeated
        1
        """
        table, numeric = self.table, self.numeric or options.numeric
        if options.numeric and options.ordered:
            raise UsageError("numbers are ordered by themselves; use either numeric=True or ordered=True, not both")
        if table.num_rows == 0:
            raise EmptyInput("there are no votes in it; expected a row per vote with a task, a worker and a label")
        if numeric:
            position = table.column_names.index("label")
            table = table.set_column(position, "label", parse_numbers(table["label"], "label", self.describe_rows))
        self._check_rows(table, options)
        if options.missing == "drop":
            complete = replace(self, table=table).drop_incomplete_rows().table
            if complete.num_rows == 0:
                for role in (role for role in ("task", "worker", "label") if role in table.column_names):
                    if vocab.find_missing(table[role]).all():
                        vocab.check_no_missing(table[role], role)
                raise EmptyInput("every row has an empty cell, so nothing is left; fill in task, worker and label")
            table = complete
        vocabularies: dict[str, Any] = {
            "tasks": self.tasks if options.tasks is None else options.tasks,
            "workers": self.workers if options.workers is None else options.workers,
            "classes": self.classes if options.classes is None else options.classes,
        }
        crowd = Crowd.from_frame(
            table,
            worker="worker" if "worker" in table.column_names else None,
            weight="weight" if "weight" in table.column_names else None,
            observed="observed" if "observed" in table.column_names else None,
            time="time" if "time" in table.column_names else None,
            numeric=numeric,
            ordered=(self.ordered or options.ordered) and not numeric,
            duplicates=options.duplicates,
            **vocabularies,
        )
        counts = RowCounts(
            n_rows=self.table.num_rows,
            n_incomplete=self.table.num_rows - table.num_rows,
            n_repeated=table.num_rows - crowd.n_votes,
            respelled=self.respelled,
            left_out=self.left_out,
        )
        return ReadVotes(crowd, counts)

    def _check_rows(self, table: pa.Table, options: ReadOptions) -> None:
        """Report invalid rows by line number, while the rows are still in the order of the file."""
        if self.line_finder is None:
            return
        if options.missing == "error":
            for role in ("task", "worker", "label"):
                if role in table.column_names:
                    vocab.check_no_missing(table[role], role, self.describe_rows)
        if "weight" in table.column_names:
            weight = table["weight"].to_numpy()
            invalid = ~are_weights(weight)
            rows = np.flatnonzero(invalid & ~np.isnan(weight) if options.missing == "drop" else invalid)
            if rows.size:
                raise InputError(
                    f"{rows.size:,} of {len(weight):,} weights do not lie {WEIGHT_RANGE} "
                    f"({self.describe_rows(rows.tolist())}); drop votes that should not count"
                )
