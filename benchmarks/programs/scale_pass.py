"""Contender that runs one EM iteration per line of its input: ``scale_pass.py ENGINE FOLDER``.

ENGINE is "memory", "memory2", "stream", "stream2" (two threads), "ray" (two actors), or "duckdb1" and "duckdb2" (by
threads). It says in a line of JSON that it is ready; every line that it is sent is one more pass, which goes on from
the last and is answered by its seconds (the E-step with its sums, and the M-step before it); and at the end of its
input it tells of memory and, for DuckDB, how far its tally is from that of the same passes by wisecrowd.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scale_usage import below, memory, seconds

from wisecrowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.em.priors import estimate_smoothed_probs
from wisecrowd.engines import LocalEngine, StreamEngine
from wisecrowd.engines.base import Engine

#: Pseudo-votes in every cell of a confusion matrix, and further ones for being right: the defaults of DawidSkene.
OFF, ON = 0.1, 1.0
#: Votes that a worker's being right is worth at the start.
BELIEF = 10.0


def engine_of(name: str, crowd: ShardedCrowd) -> Engine:
    if name in ("memory", "memory2"):
        return LocalEngine(crowd.load(), n_jobs=2 if name == "memory2" else 1, compiled=True)
    if name == "ray":
        from wisecrowd.engines.ray import RayEngine

        return RayEngine(crowd, actors=2, compiled=True)
    return StreamEngine(crowd, n_jobs=2 if name == "stream2" else 1, compiled=True)


class Ours:
    """One of wisecrowd's engines."""

    def __init__(self, name: str, crowd: ShardedCrowd) -> None:
        self.engine = engine_of(name, crowd)
        self.pairs = self.engine.crowd.pairs
        self.classes: NDArray[Any] = np.ones(crowd.n_classes)
        self.tally: NDArray[Any] = BELIEF * np.eye(crowd.n_classes)[self.pairs.label]
        # The actors, and what they have used; this process is counted besides.
        self.others = below(os.getpid(), "ray::ChunkActor")

    def one(self) -> dict[str, float]:
        begun = time.perf_counter()
        prior, said = self.classes / self.classes.sum(), estimate_smoothed_probs(self.tally, self.pairs, OFF, ON)
        between = time.perf_counter()
        found = self.engine.expect(prior, said)
        ended = time.perf_counter()
        self.classes, self.tally = found.class_counts, found.tally
        return {"seconds": ended - between, "m_step": between - begun, "log_likelihood": found.log_likelihood}

    def end(self) -> dict[str, float]:
        self.engine.close()
        return {}


class Sql:
    """The same in SQL: a table of votes and one of the logarithms of what workers say, with a column for each true class."""

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
        belief = self.each(f"{BELIEF}::double * (label = {{k}})::int as n{{k}}")
        self.sql.execute(
            f"create table tally as select worker, label, {belief} from (select distinct worker, label from votes)"
        )
        self.sql.execute(f"create table classes as select {self.each('1::double as n{k}')}")
        self.others: list[int] = []

    def each(self, text: str, between: str = ", ") -> str:
        """A text for every class."""
        return between.join(text.format(k=k) for k in range(self.n_classes))

    def one(self) -> dict[str, float]:
        each, row = self.each, self.n_classes * OFF + ON
        said = f"ln((tally.n{{k}} + {OFF} + {ON} * (label = {{k}})::int) / (total.n{{k}} + {row})) as l{{k}}"
        begun = time.perf_counter()
        self.sql.execute(f"""create or replace table confusion as
            with total as (select worker, {each("sum(n{k}) as n{k}")} from tally group by worker)
            select worker, label, {each(said)}
            from tally join total using (worker)""")
        self.sql.execute(f"""create or replace table prior as
            select {each(f"ln(n{{k}} / ({each('n{k}', ' + ')})) as l{{k}}")} from classes""")
        between = time.perf_counter()
        self.sql.execute(f"""create or replace table posterior as
            with said as (select * from votes join confusion using (worker, label)),
            evidence as (select task, {each("sum(l{k}) as l{k}")} from said group by task),
            joint as (select task, {each("evidence.l{k} + prior.l{k} as l{k}")} from evidence, prior),
            peak as (select *, greatest({each("l{k}")}) as top from joint),
            share as (select task, top, {each("exp(l{k} - top) as s{k}")} from peak),
            whole as (select *, {each("s{k}", " + ")} as total from share)
            select task, {each("s{k} / total as p{k}")}, top + ln(total) as evidence from whole""")
        self.sql.execute(f"""create or replace table tally as
            select worker, label, {each("sum(p{k}) as n{k}")} from votes join posterior using (task) group by worker, label""")
        self.sql.execute(f"""create or replace table classes as
            select {each("sum(p{k}) as n{k}")}, sum(evidence) as evidence from posterior""")
        ended = time.perf_counter()
        self.passes += 1
        found = self.sql.execute("select evidence from classes").fetchone()
        return {"seconds": ended - between, "m_step": between - begun, "log_likelihood": found[0]}

    def end(self) -> dict[str, float]:
        """How far its tally is from ours after as many passes, as a share of the larger of one vote and the cell."""
        ours = Ours("stream", self.crowd)
        for _ in range(self.passes):
            ours.one()
        told = self.sql.execute("select * from tally").fetchnumpy()
        tally = np.zeros_like(ours.tally)
        row = told["worker"] * np.int64(self.n_classes) + told["label"]
        tally[row] = np.stack([told[f"n{k}"] for k in range(self.n_classes)], axis=1)
        return {"differs": float((np.abs(tally - ours.tally) / np.maximum(ours.tally, 1)).max())}


def main() -> None:
    name, folder = sys.argv[1:]
    begun = time.perf_counter()
    crowd = Crowd.open(folder)
    contender = Sql(int(name[-1]), crowd) if name.startswith("duckdb") else Ours(name, crowd)
    pids = [os.getpid(), *contender.others]
    say({"setup": time.perf_counter() - begun})
    resting = 0
    for _ in sys.stdin:
        before = sum(map(seconds, pids))
        found = contender.one()
        say(found | {"cpu": sum(map(seconds, pids)) - before})
        resting = sum(memory(pid)["own"] for pid in pids)
    peak = sum(memory(pid)["peak"] for pid in pids)
    say(contender.end() | {"peak": peak, "resting": resting})


def say(found: dict[str, float]) -> None:
    print(json.dumps(found), flush=True)


main()
