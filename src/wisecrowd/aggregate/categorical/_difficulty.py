"""Models in which a task may be hard for everybody: GLAD, Rasch and 2PL are lines through a worker's ability.

They differ in how the slope and the shift of a line follow from a task's parameters, which is all that a method states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._abilities import Abilities, Line
from wisecrowd.aggregate.categorical._spread_abilities import SpreadAbilities, TaskTables, answer, by_task, table
from wisecrowd.base.checkpoints import standing_of
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, method_class, parameter
from wisecrowd.base.on_engine import OnEngine
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.gradient import Array, ClimbingEM, infer
from wisecrowd.engines import LocalEngine
from wisecrowd.engines.base import Engine
from wisecrowd.engines.retained import at_home
from wisecrowd.errors import UsageError

#: e to this power is as easy, or as discriminating, as a task gets.
STEEPEST = 20.0


@method_class
class DifficultyEM(OnEngine, ClimbingEM):
    """A worker is right the more probably the abler they are and the easier the task is.

    After ``fit``, ``tasks_`` tells by task its difficulty with a standard error and its number of labels, and
    ``workers_`` has each worker's ability with a standard error. Of a crowd in shards, what is learnt of tasks stays on
    disk beside them as long as the fitted method lives; ``task_tables()`` gives it shard by shard.

    >>> from wisecrowd import Rasch
    >>> issubclass(Rasch, DifficultyEM)
    True
    """

    ability_mean: float = parameter(default=1.0, help="what to think of a worker before any vote")
    ability_sd: float = parameter(default=1.0, help="how much workers differ in ability; 0 makes all alike")
    difficulty_mean: float = parameter(default=0.0, help="what to think of a task before any vote")
    difficulty_sd: float = parameter(default=1.0, help="how much tasks differ in difficulty; 0: not at all")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    @abstractmethod
    def _line(self, tasks: Array) -> Line:
        """The model: the line of every task, from its parameters (parameters, tasks)."""

    def _task_priors(self) -> list[tuple[float, float]]:
        """Mean and standard deviation of the prior of every task parameter, difficulty first."""
        return [(self.difficulty_mean, self.difficulty_sd)]

    def _floor(self, n_classes: int) -> float:
        """g: the probability to be right by luck alone."""
        return 0.0

    def _task_columns(self, tasks: Array) -> dict[str, NDArray[Any]]:
        """What `tasks_` has besides the difficulty."""
        return {}

    def _check(self) -> None:
        super()._check()
        for mean, spread in [(self.ability_mean, self.ability_sd), *self._task_priors()]:
            if not (np.isfinite(mean) and spread >= 0):
                raise UsageError(f"a prior needs a finite mean and a spread of 0 or more; got {mean} and {spread}")

    def _begin(self, votes: AnyCrowd) -> None:
        super()._begin(votes)
        for name in ("_beside", "tasks_", "task_parameters_"):  # of a fit before this one
            vars(self).pop(name, None)

    def _landscape(self, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> Abilities:
        return Abilities(crowd, gold, self)

    def _run(self, crowd: AnyCrowd, gold: Any, start: Any) -> None:
        with closing(self._engine(crowd, gold)) as engine:
            if isinstance(engine, LocalEngine):
                super()._run(engine.crowd, gold, start)
            else:
                self._run_by_pieces(engine, start)

    def _run_by_pieces(self, engine: Engine, start: Any) -> None:
        if start is not None and not isinstance(start, pd.DataFrame):
            raise UsageError(
                f"{type(self).__name__} starts on the chunks of a crowd from a table of tasks x classes (start=fitted.proba_), "
                f"and not from {type(start).__name__}; load the crowd if it fits in memory (crowd.load())"
            )
        land = SpreadAbilities(engine, self)
        standing = standing_of(self, engine.crowd, engine.gold, start, chunks=land.chunks)
        point, posterior = self._ascend(land, lambda: land.start(start), standing)
        tasks = at_home(engine, point.own)
        self._set_fitted_from_engine(
            engine, land.tally(posterior), answer, land.method, self.prior_, point.shared, tasks
        )
        self.ability_ = point.shared
        self.ability_error_, errors = land.errors(point, posterior)
        if isinstance(engine.crowd, ShardedCrowd):
            self._beside = TaskTables(engine.crowd, land.method, tasks, at_home(engine, errors))
            return
        parts = [np.concatenate(list(engine.each(by_task, part)), axis=1) for part in (tasks, errors)]
        self.task_parameters_ = parts[0]
        self.tasks_ = table(engine.crowd, self, *parts)

    if not TYPE_CHECKING:  # which would take any name for known

        def __getattr__(self, name: str) -> Any:
            # Only what is not there comes here: of a crowd in shards, what would fill memory.
            if name in ("tasks_", "task_parameters_") and "_beside" in vars(self):
                return self._beside.tasks() if name == "tasks_" else self._beside.task_parameters()
            return super().__getattr__(name)

    def task_tables(self) -> Iterator[pd.DataFrame]:
        """What ``tasks_`` tells, as one table for each shard of the crowd; of a crowd in memory, one.

        >>> from wisecrowd import Crowd, Rasch
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
        >>> [len(table) for table in Rasch().fit(crowd).task_tables()]
        [2]
        """
        self._check_fitted("tally_")
        if "_beside" in vars(self):
            yield from self._beside
        else:
            yield self.tasks_

    def _first_posterior(self, crowd: Crowd, land: Abilities) -> Array:
        """As if all workers were equally able, and all tasks equally difficult."""
        return infer(land.evidence(land.begin()), np.ones(crowd.n_classes), None)[0]

    def _carried_over(self, known: DifficultyEM, crowd: Crowd, land: Abilities) -> Array:
        """Abilities of the workers and parameters of the tasks that both fits know."""
        point = land.begin()
        ability, tasks = land.split(point)
        assert known.worker_index_ is not None
        assert crowd.workers is not None
        place = known.worker_index_.get_indexer(crowd.workers)
        ability[place >= 0] = known.ability_[place[place >= 0]]
        place = known.task_index_.get_indexer(crowd.tasks)
        tasks[:, place >= 0] = known.task_parameters_[:, place[place >= 0]]
        return np.where(land.prior.free, point, land.prior.mean)

    def _keep(self, crowd: Crowd, land: Abilities, point: Array) -> None:
        self.ability_, self.task_parameters_ = (part.copy() for part in land.split(point))
        self.ability_error_, errors = land.split(land.standard_error(point, self.posterior_))
        self.tasks_ = table(crowd, self, self.task_parameters_, errors)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"ability": self.ability_, "standard_error": self.ability_error_}
