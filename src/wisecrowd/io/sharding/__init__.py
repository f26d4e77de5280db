"""From files of votes, of any number and size, to a folder of shards (see `wisecrowd.data.sharded`).

Three stages, each of which goes on where it was interrupted. The rows of the files, a portion of them at a time, are
divided into *buckets* by a hash of their task, so that a task is in one bucket with all its votes. Then it is known who
there is and what was said: the *vocabularies*. Last, each bucket is sorted and becomes a *shard*. What does not fit in
memory, DuckDB keeps on disk, in the folder itself; there it stands under ``.sharding`` until all is done.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wisecrowd.data._building import Missing
from wisecrowd.data.rows import Duplicates
from wisecrowd.data.sharded import VOTES_PER_SHARD, ShardedCrowd, open_shards
from wisecrowd.errors import DataWarning, MissingExtra, UsageError, some
from wisecrowd.io.formats import Options, log
from wisecrowd.io.sharding import _state as state
from wisecrowd.io.sharding._inputs import Paths, Source, common_kinds, find_files, look
from wisecrowd.io.sharding._stages import Sharding
from wisecrowd.io.tables.numerals import suspect_numbers
from wisecrowd.utils.parallel import threads

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def shard_files(
    paths: Paths,
    folder: str | os.PathLike[str],
    *,
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
) -> ShardedCrowd:
    """Turn files of votes, larger than memory together, into a folder of shards.

    ``paths`` are CSV, TSV and Parquet files, also compressed, folders of such files, or patterns (``votes/*.parquet``).
    ``task``, ``worker``, ``label`` and ``weight`` name columns, ``worker=False`` reads votes of which nobody knows who cast
    them, and ``duplicates`` and ``missing`` say what to do with repeats and holes, all as for :func:`wisecrowd.read`; the
    first of two votes is that of the earlier file. Ids are those that `wisecrowd.read` gives; where they are whole numbers in
    one file and text in another, they become text.

    ``memory`` ("4GB") bounds what the engine uses, by default half of what is free, and ``n_jobs`` its threads, by default all
    cores. What was interrupted goes on when the same call is made again; ``fresh=True`` begins anew.

    >>> _ = Path("monday.csv").write_text("task,worker,label\\nt1,ann,cat\\nt2,ann,dog\\n")
    >>> _ = Path("tuesday.csv").write_text("task,worker,label\\nt1,bob,dog\\n")
    >>> shard_files(["monday.csv", "tuesday.csv"], "crowd")
    ShardedCrowd(3 labels: 2 tasks x 2 workers, 2 classes, in 1 shard)
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("cluster", "sharding files") from None

    if votes_per_shard < 1:
        raise UsageError(f"votes_per_shard must be 1 or more; got {votes_per_shard}")
    options = Options(
        task=task, worker=worker, label=label, weight=weight, time=False, duplicates=duplicates, missing=missing
    )
    if options.worker is False:  # nobody can be seen to vote twice
        options = replace(options, duplicates="keep")
    place = Path(folder)
    sources = [look(path, options) for path in find_files(paths, place)]
    columns = {"task": task, "worker": worker, "label": label, "weight": weight}
    rules = {"duplicates": options.duplicates, "missing": missing, "votes_per_shard": votes_per_shard}
    plan = state.plan_of(sources, columns | rules, f"DuckDB {duckdb.__version__}")
    kinds = common_kinds(sources)
    _note_columns(sources)
    state.prepare(place)
    with state.locked(place), _tidied(place):
        if fresh:
            state.clear(place)
        done = state.resume(place, plan)
        if done is None:
            return open_shards(place)
        state.sweep(place)
        size = sum(source.size for source in sources) + 16 * sum(source.rows for source in sources)
        with state.told_plainly(place, size), _engine(place / state.SCRATCH, memory, threads(n_jobs)) as engine:
            crowd = Sharding(place, sources, kinds, options, votes_per_shard, engine, threads(n_jobs)).run(done)
    _warn_of_numbers(crowd)
    return crowd


def _note_columns(sources: Sequence[Source]) -> None:
    told = set()
    for source in sources:
        for role, name in source.columns.items():
            if name != role and (role, name) not in told:
                told.add((role, name))
                log.info("%s: read %r as the %s column", source.path, name, role)


def _warn_of_numbers(crowd: ShardedCrowd) -> None:
    suspect = suspect_numbers(crowd.classes)
    if len(suspect):
        warnings.warn(
            f"{crowd.folder}: the labels are numbers, and each of the {len(suspect):,} is a class of its own "
            f"({some(suspect)}); if they measure something, shards are not for them",
            DataWarning,
            stacklevel=3,
        )


@contextlib.contextmanager
def _tidied(folder: Path) -> Iterator[None]:
    """Leave a scratch folder only while there is something in it to go on from."""
    try:
        yield
    finally:
        if (folder / "crowd.json").exists() or not (folder / state.SCRATCH / state.PROGRESS).exists():
            state.remove(folder / state.SCRATCH)
            with contextlib.suppress(OSError):  # unless there is something in it
                folder.rmdir()


@contextlib.contextmanager
def _engine(scratch: Path, memory: str | None, n_threads: int) -> Iterator[DuckDBPyConnection]:
    import duckdb

    spill = scratch / "spill"
    state.remove(spill)
    limit = f"{state.free_memory() // 2**21}MiB" if memory is None else memory
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": limit,
        "temp_directory": str(spill),
        "threads": n_threads,
        "autoinstall_known_extensions": False,  # nothing here needs one, and nothing is to be downloaded
    }
    try:
        engine = duckdb.connect(config=settings)
    except duckdb.Error as error:
        raise UsageError(f"memory is given like 4GB or 500MB; got {memory!r} ({error})") from None
    try:
        yield engine
    except (duckdb.InterruptException, RuntimeError) as error:  # how the engine tells of Ctrl-C depends on the moment
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None
    finally:
        engine.close()
