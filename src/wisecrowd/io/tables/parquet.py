"""Tables in Parquet, read column by column so that ten million votes need seconds and little memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.votes_table import Columns, coded, truth_frame, votes_table
from wisecrowd.utils.files import atomic_path


def read_votes(path: Path, options: Options) -> Votes:
    """The votes in a Parquet file.

    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"item": ["t1"], "worker": ["ann"], "label": ["cat"]}), path)
    >>> read_votes(path, Options()).notes
    ("read 'item' as the task column",)
    """
    columns = Columns.choose(read_schema(path).names, options)
    rest = [name for role, name in columns.roles.items() if role != "task"]
    # The text of the task ids is by far the largest part, so it goes before the rest comes.
    task = coded(_table(path, [columns.task])[columns.task], "task")
    others = _table(path, rest, as_codes=[name for name in (columns.worker, columns.label) if name is not None])
    return columns.votes(others.append_column(columns.task, task))


def read_truth(path: Path, task: str | None = None, truth: str | None = None) -> Truth:
    """The truth in a Parquet file, and the split where there is one.

    >>> path = Path("truth.parquet")
    >>> pq.write_table(pa.table({"task": ["t1"], "label": ["cat"]}), path)
    >>> read_truth(path).to_dict()
    {'truth': {'t1': 'cat'}}
    """
    names = read_schema(path).names
    found = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    table = _table(path, [name for name in (*found.values(), split) if name is not None])
    return truth_frame(table, found["task"], found["truth"], split)


def write_votes(crowd: Crowd, path: Path) -> None:
    """Write the votes to a Parquet file.

    >>> path = Path("votes.parquet")
    >>> write_votes(Crowd.from_triples([("t1", "ann", "cat")]), path)
    >>> pq.read_table(path).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    with atomic_path(path) as unfinished:
        # Without our own schema in it, others read plain text and numbers rather than dictionaries.
        pq.write_table(votes_table(crowd), unfinished, store_schema=False, compression="zstd")


def read_schema(path: Path) -> pa.Schema:
    """The columns of a Parquet file and their types, without reading it.

    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"label": [0.5]}), path)
    >>> read_schema(path).types
    [DataType(double)]
    """
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last of names that are no text
        raise InputError(f"it cannot be read as Parquet: {error}") from None


def _table(path: Path, columns: list[str], as_codes: list[str] | None = None) -> pa.Table:
    try:
        # Unlike pq.read_table, this does not load the machinery for folders and remote stores.
        with pq.ParquetFile(path, read_dictionary=as_codes) as file:
            return file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"it cannot be read as Parquet: {error}") from None


def _sniff(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:  # reading it will say why
        return False


PARQUET = Format(
    name="parquet",
    about="a table in Parquet",
    patterns=("*.parquet", "*.pq"),
    votes=read_votes,
    sniff=_sniff,
    truth=read_truth,
    write=write_votes,
    is_table=True,
)
