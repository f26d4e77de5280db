"""Likelihood of models with abilities and difficulties over the chunks of a crowd.

Abilities are in this process; task parameters and posteriors are retained beside the chunks. Every chunk is a crowd of its own
(`AbilityLikelihood`), whose sums over votes exclude the priors: the prior of a task is added where the task is, and the prior of
the abilities once, in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.aggregate.categorical._ability_likelihood import AbilityLikelihood, AbilitySpec
from wisecrowd.base.checkpoints import CheckpointState
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import MAX_COLLECTED_CELLS, ShardedCrowd
from wisecrowd.em.gradient import Array, GaussianPrior, PosteriorEstimate
from wisecrowd.em.initialization import align_posterior
from wisecrowd.engines import StreamEngine
from wisecrowd.engines.base import Chunk, ChunkState, Engine, tally_chunk
from wisecrowd.engines.distributed_vector import DistributedVector
from wisecrowd.engines.retained import pack_retained, read_retained, sum_and_retain, unpack_retained
from wisecrowd.errors import UsageError, preview


class ShardedAbilityLikelihood:
    """Counterpart of `AbilityLikelihood` for a crowd in chunks, with distributed points and retained posteriors.

    Parameters
    ----------
    engine : Engine
        Engine that holds the chunks.
    spec : AbilitySpec
        Specification of the model.
    """

    def __init__(self, engine: Engine, spec: AbilitySpec) -> None:
        self.engine, self.spec = engine, spec
        self.ability_prior, _ = spec.make_priors(engine.crowd.n_workers, 0)

    @property
    def n_chunks(self) -> int:
        """Number of chunks; a saved point can only be restored to the same chunks."""
        return int(self.engine.sum(_count_chunk))

    def make_start(self, posterior: Any) -> tuple[DistributedVector, PosteriorEstimate]:
        """Return the point and the posterior to start from.

        Parameters
        ----------
        posterior : DataFrame or None
            Posterior given by the user.

        Returns
        -------
        point : DistributedVector
        estimate : PosteriorEstimate
        """
        tasks = self.engine.retain(_make_initial_tasks, self.spec)
        point = DistributedVector.from_parts(self.engine, self.ability_prior.mean.copy(), tasks)
        class_counts, state = sum_and_retain(self.engine, _make_initial_posterior, self.spec, posterior)
        return point, PosteriorEstimate(class_counts, float("nan"), state)

    def expected_log_joint(self, point: DistributedVector, posterior: ChunkState) -> tuple[float, DistributedVector]:
        """Return the expected log-joint and its gradient.

        Parameters
        ----------
        point : DistributedVector
            Values of all parameters: abilities, and those of tasks beside their chunks.
        posterior : ChunkState
            Posterior.

        Returns
        -------
        value : float
        gradient : DistributedVector
        """
        sums, task_gradient = sum_and_retain(
            self.engine, _compute_gradient, self.spec, point.shared, point.chunk_values, posterior
        )
        gradient = self.ability_prior.add_gradient(sums[1:].copy(), point.shared)
        value = float(sums[0]) + self.ability_prior.log_density(point.shared)
        return value, DistributedVector.from_parts(self.engine, gradient, task_gradient)

    def curvature(self, point: DistributedVector, posterior: ChunkState) -> DistributedVector:
        """Return the curvature of votes and prior along every coordinate.

        Parameters
        ----------
        point : DistributedVector
            Values of all parameters: abilities, and those of tasks beside their chunks.
        posterior : ChunkState
            Posterior; not used.

        Returns
        -------
        DistributedVector
        """
        by_worker, by_task = sum_and_retain(
            self.engine, _compute_curvature, self.spec, point.shared, point.chunk_values
        )
        return DistributedVector.from_parts(self.engine, self.ability_prior.add_curvature(by_worker), by_task)

    def e_step(self, point: DistributedVector, prior: Array) -> PosteriorEstimate:
        """Compute the posterior given parameters and class prior.

        Parameters
        ----------
        point : DistributedVector
            Values of all parameters: abilities, and those of tasks beside their chunks.
        prior : ndarray of shape (n_classes,)
            Class prior.

        Returns
        -------
        PosteriorEstimate
        """
        sums, posterior = sum_and_retain(
            self.engine, _infer_posterior, self.spec, prior, point.shared, point.chunk_values
        )
        objective = float(sums[0]) + self.ability_prior.log_density(point.shared)
        return PosteriorEstimate(sums[1:], objective, posterior)

    def point_to_arrays(self, point: DistributedVector) -> dict[str, Array]:
        """Return a point as arrays for a checkpoint.

        Parameters
        ----------
        point : DistributedVector
            Values of all parameters: abilities, and those of tasks beside their chunks.

        Returns
        -------
        dict of ndarray
            Arrays by name; `point_from_state` reads them.
        """
        chunks = list(self.engine.map(read_retained, point.chunk_values))
        ends = np.cumsum([len(chunk) for chunk in chunks])
        return {"abilities": point.shared, "tasks": np.concatenate(chunks), "ends": ends}

    def point_from_state(self, state: CheckpointState) -> DistributedVector:
        """Return the point that `point_to_arrays` saved.

        Parameters
        ----------
        state : CheckpointState
            State of a checkpoint.

        Returns
        -------
        DistributedVector

        Raises
        ------
        ValueError
            If the state does not hold a point of this model.
        """
        abilities = state.read_numbers("abilities", self.ability_prior.mean.shape)
        ends = state.read_numbers("ends", (self.n_chunks,), lowest=0)
        sizes = np.array(list(self.engine.map(_count_task_parameters, self.spec)), dtype=np.int64)
        expected_ends = np.cumsum(sizes)
        if not np.array_equal(ends, expected_ends):
            raise ValueError(
                f"the task parameters of the shards must end at {preview(expected_ends.tolist())}; got {preview(ends.tolist())}"
            )
        tasks = state.read_numbers("tasks", (int(sizes.sum()),))
        return DistributedVector.from_parts(self.engine, abilities, self.engine.retain(_slice_tasks, tasks, ends))

    def tally(self, posterior: ChunkState) -> Array:
        """Return the tally of a posterior.

        Parameters
        ----------
        posterior : ChunkState
            Posterior.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return self.engine.sum(_tally_posterior, posterior)

    def standard_errors(self, point: DistributedVector, posterior: ChunkState) -> tuple[Array, ChunkState]:
        """Return the standard errors of abilities and task parameters.

        Parameters
        ----------
        point : DistributedVector
            Values of all parameters: abilities, and those of tasks beside their chunks.
        posterior : ChunkState
            Posterior.

        Returns
        -------
        ability_error : ndarray of shape (n_workers,)
        task_error : ChunkState
        """
        by_worker, by_task = sum_and_retain(
            self.engine, _compute_errors, self.spec, point.shared, point.chunk_values, posterior
        )
        return self.ability_prior.standard_error(by_worker), by_task


@dataclass(frozen=True, eq=False)
class TaskTables:
    """Parameters of the tasks of a crowd in shards, on disk beside them as long as this object exists.

    Parameters
    ----------
    crowd : ShardedCrowd
        Votes.
    spec : AbilitySpec
        Specification of the model.
    parameters, errors : ChunkState
        Parameters of the tasks, and their standard errors.
    """

    crowd: ShardedCrowd
    spec: AbilitySpec
    parameters: ChunkState
    errors: ChunkState

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield from StreamEngine(self.crowd).map(_make_chunk_table, self.spec, self.parameters, self.errors)

    def concatenate(self) -> pd.DataFrame:
        """Return all tables as one.

        Returns
        -------
        DataFrame

        Raises
        ------
        UsageError
            If the table does not fit in memory.
        """
        self._check_size()
        return pd.concat(list(self))

    def read_parameters(self) -> Array:
        """Return the parameters of all tasks.

        Returns
        -------
        ndarray of shape (n_parameters, n_tasks)

        Raises
        ------
        UsageError
            If the table does not fit in memory.
        """
        self._check_size()
        return np.concatenate(list(StreamEngine(self.crowd).map(read_task_values, self.parameters)), axis=1)

    def _check_size(self) -> None:
        """Raise an error if the table would not fit in memory."""
        if self.crowd.n_tasks * (len(self.spec.task_priors) + 2) > MAX_COLLECTED_CELLS:
            raise UsageError(
                f"the table of {self.crowd.n_tasks:,} tasks would not fit in memory; read it shard by shard: "
                "for table in fitted.task_tables()"
            )


def make_task_table(crowd: Crowd, spec: AbilitySpec, parameters: Array, errors: Array) -> pd.DataFrame:
    """Return a table of tasks: difficulty, standard error, further columns of the model, and number of votes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    spec : AbilitySpec
        Specification of the model.
    parameters, errors : ndarray of shape (n_parameters, n_tasks)
        Parameters of the tasks, and their standard errors.

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame(
        {"difficulty": parameters[0], "standard_error": errors[0]}
        | spec.task_columns(parameters)
        | {"n_votes": crowd.vote_counts.sum(axis=1)},
        index=crowd.tasks.rename("task"),
    )


# ---------------------------------------------------------------------- functions of a chunk


def infer_chunk_posterior(chunk: Chunk, spec: AbilitySpec, prior: Array, ability: Array, tasks: Array) -> Array:
    """Return the posterior of the tasks of a chunk.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    spec : AbilitySpec
        Specification of the model.
    prior : ndarray of shape (n_classes,)
        Class prior.
    ability : ndarray of shape (n_workers,)
        Abilities.
    tasks : ndarray
        Retained parameters of the tasks.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
    """
    return _infer_posterior(chunk, spec, prior, ability, tasks)[-1]


def read_task_values(chunk: Chunk, retained: Array) -> Array:
    """Return retained values of the tasks of a chunk.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    retained : ndarray
        Retained values.

    Returns
    -------
    ndarray of shape (n_parameters, n_tasks)
    """
    return np.array(unpack_retained(retained)).reshape(-1, chunk.crowd.n_tasks)


def _make_chunk_table(chunk: Chunk, spec: AbilitySpec, parameters: Array, errors: Array) -> pd.DataFrame:
    """Return the table of the tasks of a chunk."""
    return make_task_table(chunk.crowd, spec, read_task_values(chunk, parameters), read_task_values(chunk, errors))


def _make_task_prior(chunk: Chunk, spec: AbilitySpec) -> GaussianPrior:
    """Return the prior of the task parameters of a chunk."""
    return spec.make_priors(0, chunk.crowd.n_tasks)[1]


def _count_chunk(chunk: Chunk) -> int:  # noqa: ARG001  # signature of chunk functions
    """Return 1, so that the sum is the number of chunks."""
    return 1


def _count_task_parameters(chunk: Chunk, spec: AbilitySpec) -> int:
    """Return the number of task parameters of a chunk."""
    return len(_make_task_prior(chunk, spec).mean)


def _slice_tasks(chunk: Chunk, tasks: Array, ends: Array) -> Array:
    """Return the part of saved task parameters that belongs to a chunk."""
    begin = 0 if chunk.number == 0 else ends[chunk.number - 1]
    return pack_retained(tasks[begin : ends[chunk.number]])


def _make_initial_tasks(chunk: Chunk, spec: AbilitySpec) -> Array:
    """Return the initial task parameters of a chunk."""
    return pack_retained(_make_task_prior(chunk, spec).mean)


def _make_initial_posterior(chunk: Chunk, spec: AbilitySpec, posterior: Any) -> tuple[Array, Array]:
    """Return class counts and the initial posterior of a chunk."""
    model = _make_model(chunk, spec)
    first = model.initial_posterior() if posterior is None else align_posterior(posterior, chunk.crowd)
    estimate = model.initial_estimate(first)
    return estimate.class_counts, estimate.posterior


def _compute_gradient(
    chunk: Chunk, spec: AbilitySpec, ability: Array, tasks: Array, posterior: Array
) -> tuple[float, Array, Array]:
    """Return the value, the gradient by worker (votes only), and the gradient by task (votes and prior)."""
    model, prior, task_point = _make_model(chunk, spec), _make_task_prior(chunk, spec), unpack_retained(tasks)
    value, gradient = model.expected_log_likelihood(_make_point(ability, tasks), unpack_retained(posterior))
    by_worker, by_task = np.split(gradient, [len(ability)])
    return value + prior.log_density(task_point), by_worker, prior.add_gradient(by_task, task_point)


def _compute_curvature(chunk: Chunk, spec: AbilitySpec, ability: Array, tasks: Array) -> tuple[Array, Array]:
    """Return the curvature by worker (votes only) and by task (votes and prior)."""
    curvature = _make_model(chunk, spec).vote_curvature(_make_point(ability, tasks))
    by_worker, by_task = np.split(curvature, [len(ability)])
    return by_worker, _make_task_prior(chunk, spec).add_curvature(by_task)


def _infer_posterior(
    chunk: Chunk, spec: AbilitySpec, prior: Array, ability: Array, tasks: Array
) -> tuple[float, Array, Array]:
    """Return the objective, class counts, and the posterior of a chunk."""
    estimate = _make_model(chunk, spec).infer_posterior(_make_point(ability, tasks), prior)
    log_prior = _make_task_prior(chunk, spec).log_density(unpack_retained(tasks))
    return estimate.objective + log_prior, estimate.class_counts, estimate.posterior


def _tally_posterior(chunk: Chunk, posterior: Array) -> Array:
    """Return the tally of the posterior of a chunk."""
    return tally_chunk(chunk, unpack_retained(posterior).reshape(chunk.crowd.n_tasks, -1))


def _compute_errors(
    chunk: Chunk, spec: AbilitySpec, ability: Array, tasks: Array, posterior: Array
) -> tuple[Array, Array]:
    """Return the information by worker, and the standard errors by task."""
    table = unpack_retained(posterior).reshape(chunk.crowd.n_tasks, -1)
    information = _make_model(chunk, spec).observed_information(_make_point(ability, tasks), table)
    by_worker, by_task = np.split(information, [len(ability)])
    return by_worker, _make_task_prior(chunk, spec).standard_error(by_task)


def _make_point(ability: Array, tasks: Array) -> Array:
    """Return a point of the chunk's own model: abilities, then the parameters of its tasks."""
    return np.concatenate([ability, unpack_retained(tasks)])


def _make_model(chunk: Chunk, spec: AbilitySpec) -> AbilityLikelihood:
    """Return the model of a chunk."""
    return AbilityLikelihood(chunk.crowd, chunk.gold, spec)
