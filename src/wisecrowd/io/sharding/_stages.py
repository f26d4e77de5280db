"""The stages on the way from files of votes to shards; each goes on where it was interrupted (see `wisecrowd.io.sharding`)."""

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

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.distinct_ids import distinct
from wisecrowd.data.rows import Rows
from wisecrowd.data.sharded import Part, ShardedCrowd, finish_shards, write_shard
from wisecrowd.errors import InputError, some
from wisecrowd.io.formats import Options
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.sharding import _state as state
from wisecrowd.io.sharding._inputs import Source
from wisecrowd.io.sharding._pairs import renumber, used_pairs
from wisecrowd.io.sharding._rows import Stream
from wisecrowd.utils import progress
from wisecrowd.utils.files import atomic_path, read_json, write_json

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Pairs of worker and label are numbered by 32-bit integers.
MOST_PAIRS = 2**31 - 1
USED = "used.parquet"


@dataclass(frozen=True)
class _Vocabularies:
    """Who there is and what was said: the ids, and the pairs of both that occur, as codes."""

    workers: pd.Index | None
    classes: pd.Index
    pair_worker: NDArray[np.int32]
    pair_label: NDArray[np.int32]


class Sharding:
    """The three stages of one run."""

    def __init__(
        self, folder: Path, sources: list[Source], kinds: dict[str, pa.DataType], options: Options, votes_per_shard: int,
        engine: DuckDBPyConnection, n_threads: int,
    ) -> None:  # fmt: skip
        self.folder, self.sources, self.kinds, self.options = folder, sources, kinds, options
        self.engine, self.n_threads = engine, n_threads
        self.has_workers = "worker" in kinds
        self.scratch = folder / state.SCRATCH
        self.drops = options.duplicates in state.DROPPING
        # Once it is noted which pairs are used, and if these are all, the shards have their place already.
        placed = (self.scratch / USED).exists() and not (self.scratch / state.RAW / "shards").exists()
        self.target = self.scratch / state.RAW if self.drops and not placed else folder
        self.n_buckets = max(1, math.ceil(sum(source.rows for source in sources) / votes_per_shard))
        self.portions = list(_portions(sources, votes_per_shard))

    def run(self, done: state.Progress) -> ShardedCrowd:
        """Do what is left to do."""
        done = self._divide(done)
        done = self._know(done)
        known = self._vocabularies()
        parts, n_pairs = list(self._shards(done, known)), len(known.pair_label)
        used = np.arange(n_pairs)
        if self.drops:
            used = used_pairs(self.target, parts, n_pairs, self.scratch / USED)
            parts = renumber(self.target, self.folder, parts, used, n_pairs)
        write_json(self.folder / state.INPUTS, done.plan)
        return finish_shards(
            self.folder, parts, classes=known.classes, workers=known.workers, pair_worker=known.pair_worker[used],
            pair_label=known.pair_label[used], weighted=done.weighted,
        )  # fmt: skip

    # ------------------------------------------------------------------ files into buckets

    def _divide(self, done: state.Progress) -> state.Progress:
        self.engine.execute("SET preserve_insertion_order = false")  # rows are numbered
        if not done.vocabularies:
            for path in (self.scratch / "portions").glob("*"):  # done but not noted, or not done
                if not path.name.isdecimal() or int(path.name) >= done.portions:
                    state.remove(path)
        begun, already = time.monotonic(), done.rows
        context = contextvars.copy_context()  # the engine reads in threads of its own
        for number in range(done.portions, len(self.portions)):
            before = sum(map(len, self.portions[:number]))

            def tell(stream: Stream, file: int, before: int = before) -> None:
                speed = (stream.rows - already) / max(time.monotonic() - begun, 1e-3)
                detail = f"{stream.rows:,} rows, {speed:,.0f} a second"
                context.run(progress.report, "Reading files", before + file, len(self.sources), detail)

            stream = Stream(
                self.portions[number], self.kinds, self.options.missing, threads=self.n_threads > 1, first_row=done.rows,
                tell=tell,
            )  # fmt: skip
            self._partition(stream, self.scratch / "portions" / f"{number:06d}")
            done = replace(
                done, portions=number + 1, rows=stream.rows, votes=done.votes + stream.votes,
                weighted=done.weighted or stream.weighted, whole=done.whole and stream.whole,
            ).write(self.folder)  # fmt: skip
            progress.report("Reading files", before + len(self.portions[number]), len(self.sources))
        if done.votes == 0:
            raise EmptyInput(
                f"there are no votes in {some([str(source.path) for source in self.sources])}: a row per vote was wanted, "
                "with a task, a worker and a label"
            )
        return done

    def _partition(self, stream: Stream, target: Path) -> None:
        partial = target.with_suffix(".part")
        state.remove(partial)
        partial.mkdir(parents=True)
        self.engine.register("votes", stream.reader())
        try:
            self.engine.execute(
                f"COPY (SELECT *, hash(task) % {self.n_buckets} AS bucket FROM votes) TO {_quoted(partial)} "
                "(FORMAT parquet, PARTITION_BY (bucket), OVERWRITE_OR_IGNORE)"
            )
        except Exception:
            if stream.failure is not None:
                raise stream.failure from None
            raise
        finally:
            self.engine.unregister("votes")
        partial.rename(target)

    # ------------------------------------------------------------------ vocabularies

    def _know(self, done: state.Progress) -> state.Progress:
        if done.vocabularies:
            return done
        progress.report("Finding workers and classes", 0, 1)
        votes = self._scratch_files("*")
        self.engine.execute(f"CREATE TEMP TABLE said AS SELECT DISTINCT {', '.join(self._roles)} FROM {votes}")
        n_pairs = self._one("SELECT count(*) FROM said")
        if n_pairs > MOST_PAIRS:
            raise InputError(
                f"there are {n_pairs:,} combinations of a worker and a label, and a crowd has room for {MOST_PAIRS:,}; are "
                "the labels classes at all?"
            )
        for role in self._roles:
            ids = self.engine.sql(f"SELECT DISTINCT {role} AS id FROM said").to_arrow_table()["id"]
            codes, index = vocab.encode(ids.cast(self.kinds[role]), role)
            if role == "label":
                _refuse_fractions(index)
            self._keep(f"{role}.parquet", pa.table({"id": ids, "code": pa.array(codes)}))
        self._load_codes()
        pairs = self.engine.sql(f"SELECT DISTINCT {self._pair} AS key FROM said {self._joined} ORDER BY key")
        self._keep("pairs.parquet", pairs.to_arrow_table())
        self.engine.execute("DROP TABLE said")
        counts = [0] * self.n_buckets
        for bucket, files in self._buckets():
            counts[bucket] = sum(pq.read_metadata(file).num_rows for file in files)
        return replace(done, vocabularies=True, buckets=counts).write(self.folder)

    def _vocabularies(self) -> _Vocabularies:
        self._load_codes()
        index = {role: vocab.encode(self._ids(role)["id"].cast(self.kinds[role]), role)[1] for role in self._roles}
        key = pq.read_table(self.scratch / "pairs.parquet")["key"].to_numpy()
        codes = pa.table({"key": key, "pair": np.arange(len(key), dtype=np.int32)})
        self._table("pair_codes", codes)
        worker, label = np.divmod(key, len(index["label"]))
        return _Vocabularies(index.get("worker"), index["label"], worker.astype(np.int32), label.astype(np.int32))

    @property
    def _roles(self) -> list[str]:
        return ["worker", "label"] if self.has_workers else ["label"]

    @property
    def _pair(self) -> str:
        """The place of a (worker, label) pair in the order of pairs, as an expression."""
        n_classes = pc.max(self._ids("label")["code"]).as_py() + 1
        return (
            f"worker_codes.code::BIGINT * {n_classes} + label_codes.code"
            if self.has_workers
            else "label_codes.code::BIGINT"
        )

    @property
    def _joined(self) -> str:
        return " ".join(f"JOIN {role}_codes ON {role} = {role}_codes.id" for role in self._roles)

    def _load_codes(self) -> None:
        for role in self._roles:
            self._table(f"{role}_codes", self._ids(role))

    def _ids(self, role: str) -> pa.Table:
        return pq.read_table(self.scratch / f"{role}.parquet")

    def _table(self, name: str, table: pa.Table) -> None:
        self.engine.register("given", table)
        self.engine.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM given")
        self.engine.unregister("given")

    def _keep(self, name: str, table: pa.Table) -> None:
        with atomic_path(self.scratch / name) as partial:
            pq.write_table(table, partial)

    # ------------------------------------------------------------------ buckets into shards

    def _shards(self, done: state.Progress, known: _Vocabularies) -> Iterator[Part]:
        self.engine.execute("SET preserve_insertion_order = true")
        filled = [bucket for bucket, votes in enumerate(done.buckets) if votes]
        for number, bucket in enumerate(filled):
            progress.report("Writing shards", number, len(filled), f"{done.buckets[bucket]:,} votes")
            finished = self.target / "shards" / f"{number:06d}.json"
            yield Part(**read_json(finished)) if finished.exists() else self._shard(number, bucket, done, known)
            for portion in (self.scratch / "portions").glob("*"):
                state.remove(portion / f"bucket={bucket}")
        progress.report("Writing shards", len(filled), len(filled))

    def _shard(self, number: int, bucket: int, done: state.Progress, known: _Vocabularies) -> Part:
        votes = self._scratch_files(f"bucket={bucket}")
        # Integers are sorted many times faster than the ids that they stand for.
        found = self.engine.sql(f"SELECT DISTINCT task AS id FROM {votes}").to_arrow_table()["id"]
        kind = self.kinds["task"]
        codes, ids = distinct(found.cast(pa.int64() if pa.types.is_floating(kind) and done.whole else kind), "task")
        self._table("task_codes", pa.table({"id": found, "code": pa.array(codes)}))
        wanted = ["task_codes.code AS task", "pair_codes.pair", *(["weight"] if done.weighted else [])]
        order = ["task_codes.code", *(["worker_codes.code"] if self.has_workers else []), "row"]
        table = self.engine.sql(
            f"SELECT {', '.join(wanted)} FROM {votes} JOIN task_codes ON task = task_codes.id {self._joined} "
            f"JOIN pair_codes ON pair_codes.key = {self._pair} ORDER BY {', '.join(order)}"
        ).to_arrow_table()
        pair = table["pair"].to_numpy()

        def describe(rows: Rows, again: NDArray[np.int64]) -> str:
            who, what = known.pair_worker[rows.label[again[0]]], ids[int(rows.task[again[0]])].as_py()
            assert known.workers is not None
            return (
                f"{again.size:,} rows of the {len(rows.task):,} in shard {number} repeat a (task, worker) that came before; "
                f"for example worker {some([known.workers[who]])} labelled task {some([what])} twice. Say what to do, and it "
                "goes on: duplicates='first' or 'last' keeps one, 'distinct' keeps different answers once each, 'keep' counts "
                "all (--duplicates on the command line)"
            )

        # Pairs stand in the order of labels, within a worker, so that they can stand for the labels here.
        rows = Rows(
            table["task"].to_numpy(),
            known.pair_worker[pair] if self.has_workers else None,
            pair,
            table["weight"].to_numpy() if done.weighted else None,
            None,
        ).sorted(len(ids), 0 if known.workers is None else len(known.workers), self.options.duplicates, describe)
        counts = np.bincount(rows.task, minlength=len(ids))
        return write_shard(self.target, number, _alone(ids), counts, rows.label, rows.weight)

    # ------------------------------------------------------------------ inside

    def _buckets(self) -> Iterator[tuple[int, list[Path]]]:
        for bucket in range(self.n_buckets):
            yield bucket, sorted((self.scratch / "portions").glob(f"*/bucket={bucket}/*.parquet"))

    def _scratch_files(self, bucket: str) -> str:
        pattern = f"{glob.escape(str(self.scratch / 'portions'))}/*/{bucket}/*.parquet"
        return f"read_parquet({_quoted(pattern)}, hive_partitioning = false)"

    def _one(self, query: str) -> Any:
        return self.engine.sql(query).to_arrow_table().column(0)[0].as_py()


def _alone(ids: pa.Array) -> pa.Array:
    """Ids in buffers that hold nothing else, so that the same ids have the same digest, however they were found."""
    if pa.types.is_large_string(ids.type):
        offsets = np.frombuffer(ids.buffers()[1], dtype=np.int64)[ids.offset :][: len(ids) + 1]
        text = ids.buffers()[2][int(offsets[0]) : int(offsets[-1])]
        return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets - offsets[0]), text)
    if pa.types.is_integer(ids.type) or pa.types.is_floating(ids.type):
        return pa.array(ids.to_numpy())
    return pa.array(ids.to_pylist(), ids.type)


def _portions(sources: Sequence[Source], votes: int) -> Iterator[list[Source]]:
    """Files that are divided together: many small ones would leave far too many pieces."""
    portion: list[Source] = []
    for source in sources:
        portion.append(source)
        if sum(one.rows for one in portion) >= votes:
            yield portion
            portion = []
    if portion:
        yield portion


def _refuse_fractions(classes: pd.Index) -> None:
    if classes.dtype.kind == "f":
        raise InputError(
            f"the labels are fractional numbers ({some(classes)}), which cannot be classes, and shards hold classes only; turn "
            "them into text if they really are names"
        )


def _quoted(path: str | Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
