"""What all tables have in common, whatever file they come from: a row per vote, and columns with a role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.distinct_ids import distinct
from wisecrowd.data.timestamps import as_stamps, counts_something, read_times
from wisecrowd.errors import InputError, some
from wisecrowd.io.formats import Options, Truth, Votes
from wisecrowd.io.tables.columns import find_columns, time_column
from wisecrowd.io.tables.numerals import numbers

#: Votes are written in portions, so that their text never stands in memory all at once.
_PORTION = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table that matter, by role.

    >>> Columns.choose(["question", "worker", "answer", "time"], Options()).label
    'answer'
    """

    task: str
    worker: str | None
    label: str
    weight: str | None
    observed: str | None
    time: str | None = None
    time_given: bool = False
    """Whether somebody named the time column; if not, it may be something else."""

    @classmethod
    def choose(cls, names: Sequence[str], options: Options) -> Columns:
        """Find out which column is which, or say what is missing."""
        weight = options.weight or ("weight" if "weight" in names else None)
        wanted = {"task": options.task, "worker": options.worker, "label": options.label, "weight": weight}
        left_out = {"worker": options.worker is False, "weight": weight is None}
        found = find_columns(names, {role: name or None for role, name in wanted.items() if not left_out.get(role)})
        named = find_columns(names, {"time": options.time})["time"] if options.time else None
        taken = {*found.values(), "observed"}
        return cls(
            task=found["task"],
            worker=found.get("worker"),
            label=found["label"],
            weight=found.get("weight"),
            observed="observed" if "observed" in names else None,
            time=None if options.time is False else named or time_column([name for name in names if name not in taken]),
            time_given=named is not None,
        )

    @property
    def roles(self) -> dict[str, str]:
        """Role -> column, for the roles that are played."""
        found = {"task": self.task, "worker": self.worker, "label": self.label}
        found |= {"weight": self.weight, "observed": self.observed, "time": self.time}
        return {role: name for role, name in found.items() if name is not None}

    def votes(self, table: pa.Table, lines: Callable[[Sequence[int]], list[int] | None] | None = None) -> Votes:
        """The votes in a table that has (at least) these columns; ``lines`` tells on which lines of a file rows are."""
        notes = [f"read {name!r} as the {role} column" for role, name in self.roles.items() if name != role]
        columns = {role: table[name] for role, name in self.roles.items()}
        columns["task"] = coded(columns["task"], "task")
        if "weight" in columns:
            columns["weight"] = numbers(columns["weight"], "weight", Votes(table=table, lines=lines).where)
        if "observed" in columns:
            observed = _truths(columns.pop("observed"))
            if observed is None:
                notes.append("left out the column 'observed', which does not hold true and false")
            else:
                columns["observed"] = observed
        if "time" in columns:
            seconds = self._times(columns.pop("time"), Votes(table=table, lines=lines).where)
            if isinstance(seconds, str):
                notes = [note for note in notes if not note.endswith("as the time column")]
                notes.append(f"left out the column {self.time!r}, which does not say when votes were cast: {seconds}")
            else:
                columns["time"] = pa.chunked_array([seconds])
        return Votes(table=pa.table(columns), notes=tuple(notes), lines=lines)

    def _times(self, column: pa.ChunkedArray, where: Callable[[Sequence[int]], str]) -> pa.Array | str:
        """Seconds since 1970; if nobody said that it is times, perhaps why it is not."""
        try:
            seconds = read_times(column, where)
        except InputError as error:
            if self.time_given:
                raise
            return str(error)
        mistaken = not self.time_given and counts_something(column, seconds)
        return "its numbers are too small for that" if mistaken else pa.array(seconds)


def coded(column: pa.ChunkedArray, what: str) -> pa.ChunkedArray:
    """A column of text as codes, so that the text itself can go; other columns, and those with holes, as they are.

    >>> coded(pa.chunked_array([["b", "a"]]), "task").chunk(0).indices.to_pylist()
    [1, 0]
    """
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text or column.null_count:
        return column
    codes, ids = distinct(column, what)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes), ids)])


def truth_frame(table: pa.Table, task: str, truth: str, split: str | None) -> Truth:
    """The truth by task; a task may come often, but with one truth only, and a task without one is left out.

    >>> table = pa.table({"item": ["a", "a", "b"], "gold": ["x", "x", None]})
    >>> truth_frame(table, "item", "gold", None).to_dict()
    {'truth': {'a': 'x'}}
    """
    columns = {"task": table[task].to_pandas(), "truth": table[truth].to_pandas()}
    if split is not None:
        columns["split"] = table[split].to_pandas()
    frame = pd.DataFrame(columns).dropna(subset=["task", "truth"]).drop_duplicates()
    repeated = frame["task"].duplicated()
    if repeated.any():
        tasks = frame["task"][repeated].unique()
        several = f"{len(tasks):,} tasks have" if len(tasks) > 1 else "1 task has"
        raise InputError(f"{several} more than one truth, for example {some(tasks)}; keep one for each")
    return frame.set_index("task")


def votes_table(crowd: Crowd, *, also: Collection[str] = ()) -> pa.Table:
    """The votes of a crowd as an Arrow table whose ids are dictionaries, so that no text is repeated.

    Some columns are ``also`` there where they say nothing: chunks of one file must be alike.

    >>> votes_table(Crowd.from_triples([("t1", "ann", "cat")])).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    columns = {"task": pa.DictionaryArray.from_arrays(pa.array(crowd.task), _ids(crowd.tasks, "task"))}
    if crowd.workers is not None:
        columns["worker"] = pa.DictionaryArray.from_arrays(pa.array(crowd.worker), _ids(crowd.workers, "worker"))
    if crowd.classes is None:
        columns["label"] = pa.array(crowd.label)
    else:
        columns["label"] = pa.DictionaryArray.from_arrays(pa.array(crowd.label), _ids(crowd.classes, "class"))
    if "weight" in also or crowd.is_weighted:
        columns["weight"] = pa.array(crowd.weight)
    if "observed" in also or not crowd.observed.all():
        columns["observed"] = pa.array(crowd.observed)
    if "time" in also or crowd.has_times:
        columns["time"] = as_stamps(crowd.time)
    return pa.table(columns)


def text_portions(
    crowd: Crowd, write: Callable[[pa.Array], pa.Array], *, also: Collection[str] = ()
) -> Iterator[pa.Table]:
    """The votes in portions whose ids are text; ``write`` says how each id of a vocabulary is written.

    >>> crowd = Crowd.from_triples([(1, "ann", True)])
    >>> [portion.to_pylist() for portion in text_portions(crowd, lambda ids: ids.cast(pa.string()))]
    [[{'task': '1', 'worker': 'ann', 'label': 'true'}]]
    """
    table = votes_table(crowd, also=also)
    columns = [
        pa.DictionaryArray.from_arrays(column.chunk(0).indices, write(column.chunk(0).dictionary))
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    table = pa.table(columns, names=table.column_names)
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    plain = pa.schema(list(zip(table.column_names, kinds, strict=True)))
    for start in range(0, max(table.num_rows, 1), _PORTION):
        yield table.slice(start, _PORTION).cast(plain)


def _ids(index: pd.Index, what: str) -> pa.Array:
    try:
        return pa.array(index)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the {what} ids mix types and cannot be written ({error}); make them text first") from None


def _truths(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if pa.types.is_boolean(column.type):
        return column
    try:
        return pc.utf8_lower(column).cast(pa.bool_())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
