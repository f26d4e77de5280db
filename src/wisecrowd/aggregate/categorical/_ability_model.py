"""The family of models with worker abilities and task difficulties: GLAD, Rasch and 2PL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._ability_likelihood import AbilityLikelihood, AbilitySpec
from wisecrowd.aggregate.categorical._sharded_ability_likelihood import (
    ShardedAbilityLikelihood,
    TaskTables,
    infer_chunk_posterior,
    make_task_table,
    read_task_values,
)
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.checkpoints import open_checkpoint
from wisecrowd.base.fields import CHECKPOINT_HELP, ENGINE_HELP, N_JOBS_HELP, fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.confusion import PRIOR_HELP
from wisecrowd.em.gradient import Array, GradientEM, GradientEMResult, make_gradient_start
from wisecrowd.engines import LocalEngine, engine_for
from wisecrowd.engines.base import Engine
from wisecrowd.engines.retained import copy_to_disk
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Help text of the mean of the task difficulties, whose default differs between methods.
DIFFICULTY_MEAN_HELP = "Prior mean of the difficulty of a task."
#: Help text of the parameter that Rasch and 2PL share.
GUESSING_HELP = "Probability of a right label by chance; 'chance' is one over the number of classes."


@method_class
class AbilityModel(Aggregator):
    """Base class of models in which a label is right more often the abler the worker and the easier the task.

    Fitted by generalised EM. A subclass defines its model by an `AbilitySpec` (`_make_spec`). For a crowd in shards, the
    parameters of tasks stay on disk beside the shards as long as the fitted method exists; ``task_tables()`` reads them
    shard by shard.
    """

    streams: ClassVar[bool] = True

    prior: Literal["estimate", "uniform"] | Any = parameter(default="uniform", help=PRIOR_HELP)
    max_iter: int = parameter(default=500, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-7, help="Relative change of the objective below which EM has converged.")
    m_steps: int = parameter(default=3, help="Number of L-BFGS steps in every M-step.")
    checkpoint: str | None = parameter(default=None, help=CHECKPOINT_HELP)
    verbose: bool = parameter(default=False, help="Show a progress bar.")
    ability_mean: float = parameter(default=1.0, help="Prior mean of the ability of a worker.")
    ability_sd: float = parameter(
        default=1.0, help="Prior standard deviation of the ability of a worker; 0 makes all workers equal."
    )
    difficulty_mean: float = parameter(default=0.0, help=DIFFICULTY_MEAN_HELP)
    difficulty_sd: float = parameter(
        default=1.0, help="Prior standard deviation of the difficulty of a task; 0 makes all tasks equal."
    )
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    prior_: NDArray[np.float64] = fitted(help="Class prior.", shape=("n_classes",), finite=True)
    trace_: NDArray[np.float64] = fitted(help="Objective of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether EM converged.")
    ability_: NDArray[np.float64] = fitted(help="Ability of each worker.", shape=("n_workers",), finite=True)
    ability_error_: NDArray[np.float64] = fitted(help="Standard error of each ability.", shape=("n_workers",))
    task_parameters_: NDArray[np.float64] = fitted(
        help="Parameters of the tasks.", shape=("n_parameters", "n_tasks"), finite=True
    )
    tasks_: pd.DataFrame = fitted(
        help="Difficulty with standard error, and number of votes, by task.", shape=("n_tasks", "n_columns")
    )

    @abstractmethod
    def _make_spec(self, n_classes: int) -> AbilitySpec:
        """Return the specification of the model."""

    def _make_model(self, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> AbilityLikelihood:
        """Return the likelihood of votes in memory."""
        return AbilityLikelihood(crowd, gold, self._make_spec(crowd.n_classes))

    def _start_fit(self, votes: AnyCrowd) -> None:
        super()._start_fit(votes)
        for name in ("_task_tables", "tasks_", "task_parameters_"):  # results of a previous fit
            vars(self).pop(name, None)

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        spec = self._make_spec(len(self.classes_))
        em = GradientEM(self.prior, self.max_iter, self.tol, self.m_steps, type(self).__name__)
        with (
            progress.show_if(self.verbose),
            closing(engine_for(self.engine, crowd, gold, n_jobs=self.n_jobs)) as engine,
        ):
            if isinstance(engine, LocalEngine):
                self._fit_in_memory(em, spec, engine.crowd, gold, start)
            else:
                self._fit_in_chunks(em, spec, engine, start)

    def _fit_in_memory(
        self, em: GradientEM, spec: AbilitySpec, crowd: Crowd, gold: NDArray[np.int32] | None, start: Any
    ) -> None:
        """Fit a crowd in memory."""
        model = self._make_model(crowd, gold)
        checkpoint = open_checkpoint(self.checkpoint, self, crowd, gold, start, chunks=1)

        def make_start() -> Any:
            return make_gradient_start(
                self,
                model,
                crowd,
                start,
                first_posterior=model.initial_posterior,
                carry_over=lambda source: _carry_over(source, crowd, model),
            )

        result = em.run(model, make_start, self.classes_, checkpoint)
        self._set_em_results(result)
        self._set_fitted(crowd, result.posterior)
        self.ability_, self.task_parameters_ = (part.copy() for part in model.split_point(result.point))
        self.ability_error_, errors = model.split_point(model.standard_error(result.point, self.posterior_))
        self.tasks_ = make_task_table(crowd, spec, self.task_parameters_, errors)

    def _fit_in_chunks(self, em: GradientEM, spec: AbilitySpec, engine: Engine, start: Any) -> None:
        """Fit a crowd in chunks."""
        if start is not None and not isinstance(start, pd.DataFrame):
            raise UsageError(
                f"start must be a table of tasks x classes (start=fitted.proba_) for {type(self).__name__} on a crowd in chunks; "
                f"got {type(start).__name__}. Load the crowd if it fits in memory (crowd.load())"
            )
        model = ShardedAbilityLikelihood(engine, spec)
        checkpoint = open_checkpoint(self.checkpoint, self, engine.crowd, engine.gold, start, chunks=model.n_chunks)
        result = em.run(model, lambda: model.make_start(start), self.classes_, checkpoint)
        self._set_em_results(result)
        tasks = copy_to_disk(engine, result.point.chunk_values)
        self._set_fitted_from_engine(
            engine,
            infer_chunk_posterior,
            spec,
            self.prior_,
            result.point.shared,
            tasks,
            tally=model.tally(result.posterior),
        )
        self.ability_ = result.point.shared
        self.ability_error_, errors = model.standard_errors(result.point, result.posterior)
        if isinstance(engine.crowd, ShardedCrowd):
            self._task_tables = TaskTables(engine.crowd, spec, tasks, copy_to_disk(engine, errors))
            return
        parameters, task_errors = (
            np.concatenate(list(engine.map(read_task_values, state)), axis=1) for state in (tasks, errors)
        )
        self.task_parameters_ = parameters
        self.tasks_ = make_task_table(engine.crowd, spec, parameters, task_errors)

    def _set_em_results(self, result: GradientEMResult) -> None:
        """Set the fitted attributes that describe the iteration."""
        self.prior_, self.trace_ = result.class_prior, np.asarray(result.trace)
        self.n_iter_, self.converged_ = len(result.trace), result.converged

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            # Called for attributes that are not set; of a crowd in shards, these two would fill the memory.
            if name in ("tasks_", "task_parameters_") and "_task_tables" in vars(self):
                tables = self._task_tables
                return tables.concatenate() if name == "tasks_" else tables.read_parameters()
            return super().__getattr__(name)

    def task_tables(self) -> Iterator[pd.DataFrame]:
        """Iterate over the content of ``tasks_``, one table per shard of the crowd; one table for a crowd in memory.

        Yields
        ------
        DataFrame

        Examples
        --------
        >>> from wisecrowd import Crowd, Rasch
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
        >>> [len(table) for table in Rasch().fit(crowd).task_tables()]
        [2]
        """
        self._check_fitted("tally_")
        if "_task_tables" in vars(self):
            yield from self._task_tables
        else:
            yield self.tasks_

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"ability": self.ability_, "standard_error": self.ability_error_}


def _carry_over(source: AbilityModel, crowd: Crowd, model: AbilityLikelihood) -> Array:
    """Return the initial point with the parameters of workers and tasks that another fit has, by id."""
    point = model.initial_point()
    ability, tasks = model.split_point(point)
    ability_source, task_source = _get_parameters(source)
    assert source.worker_index_ is not None
    assert crowd.workers is not None
    position = locate_ids(crowd.workers, source.worker_index_)
    ability[position >= 0] = ability_source[position[position >= 0]]
    position = locate_ids(crowd.tasks, source.task_index_)
    tasks[:, position >= 0] = task_source[:, position[position >= 0]]
    return np.where(model.prior.free, point, model.prior.mean)


def _get_parameters(source: AbilityModel) -> tuple[Array, Array]:
    """Return abilities and task parameters of a fitted method, or raise an error if it is not fitted."""
    if not hasattr(source, "ability_"):
        raise UsageError(f"the {type(source).__name__} given as start is not fitted yet; call fit first")
    return source.ability_, source.task_parameters_
