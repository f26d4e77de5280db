"""Spread vectors against arrays, and how often they are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.em.gradient import maximize_lbfgs
from wisecrowd.engines import StreamEngine
from wisecrowd.engines.base import Chunk, ChunkState
from wisecrowd.engines.distributed_vector import DistributedVector, dot
from wisecrowd.engines.retained import pack_retained, read_retained


class Counting(StreamEngine):
    """Counts its passes."""

    passes = 0

    def sum(self, work: Any, *shared: Any) -> Any:
        self.passes += 1
        return super().sum(work, *shared)

    def retain(self, work: Any, *shared: Any) -> ChunkState:
        self.passes += 1
        return super().retain(work, *shared)


@pytest.fixture
def engine(tmp_path: Path) -> Counting:
    crowd = Crowd.from_triples([(task, "ann", "cat") for task in range(7)])
    return Counting(crowd.to_shards(tmp_path / "crowd", votes_per_shard=3))


def _part(chunk: Chunk, values: Any) -> Any:
    return pack_retained(values[chunk.crowd.tasks.to_numpy()], 0.5)  # beside something that adds up


def spread(engine: Counting, array: Any) -> DistributedVector:
    """The first two coordinates are shared, one of the others is beside each task."""
    return DistributedVector.from_parts(engine, array[:2], engine.retain(_part, array[2:]))


def array(vector: DistributedVector) -> Any:
    return np.concatenate([vector.shared, *vector.engine.map(read_retained, vector.chunk_values)])


def test_arithmetic_is_that_of_arrays(engine: Counting) -> None:
    a, b, c = np.random.default_rng(0).uniform(1, 2, (3, 9))
    x, y, z = (spread(engine, each) for each in (a, b, c))

    def formula(one: Any, two: Any, three: Any) -> Any:
        return np.float64(2) * one * two - three * 0.5 + (one - one) + 1 / np.sqrt(three) + two * two * one

    np.testing.assert_allclose(array(formula(x, y, z)), formula(a, b, c), rtol=1e-14)
    assert dot(formula(x, y, z), z - x * y) == pytest.approx(dot(formula(a, b, c), c - a * b), rel=1e-13)
    with pytest.raises(TypeError):
        np.add.reduce(x)  # type: ignore[call-overload]  # that is the point


def test_algebra_is_free_and_products_are_remembered(engine: Counting) -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 9))
    x, y = spread(engine, a), spread(engine, b)
    engine.passes = 0
    far = 3 * x - 2 * (y - x) * x
    assert engine.passes == 0
    assert dot(far, x) == pytest.approx(dot(3 * a - 2 * (b - a) * a, a))
    assert engine.passes == 1
    dot(x, 2 * far + far), dot(7 * x, far - x + x)
    assert engine.passes == 1
    dot(far, y)
    assert engine.passes == 2


@pytest.mark.parametrize("steps", [1, 3, 12])
def test_a_climb_goes_the_same_way(engine: Counting, steps: int) -> None:
    rng = np.random.default_rng(2)
    top, steep, start = rng.normal(size=9), rng.uniform(0.5, 50, 9), rng.normal(size=9)

    def hill(point: Any) -> tuple[float, Any]:  # neither round nor quite a parabola
        away = point - top
        return -float(np.sum(np.log(np.cosh(away)) * steep)) - np.sum(away) ** 2, -np.tanh(away) * steep - 2 * np.sum(
            away
        )

    def spread_hill(point: DistributedVector) -> tuple[float, DistributedVector]:
        value, gradient = hill(array(point))
        return value, spread(engine, gradient)

    found = maximize_lbfgs(spread_hill, spread(engine, start), spread(engine, 0 * steep + 9), steps)
    np.testing.assert_allclose(array(found), maximize_lbfgs(hill, start, 0 * steep + 9, steps), rtol=0, atol=1e-9)
