"""Likelihood over chunks against the likelihood of the same votes in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.aggregate.categorical import _sharded_ability_likelihood as module
from wisecrowd.aggregate.categorical._ability_likelihood import AbilityLikelihood, AbilitySpec
from wisecrowd.aggregate.categorical._sharded_ability_likelihood import (
    ShardedAbilityLikelihood,
    TaskTables,
    make_task_table,
)
from wisecrowd.aggregate.categorical.two_pl import compute_two_pl_line, make_discrimination_column
from wisecrowd.base.checkpoints import CheckpointState
from wisecrowd.engines import StreamEngine
from wisecrowd.engines.distributed_vector import DistributedVector
from wisecrowd.engines.retained import pack_retained, read_retained
from wisecrowd.errors import UsageError

RNG = np.random.default_rng(3)
TASK, WORKER = np.nonzero(RNG.random((9, 4)) < 0.7)
CROWD = Crowd.from_codes(
    TASK,
    WORKER,
    RNG.integers(2, size=len(TASK)),
    tasks=[f"t{n}" for n in range(9)],
    workers=range(4),
    classes=["a", "b"],
)
SPEC = AbilitySpec(
    compute_two_pl_line, (1.0, 1.0), ((0.0, 1.0), (0.0, 0.5)), guess_prob=0.1, task_columns=make_discrimination_column
)
POINT = np.random.default_rng(4).normal(0.3, 0.5, 4 + 2 * 9)
PRIOR = np.array([0.4, 0.6])


@pytest.fixture
def whole() -> AbilityLikelihood:
    return AbilityLikelihood(CROWD, None, SPEC)


@pytest.fixture
def sharded(tmp_path: Path) -> ShardedAbilityLikelihood:
    return ShardedAbilityLikelihood(StreamEngine(CROWD.to_shards(tmp_path / "crowd", votes_per_shard=8)), SPEC)


def distribute(model: ShardedAbilityLikelihood, point: Any) -> DistributedVector:
    tasks = point[4:].reshape(2, 9)
    state = model.engine.retain(lambda chunk: pack_retained(tasks[:, CROWD.tasks.get_indexer(chunk.crowd.tasks)]))
    return DistributedVector.from_parts(model.engine, point[:4].copy(), state)


def collect(vector: DistributedVector) -> Any:
    """Return the coordinates in the order of a model in memory: a parameter of all tasks after the other."""
    parts = [np.reshape(part, (2, -1)) for part in vector.engine.map(read_retained, vector.chunk_values)]
    return np.concatenate([vector.shared, np.concatenate(parts, axis=1).ravel()])


def test_the_e_step_is_that_of_the_whole_crowd(whole: AbilityLikelihood, sharded: ShardedAbilityLikelihood) -> None:
    expected, actual = whole.e_step(POINT, PRIOR), sharded.e_step(distribute(sharded, POINT), PRIOR)
    assert actual.objective == pytest.approx(expected.objective, rel=1e-12)
    np.testing.assert_allclose(actual.class_counts, expected.class_counts)
    np.testing.assert_allclose(sharded.tally(actual.posterior), CROWD.layout.vote_matrix.T @ expected.posterior)
    assert sharded.n_chunks > 2


def test_gradient_and_curvature_are_those_of_the_whole_crowd(
    whole: AbilityLikelihood, sharded: ShardedAbilityLikelihood
) -> None:
    point = distribute(sharded, POINT)
    expected, actual = whole.e_step(POINT, PRIOR).posterior, sharded.e_step(point, PRIOR).posterior
    value, gradient = whole.expected_log_joint(POINT, expected)
    sharded_value, sharded_gradient = sharded.expected_log_joint(point, actual)
    assert sharded_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(collect(sharded_gradient), gradient, atol=1e-12)
    np.testing.assert_allclose(collect(sharded.curvature(point, actual)), whole.curvature(POINT, expected))


def test_standard_errors_are_those_of_the_whole_crowd(
    whole: AbilityLikelihood, sharded: ShardedAbilityLikelihood
) -> None:
    point = distribute(sharded, POINT)
    expected, actual = whole.e_step(POINT, PRIOR).posterior, sharded.e_step(point, PRIOR).posterior
    by_worker, by_task = sharded.standard_errors(point, actual)
    errors = np.concatenate([by_worker, collect(DistributedVector.from_parts(sharded.engine, by_worker, by_task))[4:]])
    np.testing.assert_allclose(errors, whole.standard_error(POINT, expected))


def test_a_start_without_a_posterior_is_that_of_the_whole_crowd(
    whole: AbilityLikelihood, sharded: ShardedAbilityLikelihood
) -> None:
    point, estimate = sharded.make_start(None)
    np.testing.assert_allclose(collect(point), whole.initial_point())
    expected = whole.initial_estimate(whole.initial_posterior())
    np.testing.assert_allclose(estimate.class_counts, expected.class_counts)
    table = pd.DataFrame(np.tile([0.25, 0.75], (9, 1)), index=CROWD.tasks[::-1], columns=["b", "a"])
    _, given = sharded.make_start(table)
    n_voted = np.count_nonzero(CROWD.votes_per_task)
    np.testing.assert_allclose(given.class_counts, [0.75 * n_voted, 0.25 * n_voted])


def test_a_point_survives_a_checkpoint(sharded: ShardedAbilityLikelihood) -> None:
    arrays = sharded.point_to_arrays(distribute(sharded, POINT))
    assert len(arrays["ends"]) == sharded.n_chunks
    np.testing.assert_array_equal(collect(sharded.point_from_state(CheckpointState(arrays))), POINT)


class TestTaskTables:
    def test_tables_of_shards_are_the_table_of_the_whole(self, sharded: ShardedAbilityLikelihood) -> None:
        point = distribute(sharded, POINT)
        tables = TaskTables(sharded.engine.crowd, SPEC, point.chunk_values, point.chunk_values)  # type: ignore[arg-type]
        parameters = POINT[4:].reshape(2, 9)
        expected = make_task_table(CROWD, SPEC, parameters, parameters)
        pd.testing.assert_frame_equal(tables.concatenate(), expected)
        np.testing.assert_array_equal(tables.read_parameters(), parameters)
        assert [len(table) for table in tables] == [shard.n_tasks for shard in sharded.engine.crowd.shard_infos]  # type: ignore[union-attr]
        assert expected.columns.tolist() == ["difficulty", "standard_error", "discrimination", "n_votes"]

    def test_a_table_beyond_memory_is_refused(
        self, sharded: ShardedAbilityLikelihood, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        point = distribute(sharded, POINT)
        tables = TaskTables(sharded.engine.crowd, SPEC, point.chunk_values, point.chunk_values)  # type: ignore[arg-type]
        monkeypatch.setattr(module, "MAX_COLLECTED_CELLS", 9)
        for read in (tables.concatenate, tables.read_parameters):
            with pytest.raises(
                UsageError, match="the table of 9 tasks would not fit in memory; read it shard by shard"
            ):
                read()
