"""Conversion of files of votes, of any number and size, to a folder of shards (see `wisecrowd.data.sharded`).

There are three stages, and each one resumes where it was interrupted. First, the rows of the files are partitioned into
*buckets* by a hash of their task, so that all votes of a task are in one bucket. Second, the *vocabularies* of workers and
classes are built. Third, each bucket is sorted and becomes a *shard*. DuckDB keeps data that does not fit into memory on disk,
in the folder ``.sharding`` within the target folder, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wisecrowd.data.crowd import Missing
from wisecrowd.data.rows import Duplicates
from wisecrowd.data.sharded import VOTES_PER_SHARD, ShardedCrowd, open_shards
from wisecrowd.errors import DataWarning, MissingExtra, UsageError, preview
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.sharding import _state as state
from wisecrowd.io.sharding._input_files import InputFile, Paths, find_files, inspect_file, unify_types
from wisecrowd.io.sharding._stages import ShardBuilder
from wisecrowd.io.tables.numeric_labels import find_suspect_numbers
from wisecrowd.io.vote_source import log
from wisecrowd.io.vote_table import ReadOptions
from wisecrowd.utils.interruption import restore_interruption
from wisecrowd.utils.memory import get_free_memory
from wisecrowd.utils.parallel import thread_count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Bytes on disk per row that the scratch folder needs in addition to the size of the files.
_SCRATCH_BYTES_PER_ROW = 16


def shard_files(
    paths: Paths,
    folder: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | Literal[False] | None = None,
    label: str | None = None,
    weight: str | None = None,
    duplicates: Duplicates = "error",
    missing: Missing = "error",
    votes_per_shard: int = VOTES_PER_SHARD,
    memory: str | None = None,
    n_jobs: int = -1,
    fresh: bool = False,
    max_unpacked: int | str | None = None,
) -> ShardedCrowd:
    """Convert files of votes that together may exceed memory to a folder of shards.

    An interrupted call resumes when it is repeated with the same arguments.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        CSV, TSV and Parquet files, also compressed, folders of such files, or patterns (``votes/*.parquet``).
    folder : path-like
        Folder to write.
    format : {"csv", "tsv", "parquet"}, optional
        Format of all files. Without it, content and file name decide.
    task, label, weight : str, optional
        Columns, as for :func:`wisecrowd.read`.
    worker : str or False, optional
        Column of worker ids. False reads votes without worker ids.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for repeated votes of a worker on a task. Votes of earlier files come first.
    missing : {"error", "drop"}, default="error"
        Rule for rows with an empty cell.
    votes_per_shard : int, default=2**24
        Approximate number of votes per shard.
    memory : str, optional
        Limit of DuckDB's memory, such as ``"4GB"``. By default half of the free memory.
    n_jobs : int, default=-1
        Number of threads. -1 uses all cores.
    fresh : bool, default=False
        Discard what an earlier call wrote.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"500GB"``. By default 50 times its size.

    Returns
    -------
    ShardedCrowd
        The votes. Ids are those that :func:`wisecrowd.read` gives. Ids that are whole numbers in one file and text in
        another become text.

    Raises
    ------
    InputError
        If a file cannot be read or its votes are not valid.
    UsageError
        If the folder holds something else.

    Examples
    --------
    >>> _ = Path("monday.csv").write_text("task,worker,label\\nt1,ann,cat\\nt2,ann,dog\\n")
    >>> _ = Path("tuesday.csv").write_text("task,worker,label\\nt1,bob,dog\\n")
    >>> shard_files(["monday.csv", "tuesday.csv"], "crowd")
    ShardedCrowd(3 votes: 2 tasks x 2 workers, 2 classes, in 1 shard)
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("cluster", "sharding files") from None

    if votes_per_shard < 1:
        raise UsageError(f"votes_per_shard must be 1 or more; got {votes_per_shard}")
    options = ReadOptions(
        task=task, worker=worker, label=label, weight=weight, time=False, duplicates=duplicates, missing=missing
    )
    if options.worker is False:  # without worker ids there are no repeated votes
        options = replace(options, duplicates="keep")
    target = Path(folder)
    with limit_unpacked(max_unpacked):
        files = [inspect_file(path, options, format) for path in find_files(paths, target)]
    columns = {"task": task, "worker": worker, "label": label, "weight": weight}
    rules = {"duplicates": options.duplicates, "missing": missing, "votes_per_shard": votes_per_shard}
    plan = state.build_plan(files, columns | rules, f"DuckDB {duckdb.__version__}")
    types = unify_types(files)
    _log_columns(files)
    state.prepare_folder(target)
    with state.lock_folder(target), _remove_empty_scratch(target):
        if fresh:
            state.clear_folder(target)
        progress = state.load_progress(target, plan)
        if progress is None:
            return open_shards(target)
        state.remove_partial_files(target)
        needed_bytes = sum(file.n_bytes + _SCRATCH_BYTES_PER_ROW * file.n_rows for file in files)
        n_threads = thread_count(n_jobs)
        with (
            limit_unpacked(max_unpacked),
            state.explain_resource_errors(target, needed_bytes),
            _connect_engine(target / state.SCRATCH, memory, n_threads) as engine,
        ):
            crowd = ShardBuilder(target, files, types, options, votes_per_shard, engine, n_threads).run(progress)
    _warn_of_numbers(crowd)
    return crowd


def _log_columns(files: Sequence[InputFile]) -> None:
    logged = set()
    for file in files:
        for role, name in file.columns.items():
            if name != role and (role, name) not in logged:
                logged.add((role, name))
                log.info("%s: read %r as the %s column", file.path, name, role)


def _warn_of_numbers(crowd: ShardedCrowd) -> None:
    suspects = find_suspect_numbers(crowd.classes)
    if len(suspects):
        warnings.warn(
            f"{crowd.folder}: the labels are numbers, and each of the {len(suspects):,} is a class of its own "
            f"({preview(suspects)}); if they measure something, do not use shards, which hold classes only",
            DataWarning,
            stacklevel=3,
        )


@contextlib.contextmanager
def _remove_empty_scratch(folder: Path) -> Iterator[None]:
    """Remove the scratch folder after the block, unless it holds progress to resume from."""
    try:
        yield
    finally:
        if (folder / "crowd.json").exists() or not (folder / state.SCRATCH / state.PROGRESS).exists():
            state.remove(folder / state.SCRATCH)
            with contextlib.suppress(OSError):  # the folder is not empty
                folder.rmdir()


@contextlib.contextmanager
def _connect_engine(scratch: Path, memory: str | None, n_threads: int) -> Iterator[DuckDBPyConnection]:
    import duckdb

    spill = scratch / "spill"
    state.remove(spill)
    limit = f"{get_free_memory() // 2**21}MiB" if memory is None else memory
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": limit,
        "temp_directory": str(spill),
        "threads": n_threads,
        "autoinstall_known_extensions": False,  # no extension is needed, and nothing must be downloaded
    }
    try:
        engine = duckdb.connect(config=settings)
    except duckdb.Error as error:
        raise UsageError(f"memory must be given as 4GB or 500MB; got {memory!r} ({error})") from None
    try:
        with restore_interruption():  # DuckDB raises several errors after Ctrl-C, depending on the moment
            yield engine
    finally:
        engine.close()
