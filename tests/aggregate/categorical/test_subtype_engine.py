from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.aggregate.categorical import _subtype_engine
from wisecrowd.aggregate.categorical._subtype_engine import SubtypeEngine
from wisecrowd.engines.base import Chunk, compute_chunk_posterior, tally_chunk
from wisecrowd.engines.local import LocalEngine


def tables(crowd: Crowd, n_subtypes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n_columns = crowd.n_classes * n_subtypes
    return rng.dirichlet(np.ones(n_columns)), rng.uniform(0.05, 0.95, (len(crowd.pairs), n_columns))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_columns_are_added_up_to_classes(weighted: bool, compiled: bool) -> None:
    crowd = simulate_crowd(50, 8, 3, votes_per_task=4, random_state=0).crowd
    if weighted:
        crowd = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers,
                      classes=crowd.classes, weight=np.linspace(0.2, 3, crowd.n_votes))  # fmt: skip
    prior, label_probs = tables(crowd, 4)
    plain, split = LocalEngine(crowd), SubtypeEngine(crowd, compiled=compiled, n_subtypes=4)
    wanted, found = plain.expect(prior, label_probs), split.expect(prior, label_probs)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood)
    np.testing.assert_allclose(found.class_counts, wanted.class_counts)
    np.testing.assert_allclose(found.tally, wanted.tally)
    columns = compute_chunk_posterior(Chunk(crowd), prior, label_probs)
    np.testing.assert_allclose(split.compute_posterior(prior, label_probs), columns.reshape(-1, 3, 4).sum(axis=2))


@pytest.mark.parametrize("weighted", [False, True])
def test_gold_leaves_the_subtype_open(weighted: bool) -> None:
    made = simulate_crowd(30, 6, 2, votes_per_task=3, random_state=1)
    weight = np.linspace(0.5, 2, made.crowd.n_votes) if weighted else None
    crowd = Crowd.from_codes(made.crowd.task, made.crowd.worker, made.crowd.label, tasks=[*made.crowd.tasks, "unseen"],
                  workers=made.crowd.workers, classes=made.crowd.classes, weight=weight)  # fmt: skip
    gold = np.full(31, -1, dtype=np.int32)
    gold[[0, 7, 29, 30]] = [1, 0, 1, 1]
    prior, label_probs = tables(crowd, 3)
    engine = SubtypeEngine(crowd, gold, n_subtypes=3)
    columns = compute_chunk_posterior(Chunk(crowd), prior, label_probs)[:30].reshape(-1, 2, 3)
    known = np.flatnonzero(gold[:30] >= 0)
    own = columns[known, gold[known]]
    columns[known] = 0
    columns[known, gold[known]] = own / own.sum(axis=1, keepdims=True)
    found = engine.expect(prior, label_probs)
    np.testing.assert_allclose(found.class_counts, columns.sum(axis=0).ravel(), atol=1e-12)
    np.testing.assert_allclose(
        found.tally, tally_chunk(Chunk(crowd), np.vstack([columns.reshape(30, -1), np.zeros((1, 6))])), atol=1e-12
    )
    posterior = engine.compute_posterior(prior, label_probs)
    assert (posterior[known] == np.eye(2)[gold[known]]).all()
    assert posterior[30].tolist() == [0, 1], "also where nobody voted"
    np.testing.assert_allclose(posterior[:30], columns.sum(axis=2), atol=1e-12)


def test_leaving_out_faint_columns_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = simulate_crowd(50, 8, 2, votes_per_task=4, random_state=2).crowd
    prior, label_probs = tables(crowd, 5)
    prior[[1, 2, 7]] = 1e-60
    left_out = SubtypeEngine(crowd, n_subtypes=5).expect(prior, label_probs)
    monkeypatch.setattr(_subtype_engine, "MIN_COLUMN_WEIGHT", 0.0)
    kept = SubtypeEngine(crowd, n_subtypes=5).expect(prior, label_probs)
    assert (left_out.class_counts[[1, 2, 7]] == 0).all()
    assert left_out.log_likelihood == pytest.approx(kept.log_likelihood)
    np.testing.assert_allclose(left_out.tally, kept.tally, atol=1e-12)


@pytest.mark.slow
def test_columns_that_only_fill_up_never_win() -> None:
    """Four hundred votes on one task: every real column is far below what a number can hold."""
    crowd = Crowd.from_triples([(0, worker, "ab"[worker % 2]) for worker in range(400)])
    prior, label_probs = tables(crowd, 3)
    found = SubtypeEngine(crowd, compiled=True, n_subtypes=3).compute_posterior(prior, label_probs * 1e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(
        found, SubtypeEngine(crowd, n_subtypes=3).compute_posterior(prior, label_probs), atol=1e-9
    )
