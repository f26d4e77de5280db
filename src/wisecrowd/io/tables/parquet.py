"""Tables in Parquet, read column by column to save memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.crowd_tables import crowd_to_table
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth, dictionary_encode
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import atomic_path


def read_votes(path: Path, options: ReadOptions) -> VoteTable:
    """Read votes from a Parquet file.

    Parameters
    ----------
    path : Path
        File.
    options : ReadOptions
        Names of columns.

    Returns
    -------
    VoteTable
        The votes.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"item": ["t1"], "worker": ["ann"], "label": ["cat"]}), path)
    >>> read_votes(path, ReadOptions()).notes
    ("read 'item' as the task column",)
    """
    columns = VoteColumns.choose(read_schema(path).names, options)
    other_names = [name for role, name in columns.by_role.items() if role != "task"]
    # The text of the task ids is by far the largest part, so it is freed before the rest is read.
    task = dictionary_encode(_read_columns(path, [columns.task])[columns.task], "task")
    dictionaries = [name for name in (columns.worker, columns.label) if name is not None]
    others = _read_columns(path, other_names, dictionaries)
    return columns.extract_votes(others.append_column(columns.task, task))


def read_truth(path: Path, task: str | None = None, truth: str | None = None) -> TruthTable:
    """Read the truth from a Parquet file, with the split if there is one.

    Parameters
    ----------
    path : Path
        File.
    task, truth : str, optional
        Names of columns.

    Returns
    -------
    DataFrame
        Truth by task.

    Examples
    --------
    >>> path = Path("truth.parquet")
    >>> pq.write_table(pa.table({"task": ["t1"], "label": ["cat"]}), path)
    >>> read_truth(path).to_dict()
    {'truth': {'t1': 'cat'}}
    """
    names = read_schema(path).names
    columns = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    table = _read_columns(path, [name for name in (*columns.values(), split) if name is not None])
    return build_truth(table, columns["task"], columns["truth"], split)


def write_votes(crowd: Crowd, path: Path) -> None:
    """Write votes to a Parquet file.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    path : Path
        File to write.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> write_votes(Crowd.from_triples([("t1", "ann", "cat")]), path)
    >>> pq.read_table(path).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    with atomic_path(path) as partial_path:
        # Without the Arrow schema, other programs read text and numbers rather than dictionaries.
        pq.write_table(crowd_to_table(crowd), partial_path, store_schema=False, compression="zstd")


def read_schema(path: Path) -> pa.Schema:
    """Read the columns of a Parquet file and their types.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    pyarrow.Schema
        Schema.

    Raises
    ------
    InputError
        If the file is not valid Parquet.

    Examples
    --------
    >>> path = Path("votes.parquet")
    >>> pq.write_table(pa.table({"label": [0.5]}), path)
    >>> read_schema(path).types
    [DataType(double)]
    """
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last one for invalid column names
        raise InputError(f"it cannot be read as Parquet: {error}") from None


def is_parquet(path: Path) -> bool:
    """Return whether a file is in Parquet, whatever its name is.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    bool
        Whether the file starts as Parquet files do.

    Examples
    --------
    >>> _ = Path("votes.parquet").write_text("task,worker,label")
    >>> is_parquet(Path("votes.parquet"))
    False
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:  # the reader reports why
        return False


def _read_columns(path: Path, columns: list[str], dictionaries: list[str] | None = None) -> pa.Table:
    try:
        # Unlike pq.read_table, this does not import the modules for folders and remote file systems.
        with pq.ParquetFile(path, read_dictionary=dictionaries) as file:
            return file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"it cannot be read as Parquet: {error}") from None


PARQUET = FormatReader(read_votes=read_votes, detect=is_parquet, read_truth=read_truth, write_votes=write_votes)
