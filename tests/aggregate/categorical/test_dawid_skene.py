"""Dawid-Skene against the plain iteration on dense tables. `tests/em/test_confusion.py` has the loop."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_plain_iteration_on_dense_tables(weighted: bool) -> None:
    """Equations 2.3 to 2.5 of the paper, with pseudo-votes."""
    crowd = simulate_crowd(40, 6, 3, votes_per_task=4, random_state=0).crowd
    if weighted:
        weight = np.random.default_rng(0).uniform(0.5, 2, crowd.n_votes)
        crowd = Crowd.from_frame(crowd.to_frame().assign(weight=weight), weight="weight")
    votes = np.zeros((crowd.n_tasks, crowd.n_workers, 3))
    votes[crowd.task, crowd.worker, crowd.label] = crowd.weight
    posterior = votes.sum(axis=1) / votes.sum(axis=(1, 2))[:, None]
    for _ in range(5):
        counts = np.einsum("ik,irl->rkl", posterior, votes) + 0.2 + 1.5 * np.eye(3)
        confusion = counts / counts.sum(axis=2, keepdims=True)
        prior = posterior.mean(axis=0)
        joint = np.exp(np.einsum("irl,rkl->ik", votes, np.log(confusion))) * prior
        posterior = joint / joint.sum(axis=1, keepdims=True)
    # The posterior after the last iteration is computed from its parameters, which is a fifth E-step.
    fitted = DawidSkene(smoothing=0.2, diagonal=1.5, max_iter=4, tol=0, accelerate=False).fit(crowd)
    np.testing.assert_allclose(fitted.posterior_, posterior, atol=1e-9)
    np.testing.assert_allclose(fitted.prior_, prior, atol=1e-9)


def test_bias_and_adversaries_are_seen_through() -> None:
    """An adversary who always swaps two classes is as informative as an expert."""
    kinds = ["expert"] * 3 + ["adversary"] * 2
    made = simulate_crowd(300, workers=kinds, n_classes=2, votes_per_task=5, random_state=0)
    fitted = DawidSkene().fit(made.crowd)
    assert accuracy(made.truth, MajorityVote().fit(made.crowd)) < 0.92
    assert accuracy(made.truth, fitted) > 0.95
    assert fitted.workers_["accuracy"].tolist() == pytest.approx(made.accuracy.tolist(), abs=0.1)


def test_starts_by_votes_and_by_spectral_statistics_agree_on_easy_crowds() -> None:
    crowd = simulate_crowd(300, 12, 3, votes_per_task=8, random_state=1).crowd
    by_votes, spectral = DawidSkene().fit(crowd), DawidSkene(init="spectral").fit(crowd)
    assert spectral.trace_[0] != by_votes.trace_[0]
    np.testing.assert_allclose(spectral.posterior_, by_votes.posterior_, atol=1e-2)


def test_an_unknown_start_is_refused() -> None:
    crowd = simulate_crowd(20, 4, 2, votes_per_task=3, random_state=1).crowd
    with pytest.raises(UsageError, match="init"):
        DawidSkene(init="best").fit(crowd)  # type: ignore[arg-type]
