"""Contender that runs one EM iteration per line of its input: ``scale_pass.py ENGINE FOLDER``.

ENGINE is "memory", "memory2", "stream", "stream2" (two threads), "ray" (two actors), "duckdb1" or "duckdb2" (number of
threads). The program prints a line of JSON when it is ready. For every line of input it runs one more iteration and prints its
seconds: the M-step, and the E-step with its sums. At the end of its input it prints its memory and, for DuckDB, the difference
of its tally from that of wisecrowd.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scale_usage import find_descendants, memory, seconds

from wisecrowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.em.priors import estimate_smoothed_probs
from wisecrowd.engines import LocalEngine, StreamEngine
from wisecrowd.engines.base import Engine

#: Pseudo-votes in every cell of a confusion matrix and on its diagonal: the defaults of DawidSkene.
SMOOTHING, DIAGONAL = 0.1, 1.0
#: Expected votes for the true class at the start.
INITIAL_VOTES = 10.0


def make_engine(name: str, crowd: ShardedCrowd) -> Engine:
    if name in ("memory", "memory2"):
        return LocalEngine(crowd.load(), n_jobs=2 if name == "memory2" else 1, compiled=True)
    if name == "ray":
        from wisecrowd.engines.ray import RayEngine

        return RayEngine(crowd, actors=2, compiled=True)
    return StreamEngine(crowd, n_jobs=2 if name == "stream2" else 1, compiled=True)


class Ours:
    """Contender with an engine of wisecrowd."""

    def __init__(self, name: str, crowd: ShardedCrowd) -> None:
        self.engine = make_engine(name, crowd)
        self.pairs = self.engine.crowd.pairs
        self.classes: NDArray[Any] = np.ones(crowd.n_classes)
        self.tally: NDArray[Any] = INITIAL_VOTES * np.eye(crowd.n_classes)[self.pairs.label]
        # Further processes to measure: the actors.
        self.others = find_descendants(os.getpid(), "ray::ChunkActor")

    def run_pass(self) -> dict[str, float]:
        started = time.perf_counter()
        prior = self.classes / self.classes.sum()
        label_probs = estimate_smoothed_probs(self.tally, self.pairs, SMOOTHING, DIAGONAL)
        between = time.perf_counter()
        result = self.engine.expect(prior, label_probs)
        ended = time.perf_counter()
        self.classes, self.tally = result.class_counts, result.tally
        return {"seconds": ended - between, "m_step": between - started, "log_likelihood": result.log_likelihood}

    def end(self) -> dict[str, float]:
        self.engine.close()
        return {}


class Sql:
    """Contender in SQL: a table of votes and a table of log-probabilities of labels with a column per true class."""

    def __init__(self, n_threads: int, crowd: ShardedCrowd) -> None:
        import duckdb
        import pyarrow as pa

        self.crowd, self.n_classes, self.passes = crowd, crowd.n_classes, 0
        self.sql = duckdb.connect(config={"threads": n_threads})
        self.sql.execute("create table votes (task integer, worker integer, label tinyint)")
        first = 0
        for shard in crowd.shards:
            columns = {
                "task": shard.task + np.int32(first),
                "worker": shard.worker,
                "label": shard.label.astype(np.int8),
            }
            first += shard.n_tasks
            self.sql.register("more", pa.table(columns))
            self.sql.execute("insert into votes select * from more")
            self.sql.unregister("more")
        belief = self.join_classes(f"{INITIAL_VOTES}::double * (label = {{k}})::int as n{{k}}")
        self.sql.execute(
            f"create table tally as select worker, label, {belief} from (select distinct worker, label from votes)"
        )
        self.sql.execute(f"create table classes as select {self.join_classes('1::double as n{k}')}")
        self.others: list[int] = []

    def join_classes(self, text: str, between: str = ", ") -> str:
        """Return the text for every class, joined."""
        return between.join(text.format(k=k) for k in range(self.n_classes))

    def run_pass(self) -> dict[str, float]:
        join_classes, row = self.join_classes, self.n_classes * SMOOTHING + DIAGONAL
        label_probs = (
            f"ln((tally.n{{k}} + {SMOOTHING} + {DIAGONAL} * (label = {{k}})::int) / (total.n{{k}} + {row})) as l{{k}}"
        )
        started = time.perf_counter()
        self.sql.execute(f"""create or replace table confusion as
            with total as (select worker, {join_classes("sum(n{k}) as n{k}")} from tally group by worker)
            select worker, label, {join_classes(label_probs)}
            from tally join total using (worker)""")
        self.sql.execute(f"""create or replace table prior as
            select {join_classes(f"ln(n{{k}} / ({join_classes('n{k}', ' + ')})) as l{{k}}")} from classes""")
        between = time.perf_counter()
        self.sql.execute(f"""create or replace table posterior as
            with said as (select * from votes join confusion using (worker, label)),
            evidence as (select task, {join_classes("sum(l{k}) as l{k}")} from said group by task),
            joint as (select task, {join_classes("evidence.l{k} + prior.l{k} as l{k}")} from evidence, prior),
            peak as (select *, greatest({join_classes("l{k}")}) as top from joint),
            share as (select task, top, {join_classes("exp(l{k} - top) as s{k}")} from peak),
            whole as (select *, {join_classes("s{k}", " + ")} as total from share)
            select task, {join_classes("s{k} / total as p{k}")}, top + ln(total) as evidence from whole""")
        self.sql.execute(f"""create or replace table tally as
            select worker, label, {join_classes("sum(p{k}) as n{k}")}
            from votes join posterior using (task) group by worker, label""")
        self.sql.execute(f"""create or replace table classes as
            select {join_classes("sum(p{k}) as n{k}")}, sum(evidence) as evidence from posterior""")
        ended = time.perf_counter()
        self.passes += 1
        result = self.sql.execute("select evidence from classes").fetchone()
        return {"seconds": ended - between, "m_step": between - started, "log_likelihood": result[0]}

    def end(self) -> dict[str, float]:
        """Return the largest difference from the tally of wisecrowd, relative to the cell or to one vote if the cell is smaller."""
        reference = Ours("stream", self.crowd)
        for _ in range(self.passes):
            reference.run_pass()
        columns = self.sql.execute("select * from tally").fetchnumpy()
        tally = np.zeros_like(reference.tally)
        row = columns["worker"] * np.int64(self.n_classes) + columns["label"]
        tally[row] = np.stack([columns[f"n{k}"] for k in range(self.n_classes)], axis=1)
        return {"differs": float((np.abs(tally - reference.tally) / np.maximum(reference.tally, 1)).max())}


def main() -> None:
    name, folder = sys.argv[1:]
    started = time.perf_counter()
    crowd = Crowd.open(folder)
    contender = Sql(int(name[-1]), crowd) if name.startswith("duckdb") else Ours(name, crowd)
    pids = [os.getpid(), *contender.others]
    print_line({"setup": time.perf_counter() - started})
    resting = 0
    for _ in sys.stdin:
        before = sum(map(seconds, pids))
        result = contender.run_pass()
        print_line(result | {"cpu": sum(map(seconds, pids)) - before})
        resting = sum(memory(pid)["own"] for pid in pids)
    peak = sum(memory(pid)["peak"] for pid in pids)
    print_line(contender.end() | {"peak": peak, "resting": resting})


def print_line(result: dict[str, float]) -> None:
    print(json.dumps(result), flush=True)


main()
