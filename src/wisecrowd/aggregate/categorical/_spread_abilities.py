"""Models of ability and difficulty over the pieces of a crowd: abilities here, task parameters and posteriors there.

Every piece is seen as a crowd of its own (`Abilities`), of which the sums over votes are taken and the priors left out:
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
from wisecrowd.engines.base import Engine, Kept, Piece
from wisecrowd.engines.distributed_vector import Spread
from wisecrowd.engines.retained import keep_and_add, own_of, packed, stretch
from wisecrowd.errors import UsageError

if TYPE_CHECKING:
    from wisecrowd.aggregate.categorical._difficulty import DifficultyEM


class SpreadAbilities:
    """What `Abilities` is to a crowd in memory: points are `Spread`, and posteriors are kept beside the pieces."""

    def __init__(self, engine: Engine, method: DifficultyEM) -> None:
        #: For work that is sent away, which should not take along what an earlier fit has left.
        self.method = method.unfitted()
        self.engine = engine
        self.abilities, _ = priors_of(method, engine.crowd.n_workers, 0)

    @property
    def pieces(self) -> int:
        """How many there are: a point that was saved in some cannot be restored in others."""
        return int(self.engine.total(_one))

    def start(self, given: Any) -> tuple[Spread, Belief]:
        """The point and the belief to start from."""
        begin = Spread.of(self.engine, self.abilities.mean.copy(), self.engine.keep(_begin, self.method))
        classes, posterior = keep_and_add(self.engine, _first_belief, self.method, given)
        return begin, Belief(classes, float("nan"), posterior)

    def expected(self, point: Spread, posterior: Kept) -> tuple[float, Spread]:
        """As that of a `Landscape`."""
        sums, own = keep_and_add(self.engine, _told, self.method, point.shared, point.own, posterior)
        gradient = self.abilities.slope(sums[1:].copy(), point.shared)
        return float(sums[0]) + self.abilities.log_density(point.shared), Spread.of(self.engine, gradient, own)

    def curvature(self, point: Spread, posterior: Kept) -> Spread:
        """As that of a `Landscape`."""
        by_worker, own = keep_and_add(self.engine, _bend, self.method, point.shared, point.own)
        return Spread.of(self.engine, self.abilities.sharpness(by_worker), own)

    def believe(self, point: Spread, prior: Array) -> Belief:
        """The E-step."""
        sums, posterior = keep_and_add(self.engine, _believe, self.method, prior, point.shared, point.own)
        return Belief(sums[1:], float(sums[0]) + self.abilities.log_density(point.shared), posterior)

    def saved(self, point: Spread) -> dict[str, Array]:
        """A point as arrays, to go on from: the tasks' parameters piece by piece."""
        pieces = list(self.engine.each(stretch, point.own))
        return {"abilities": point.shared, "tasks": np.concatenate(pieces), "ends": np.cumsum([len(p) for p in pieces])}

    def restored(self, arrays: dict[str, Array]) -> Spread:
        """The point that was saved, beside the pieces again."""
        own = self.engine.keep(_between, arrays["tasks"], arrays["ends"])
        return Spread.of(self.engine, arrays["abilities"], own)

    def tally(self, posterior: Kept) -> Array:
        """The posteriors added up by (worker, label) pair."""
        return self.engine.total(_tally, posterior)

    def errors(self, point: Spread, posterior: Kept) -> tuple[Array, Kept]:
        """Standard errors of the abilities, and of the tasks' parameters."""
        by_worker, own = keep_and_add(self.engine, _errors, self.method, point.shared, point.own, posterior)
        return self.abilities.error(by_worker), own


@dataclass(frozen=True, eq=False)
class TaskTables:
    """What was learnt of the tasks of a crowd in shards, beside them on disk; it goes when nobody holds this any more."""

    crowd: ShardedCrowd
    method: DifficultyEM
    parameters: Kept
    errors: Kept

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


def answer(piece: Piece, method: DifficultyEM, prior: Array, ability: Array, tasks: Array) -> Array:
    """Work: the posterior of a piece's tasks."""
    return _believe(piece, method, prior, ability, tasks)[-1]


def table(crowd: Any, method: DifficultyEM, parameters: Array, errors: Array) -> pd.DataFrame:
    """The table of some tasks: difficulty with its error, what the method adds, and the number of labels."""
    return pd.DataFrame(
        {"difficulty": parameters[0], "standard_error": errors[0]}
        | method._task_columns(parameters)
        | {"n_labels": crowd.votes.sum(axis=1)},
        index=crowd.tasks.rename("task"),
    )


def by_task(piece: Piece, value: Array) -> Array:
    """Work: what was kept of the tasks' parameters, (parameters, tasks)."""
    return np.array(own_of(value)).reshape(-1, piece.crowd.n_tasks)


# ---------------------------------------------------------------------- work on a piece, with what is kept for it


def _table(piece: Piece, method: DifficultyEM, parameters: Array, errors: Array) -> pd.DataFrame:
    return table(piece.crowd, method, by_task(piece, parameters), by_task(piece, errors))


def _tasks_prior(piece: Piece, method: DifficultyEM) -> Gaussians:
    return priors_of(method, 0, piece.crowd.n_tasks)[1]


def _one(piece: Piece) -> int:  # noqa: ARG001  # one signature for all work
    return 1


def _between(piece: Piece, tasks: Array, ends: Array) -> Array:
    begin = 0 if piece.number == 0 else ends[piece.number - 1]
    return packed(tasks[begin : ends[piece.number]])


def _begin(piece: Piece, method: DifficultyEM) -> Array:
    return packed(_tasks_prior(piece, method).mean)


def _first_belief(piece: Piece, method: DifficultyEM, given: Any) -> tuple[Array, Array]:
    land = _land(piece, method)
    first = method._first_posterior(piece.crowd, land) if given is None else given_posterior(given, piece.crowd)
    belief = land.belief(first)
    return belief.classes, belief.posterior


def _told(
    piece: Piece, method: DifficultyEM, ability: Array, tasks: Array, posterior: Array
) -> tuple[float, Array, Array]:
    """Value and gradient: of the votes alone by worker, with the prior by task."""
    land, prior, at = _land(piece, method), _tasks_prior(piece, method), own_of(tasks)
    value, gradient = land.told(_point(ability, tasks), own_of(posterior))
    by_worker, of_tasks = np.split(gradient, [len(ability)])
    return value + prior.log_density(at), by_worker, prior.slope(of_tasks, at)


def _bend(piece: Piece, method: DifficultyEM, ability: Array, tasks: Array) -> tuple[Array, Array]:
    by_worker, of_tasks = np.split(_land(piece, method).bend(_point(ability, tasks)), [len(ability)])
    return by_worker, _tasks_prior(piece, method).sharpness(of_tasks)


def _believe(
    piece: Piece, method: DifficultyEM, prior: Array, ability: Array, tasks: Array
) -> tuple[float, Array, Array]:
    found = _land(piece, method).inferred(_point(ability, tasks), prior)
    return found.objective + _tasks_prior(piece, method).log_density(own_of(tasks)), found.classes, found.posterior


def _tally(piece: Piece, posterior: Array) -> Array:
    return work.tally(piece, own_of(posterior).reshape(piece.crowd.n_tasks, -1))


def _errors(piece: Piece, method: DifficultyEM, ability: Array, tasks: Array, posterior: Array) -> tuple[Array, Array]:
    belief = own_of(posterior).reshape(piece.crowd.n_tasks, -1)
    known = _land(piece, method).known(_point(ability, tasks), belief)
    by_worker, of_tasks = np.split(known, [len(ability)])
    return by_worker, _tasks_prior(piece, method).error(of_tasks)


def _point(ability: Array, tasks: Array) -> Array:
    """A point of the piece's own landscape: abilities, then the parameters of its tasks."""
    return np.concatenate([ability, own_of(tasks)])


def _land(piece: Piece, method: DifficultyEM) -> Abilities:
    return Abilities(piece.crowd, piece.clamp, method)
