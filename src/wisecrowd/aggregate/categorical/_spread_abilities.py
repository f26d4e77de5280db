"""Models of ability and difficulty over the chunks of a crowd: abilities here, task parameters and posteriors there.

Every chunk is seen as a crowd of its own (`Abilities`), of which the sums over votes are taken and the priors left out:
that of a task is added where the task is, and that of the abilities once, here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wisecrowd.aggregate.categorical._abilities import Abilities, priors_of
from wisecrowd.data.sharded import MOST_CELLS, ShardedCrowd
from wisecrowd.em.gradient import Array, Belief, Gaussians
from wisecrowd.em.initialization import given_posterior
from wisecrowd.engines import StreamEngine
from wisecrowd.engines import base as work
from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.distributed_vector import Spread
from wisecrowd.engines.retained import crowd_slice, keep_and_add, own_of, packed
from wisecrowd.errors import UsageError

if TYPE_CHECKING:
    from wisecrowd.aggregate.categorical._difficulty import DifficultyEM


class SpreadAbilities:
    """What `Abilities` is to a crowd in memory: points are `Spread`, and posteriors are kept beside the chunks."""

    def __init__(self, engine: Engine, method: DifficultyEM) -> None:
        #: For work that is sent away, which should not take along what an earlier fit has left.
        self.method = method.unfitted()
        self.engine = engine
        self.abilities, _ = priors_of(method, engine.crowd.n_workers, 0)

    @property
    def chunks(self) -> int:
        """How many there are: a point that was saved in some cannot be restored in others."""
        return int(self.engine.total(_one))

    def start(self, given: Any) -> tuple[Spread, Belief]:
        """The point and the belief to start from."""
        begin = Spread.of(self.engine, self.abilities.mean.copy(), self.engine.keep(_begin, self.method))
        classes, posterior = keep_and_add(self.engine, _first_belief, self.method, given)
        return begin, Belief(classes, float("nan"), posterior)

    def expected(self, point: Spread, posterior: ChunkState) -> tuple[float, Spread]:
        """As that of a `Landscape`."""
        sums, own = keep_and_add(self.engine, _told, self.method, point.shared, point.own, posterior)
        gradient = self.abilities.slope(sums[1:].copy(), point.shared)
        return float(sums[0]) + self.abilities.log_density(point.shared), Spread.of(self.engine, gradient, own)

    def curvature(self, point: Spread, posterior: ChunkState) -> Spread:
        """As that of a `Landscape`."""
        by_worker, own = keep_and_add(self.engine, _bend, self.method, point.shared, point.own)
        return Spread.of(self.engine, self.abilities.sharpness(by_worker), own)

    def believe(self, point: Spread, prior: Array) -> Belief:
        """The E-step."""
        sums, posterior = keep_and_add(self.engine, _believe, self.method, prior, point.shared, point.own)
        return Belief(sums[1:], float(sums[0]) + self.abilities.log_density(point.shared), posterior)

    def saved(self, point: Spread) -> dict[str, Array]:
        """A point as arrays, to go on from: the tasks' parameters chunk by chunk."""
        chunks = list(self.engine.each(crowd_slice, point.own))
        return {"abilities": point.shared, "tasks": np.concatenate(chunks), "ends": np.cumsum([len(p) for p in chunks])}

    def restored(self, arrays: dict[str, Array]) -> Spread:
        """The point that was saved, beside the chunks again."""
        own = self.engine.keep(_between, arrays["tasks"], arrays["ends"])
        return Spread.of(self.engine, arrays["abilities"], own)

    def tally(self, posterior: ChunkState) -> Array:
        """The posteriors added up by (worker, label) pair."""
        return self.engine.total(_tally, posterior)

    def errors(self, point: Spread, posterior: ChunkState) -> tuple[Array, ChunkState]:
        """Standard errors of the abilities, and of the tasks' parameters."""
        by_worker, own = keep_and_add(self.engine, _errors, self.method, point.shared, point.own, posterior)
        return self.abilities.error(by_worker), own


@dataclass(frozen=True, eq=False)
class TaskTables:
    """What was learnt of the tasks of a crowd in shards, beside them on disk; it goes when nobody holds this any more."""

    crowd: ShardedCrowd
    method: DifficultyEM
    parameters: ChunkState
    errors: ChunkState

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield from StreamEngine(self.crowd).each(_table, self.method, self.parameters, self.errors)

    def tasks(self) -> pd.DataFrame:
        """All tables as one, if it fits in memory."""
        self._check()
        return pd.concat(list(self))

    def task_parameters(self) -> Array:
        """The parameters of all tasks, (parameters, tasks)."""
        self._check()
        return np.concatenate(list(StreamEngine(self.crowd).each(by_task, self.parameters)), axis=1)

    def _check(self) -> None:
        if self.crowd.n_tasks * (len(self.method._task_priors()) + 2) > MOST_CELLS:
            raise UsageError(
                f"the table of {self.crowd.n_tasks:,} tasks would not fit in memory; take it shard by shard: "
                "for table in fitted.task_tables()"
            )


def answer(chunk: Chunk, method: DifficultyEM, prior: Array, ability: Array, tasks: Array) -> Array:
    """Work: the posterior of a chunk's tasks."""
    return _believe(chunk, method, prior, ability, tasks)[-1]


def table(crowd: Any, method: DifficultyEM, parameters: Array, errors: Array) -> pd.DataFrame:
    """The table of some tasks: difficulty with its error, what the method adds, and the number of labels."""
    return pd.DataFrame(
        {"difficulty": parameters[0], "standard_error": errors[0]}
        | method._task_columns(parameters)
        | {"n_votes": crowd.votes.sum(axis=1)},
        index=crowd.tasks.rename("task"),
    )


def by_task(chunk: Chunk, value: Array) -> Array:
    """Work: what was kept of the tasks' parameters, (parameters, tasks)."""
    return np.array(own_of(value)).reshape(-1, chunk.crowd.n_tasks)


# ---------------------------------------------------------------------- work on a chunk, with what is kept for it


def _table(chunk: Chunk, method: DifficultyEM, parameters: Array, errors: Array) -> pd.DataFrame:
    return table(chunk.crowd, method, by_task(chunk, parameters), by_task(chunk, errors))


def _tasks_prior(chunk: Chunk, method: DifficultyEM) -> Gaussians:
    return priors_of(method, 0, chunk.crowd.n_tasks)[1]


def _one(chunk: Chunk) -> int:  # noqa: ARG001  # one signature for all work
    return 1


def _between(chunk: Chunk, tasks: Array, ends: Array) -> Array:
    begin = 0 if chunk.number == 0 else ends[chunk.number - 1]
    return packed(tasks[begin : ends[chunk.number]])


def _begin(chunk: Chunk, method: DifficultyEM) -> Array:
    return packed(_tasks_prior(chunk, method).mean)


def _first_belief(chunk: Chunk, method: DifficultyEM, given: Any) -> tuple[Array, Array]:
    land = _land(chunk, method)
    first = method._first_posterior(chunk.crowd, land) if given is None else given_posterior(given, chunk.crowd)
    belief = land.belief(first)
    return belief.classes, belief.posterior


def _told(
    chunk: Chunk, method: DifficultyEM, ability: Array, tasks: Array, posterior: Array
) -> tuple[float, Array, Array]:
    """Value and gradient: of the votes alone by worker, with the prior by task."""
    land, prior, at = _land(chunk, method), _tasks_prior(chunk, method), own_of(tasks)
    value, gradient = land.told(_point(ability, tasks), own_of(posterior))
    by_worker, of_tasks = np.split(gradient, [len(ability)])
    return value + prior.log_density(at), by_worker, prior.slope(of_tasks, at)


def _bend(chunk: Chunk, method: DifficultyEM, ability: Array, tasks: Array) -> tuple[Array, Array]:
    by_worker, of_tasks = np.split(_land(chunk, method).bend(_point(ability, tasks)), [len(ability)])
    return by_worker, _tasks_prior(chunk, method).sharpness(of_tasks)


def _believe(
    chunk: Chunk, method: DifficultyEM, prior: Array, ability: Array, tasks: Array
) -> tuple[float, Array, Array]:
    found = _land(chunk, method).inferred(_point(ability, tasks), prior)
    return found.objective + _tasks_prior(chunk, method).log_density(own_of(tasks)), found.classes, found.posterior


def _tally(chunk: Chunk, posterior: Array) -> Array:
    return work.tally(chunk, own_of(posterior).reshape(chunk.crowd.n_tasks, -1))


def _errors(chunk: Chunk, method: DifficultyEM, ability: Array, tasks: Array, posterior: Array) -> tuple[Array, Array]:
    belief = own_of(posterior).reshape(chunk.crowd.n_tasks, -1)
    known = _land(chunk, method).known(_point(ability, tasks), belief)
    by_worker, of_tasks = np.split(known, [len(ability)])
    return by_worker, _tasks_prior(chunk, method).error(of_tasks)


def _point(ability: Array, tasks: Array) -> Array:
    """A point of the chunk's own landscape: abilities, then the parameters of its tasks."""
    return np.concatenate([ability, own_of(tasks)])


def _land(chunk: Chunk, method: DifficultyEM) -> Abilities:
    return Abilities(chunk.crowd, chunk.gold, method)
