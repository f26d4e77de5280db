"""Crowds for engines to agree about, and a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines.base import Engine, compute_chunk_posterior, tally_chunk
from wisecrowd.engines.local import LocalEngine


class Case(NamedTuple):
    """A crowd in which some tasks have no votes and some many, what is known of its truth, and parameters."""

    crowd: Crowd
    gold: Any
    prior: Any
    label_probs: Any

    @property
    def given(self) -> tuple[Any, Any]:
        return self.prior, self.label_probs

    def sharded(self, folder: Path, votes: int = 50) -> tuple[ShardedCrowd, Any]:
        """The same in shards, and what is known by shard."""
        sharded = self.crowd.to_shards(folder, votes_per_shard=votes)
        first = np.cumsum([0, *(part.n_tasks for part in sharded.shard_infos)])
        return sharded, None if self.gold is None else lambda number: self.gold[first[number] : first[number + 1]]

    def check(self, engine: Engine) -> None:
        """Sums, posteriors, and sums of posteriors that were kept are those of the crowd in memory."""
        local = LocalEngine(self.crowd, self.gold)
        found, wanted = engine.expect(*self.given), local.expect(*self.given)
        assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(found.class_counts, wanted.class_counts, rtol=1e-12)
        np.testing.assert_allclose(found.tally, wanted.tally, rtol=1e-11, atol=1e-12)
        assert found.posterior is None
        ours, theirs = (
            np.concatenate(list(each))
            for each in (e.map(compute_chunk_posterior, *self.given) for e in (engine, local))
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        again = engine.sum(tally_chunk, engine.retain(compute_chunk_posterior, *self.given))
        np.testing.assert_allclose(again, wanted.tally, rtol=1e-11, atol=1e-12)


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """A case by its seed and kind."""

    def made(
        seed: int,
        *,
        weighted: bool = False,
        workers: int = 12,
        clamped: bool = False,
        n_tasks: int = 60,
        votes: int = 400,
    ) -> Case:
        rng = np.random.default_rng(seed)
        crowd = Crowd.from_codes(
            np.minimum(rng.geometric(4 / n_tasks, size=votes), n_tasks) - 1,
            rng.integers(workers, size=votes) if workers else None, rng.integers(3, size=votes),
            tasks=[f"t{number}" for number in range(n_tasks)],
            workers=[f"w{number}" for number in range(workers)] if workers else None, classes=["cat", "dog", "owl"],
            weight=rng.gamma(2.0, size=votes) if weighted else None, duplicates="keep",
        )  # fmt: skip
        gold = rng.integers(-1, 3, size=n_tasks, dtype=np.int32) if clamped else None
        return Case(crowd, gold, rng.uniform(0.1, 1, size=3), rng.uniform(0.01, 1, size=(len(crowd.pairs), 3)))

    return made


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """Ray in a cluster of two cores, which takes seconds to start and is therefore shared."""
    import ray

    ray.init(
        "local", num_cpus=2, object_store_memory=150_000_000, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip
    yield ray
    ray.shutdown()
