"""Stages of sharding: buckets, vocabularies and shards (see `wisecrowd.io.sharding`)."""

from __future__ import annotations

import contextvars
import glob
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.distinct_ids import factorize_ids
from wisecrowd.data.rows import VoteRows
from wisecrowd.data.sharded import ShardedCrowd, ShardInfo, finish_shards, load_shard_info, write_shard
from wisecrowd.data.vocabulary import encode_ids
from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.sharding import _state as state
from wisecrowd.io.sharding._input_files import InputFile
from wisecrowd.io.sharding._row_stream import RowStream
from wisecrowd.io.sharding._used_pairs import find_used_pairs, renumber_pairs
from wisecrowd.io.vote_table import ReadOptions
from wisecrowd.utils import progress as progress_bar
from wisecrowd.utils.files import atomic_path, write_json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: (Worker, label) pairs are numbered by 32-bit integers.
MAX_PAIRS = 2**31 - 1
#: File in the scratch folder with the pairs that votes use.
USED_PAIRS = "used.parquet"


@dataclass(frozen=True)
class _Vocabularies:
    """Workers, classes, and the codes of the (worker, label) pairs that occur."""

    workers: pd.Index | None
    classes: pd.Index
    pair_worker: NDArray[np.int32]
    pair_label: NDArray[np.int32]


class ShardBuilder:
    """Run of the three stages.

    Parameters
    ----------
    folder : Path
        Folder to write.
    files : list of InputFile
        Files of votes.
    types : dict of str to pyarrow.DataType
        Type of each role.
    options : ReadOptions
        Rules for repeated votes and missing cells.
    votes_per_shard : int
        Approximate number of votes per shard.
    engine : duckdb.DuckDBPyConnection
        DuckDB.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        folder: Path,
        files: list[InputFile],
        types: dict[str, pa.DataType],
        options: ReadOptions,
        votes_per_shard: int,
        engine: DuckDBPyConnection,
        n_threads: int,
    ) -> None:
        self.folder, self.files, self.types, self.options = folder, files, types, options
        self.engine, self.n_threads = engine, n_threads
        self.has_workers = "worker" in types
        self.roles = ["worker", "label"] if self.has_workers else ["label"]
        self.scratch = folder / state.SCRATCH
        self.drops_votes = options.duplicates in state.DROPPING_RULES
        # Once the used pairs are recorded, and if these are all pairs, the shards are in their final folder already.
        is_final = (self.scratch / USED_PAIRS).exists() and not (self.scratch / state.RAW / "shards").exists()
        self.target = self.scratch / state.RAW if self.drops_votes and not is_final else folder
        self.n_buckets = max(1, math.ceil(sum(file.n_rows for file in files) / votes_per_shard))
        self.portions = list(_group_files(files, votes_per_shard))

    def run(self, progress: state.Progress) -> ShardedCrowd:
        """Run the stages that are not finished.

        Parameters
        ----------
        progress : Progress
            Progress of earlier runs.

        Returns
        -------
        ShardedCrowd
            The votes.
        """
        progress = self._fill_buckets(progress)
        progress = self._build_vocabularies(progress)
        vocabularies = self._load_vocabularies()
        infos, n_pairs = list(self._iter_shards(progress, vocabularies)), len(vocabularies.pair_label)
        used_pairs = np.arange(n_pairs)
        if self.drops_votes:
            used_pairs = find_used_pairs(self.target, infos, n_pairs, self.scratch / USED_PAIRS)
            infos = renumber_pairs(self.target, self.folder, infos, used_pairs, n_pairs)
        write_json(self.folder / state.INPUTS, progress.plan)
        return finish_shards(
            self.folder,
            infos,
            classes=vocabularies.classes,
            workers=vocabularies.workers,
            pair_worker=vocabularies.pair_worker[used_pairs],
            pair_label=vocabularies.pair_label[used_pairs],
            weighted=progress.is_weighted,
        )

    # ------------------------------------------------------------------ stage 1: buckets

    def _fill_buckets(self, progress: state.Progress) -> state.Progress:
        self.engine.execute("SET preserve_insertion_order = false")  # rows are numbered
        if not progress.has_vocabularies:
            for path in (self.scratch / "portions").glob("*"):  # portions that are incomplete or not recorded
                if not path.name.isdecimal() or int(path.name) >= progress.n_portions:
                    state.remove(path)
        start_time, start_row = time.monotonic(), progress.n_rows
        context = contextvars.copy_context()  # DuckDB reads in threads of its own
        for number in range(progress.n_portions, len(self.portions)):
            n_files_before = sum(map(len, self.portions[:number]))

            def report(stream: RowStream, file: int, n_files_before: int = n_files_before) -> None:
                speed = (stream.n_rows - start_row) / max(time.monotonic() - start_time, 1e-3)
                detail = f"{stream.n_rows:,} rows, {speed:,.0f} a second"
                context.run(progress_bar.report, "Reading files", n_files_before + file, len(self.files), detail)

            stream = RowStream(
                self.portions[number],
                self.types,
                self.options.missing,
                threads=self.n_threads > 1,
                first_row=progress.n_rows,
                report=report,
            )
            self._partition(stream, self.scratch / "portions" / f"{number:06d}")
            progress = replace(
                progress,
                n_portions=number + 1,
                n_rows=stream.n_rows,
                n_votes=progress.n_votes + stream.n_votes,
                is_weighted=progress.is_weighted or stream.is_weighted,
                has_integer_tasks=progress.has_integer_tasks and stream.has_integer_tasks,
            )
            progress.save(self.folder)
            progress_bar.report("Reading files", n_files_before + len(self.portions[number]), len(self.files))
        if progress.n_votes == 0:
            raise EmptyInput(
                f"there are no votes in {preview([str(file.path) for file in self.files])}; expected a row per vote with a "
                "task, a worker and a label"
            )
        return progress

    def _partition(self, stream: RowStream, target: Path) -> None:
        """Write the rows of a stream to one folder per bucket."""
        partial = target.with_suffix(".part")
        state.remove(partial)
        partial.mkdir(parents=True)
        self.engine.register("votes", stream.open_reader())
        try:
            self.engine.execute(
                f"COPY (SELECT *, hash(task) % {self.n_buckets} AS bucket FROM votes) TO {_quote(partial)} "
                "(FORMAT parquet, PARTITION_BY (bucket), OVERWRITE_OR_IGNORE)"
            )
        except Exception:
            if stream.failure is not None:
                raise stream.failure from None
            raise
        finally:
            self.engine.unregister("votes")
        partial.rename(target)

    # ------------------------------------------------------------------ stage 2: vocabularies

    def _build_vocabularies(self, progress: state.Progress) -> state.Progress:
        if progress.has_vocabularies:
            return progress
        progress_bar.report("Finding workers and classes", 0, 1)
        votes = self._scratch_files("*")
        self.engine.execute(f"CREATE TEMP TABLE pairs AS SELECT DISTINCT {', '.join(self.roles)} FROM {votes}")
        n_pairs = self.engine.sql("SELECT count(*) FROM pairs").to_arrow_table().column(0)[0].as_py()
        if n_pairs > MAX_PAIRS:
            raise InputError(
                f"the votes have {n_pairs:,} different combinations of worker and label, and at most {MAX_PAIRS:,} are supported. "
                "Check that the column of labels holds classes, and not numbers, texts or ids"
            )
        for role in self.roles:
            ids = self.engine.sql(f"SELECT DISTINCT {role} AS id FROM pairs").to_arrow_table()["id"]
            codes, index = encode_ids(ids.cast(self.types[role]), role)
            if role == "label":
                _check_classes(index)
            self._save_table(f"{role}.parquet", pa.table({"id": ids, "code": pa.array(codes)}))
        self._create_code_tables()
        pair_keys = self.engine.sql(
            f"SELECT DISTINCT {self._pair_key()} AS key FROM pairs {self._joins()} ORDER BY key"
        )
        self._save_table("pairs.parquet", pair_keys.to_arrow_table())
        self.engine.execute("DROP TABLE pairs")
        counts = [self._count_bucket_votes(bucket) for bucket in range(self.n_buckets)]
        progress = replace(progress, has_vocabularies=True, bucket_votes=counts)
        progress.save(self.folder)
        return progress

    def _count_bucket_votes(self, bucket: int) -> int:
        files = (self.scratch / "portions").glob(f"*/bucket={bucket}/*.parquet")
        return sum(pq.read_metadata(file).num_rows for file in files)

    def _load_vocabularies(self) -> _Vocabularies:
        self._create_code_tables()
        index = {role: encode_ids(self._load_codes(role)["id"].cast(self.types[role]), role)[1] for role in self.roles}
        key = pq.read_table(self.scratch / "pairs.parquet")["key"].to_numpy()
        self._create_table("pair_codes", pa.table({"key": key, "pair": np.arange(len(key), dtype=np.int32)}))
        worker, label = np.divmod(key, len(index["label"]))
        return _Vocabularies(index.get("worker"), index["label"], worker.astype(np.int32), label.astype(np.int32))

    def _pair_key(self) -> str:
        """Return the SQL expression of the key that orders (worker, label) pairs."""
        n_classes = pc.max(self._load_codes("label")["code"]).as_py() + 1
        if self.has_workers:
            return f"worker_codes.code::BIGINT * {n_classes} + label_codes.code"
        return "label_codes.code::BIGINT"

    def _joins(self) -> str:
        """Return the SQL joins that add the codes of workers and labels."""
        return " ".join(f"JOIN {role}_codes ON {role} = {role}_codes.id" for role in self.roles)

    def _create_code_tables(self) -> None:
        for role in self.roles:
            self._create_table(f"{role}_codes", self._load_codes(role))

    def _load_codes(self, role: str) -> pa.Table:
        return pq.read_table(self.scratch / f"{role}.parquet")

    def _create_table(self, name: str, table: pa.Table) -> None:
        self.engine.register("arrow_table", table)
        self.engine.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM arrow_table")
        self.engine.unregister("arrow_table")

    def _save_table(self, name: str, table: pa.Table) -> None:
        with atomic_path(self.scratch / name) as partial:
            pq.write_table(table, partial)

    # ------------------------------------------------------------------ stage 3: shards

    def _iter_shards(self, progress: state.Progress, vocabularies: _Vocabularies) -> Iterator[ShardInfo]:
        self.engine.execute("SET preserve_insertion_order = true")
        buckets = [bucket for bucket, n_votes in enumerate(progress.bucket_votes) if n_votes]
        for number, bucket in enumerate(buckets):
            progress_bar.report("Writing shards", number, len(buckets), f"{progress.bucket_votes[bucket]:,} votes")
            finished = self.target / "shards" / f"{number:06d}.json"
            if finished.exists():
                yield load_shard_info(finished)
            else:
                yield self._write_shard(number, bucket, progress, vocabularies)
            for portion in (self.scratch / "portions").glob("*"):
                state.remove(portion / f"bucket={bucket}")
        progress_bar.report("Writing shards", len(buckets), len(buckets))

    def _write_shard(
        self, number: int, bucket: int, progress: state.Progress, vocabularies: _Vocabularies
    ) -> ShardInfo:
        votes = self._scratch_files(f"bucket={bucket}")
        # Sorting integers is many times faster than sorting ids, so tasks are replaced by codes first.
        task_ids = self.engine.sql(f"SELECT DISTINCT task AS id FROM {votes}").to_arrow_table()["id"]
        kind = self.types["task"]
        if pa.types.is_floating(kind) and progress.has_integer_tasks:
            kind = pa.int64()
        codes, tasks = factorize_ids(task_ids.cast(kind), "task")
        self._create_table("task_codes", pa.table({"id": task_ids, "code": pa.array(codes)}))
        columns = ["task_codes.code AS task", "pair_codes.pair", *(["weight"] if progress.is_weighted else [])]
        order = ["task_codes.code", *(["worker_codes.code"] if self.has_workers else []), "row"]
        table = self.engine.sql(
            f"SELECT {', '.join(columns)} FROM {votes} JOIN task_codes ON task = task_codes.id {self._joins()} "
            f"JOIN pair_codes ON pair_codes.key = {self._pair_key()} ORDER BY {', '.join(order)}"
        ).to_arrow_table()
        pair = table["pair"].to_numpy()

        def describe_repeats(rows: VoteRows, repeated: NDArray[np.int64]) -> str:
            worker = vocabularies.pair_worker[rows.label[repeated[0]]]
            task = tasks[int(rows.task[repeated[0]])].as_py()
            assert vocabularies.workers is not None
            return (
                f"{repeated.size:,} rows of the {len(rows.task):,} in shard {number} repeat an earlier (task, worker); for "
                f"example worker {preview([vocabularies.workers[worker]])} labelled task {preview([task])} twice. Choose a "
                "rule, and it goes on: duplicates='first' or 'last' keeps one vote, 'distinct' keeps different labels once "
                "each, 'keep' counts all (--duplicates on the command line)"
            )

        # Within a worker, pairs are in the order of labels, so they can stand in for the labels.
        rows = VoteRows(
            table["task"].to_numpy(),
            vocabularies.pair_worker[pair] if self.has_workers else None,
            pair,
            table["weight"].to_numpy() if progress.is_weighted else None,
            None,
        )
        n_workers = 0 if vocabularies.workers is None else len(vocabularies.workers)
        rows = rows.sort(len(tasks), n_workers, self.options.duplicates, describe_repeats)
        counts = np.bincount(rows.task, minlength=len(tasks))
        return write_shard(self.target, number, tasks, counts, rows.label, rows.weight)

    def _scratch_files(self, bucket: str) -> str:
        """Return the SQL table of the rows in a bucket."""
        pattern = f"{glob.escape(str(self.scratch / 'portions'))}/*/{bucket}/*.parquet"
        return f"read_parquet({_quote(pattern)}, hive_partitioning = false)"


def _group_files(files: Sequence[InputFile], votes_per_portion: int) -> Iterator[list[InputFile]]:
    """Group files into portions that are partitioned together. Many small files would leave too many fragments."""
    portion: list[InputFile] = []
    for file in files:
        portion.append(file)
        if sum(item.n_rows for item in portion) >= votes_per_portion:
            yield portion
            portion = []
    if portion:
        yield portion


def _check_classes(classes: pd.Index) -> None:
    if classes.dtype.kind == "f":
        raise InputError(
            f"the labels are fractional numbers ({preview(classes)}), but shards hold classes only; convert the labels to text "
            "if they are names"
        )


def _quote(path: Any) -> str:
    """Return a path as an SQL string."""
    return "'" + str(path).replace("'", "''") + "'"
