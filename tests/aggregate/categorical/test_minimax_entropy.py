from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from wisecrowd import Crowd, DawidSkene, MajorityVote, MinimaxEntropy, load_dataset, simulate_crowd
from wisecrowd.aggregate.categorical import minimax_entropy
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.utils.slices import slice_rows


def test_the_first_m_step_is_the_one_that_loops_over_workers_and_tasks() -> None:
    """Written out vote by vote and left to scipy, as a reader of the paper would."""
    crowd = simulate_crowd(8, 4, 2, votes_per_task=3, random_state=0).crowd
    q = compute_vote_shares(crowd)
    worker_ridge, task_ridge = 0.25 * 4, 0.25 * 4 * 8 / 4

    def minus_q(point: np.ndarray) -> float:
        t, s = point[:16].reshape(4, 2, 2), point[16:].reshape(8, 2, 2)
        total = -0.5 * worker_ridge * (t**2).sum() - 0.5 * task_ridge * (s**2).sum()
        for i, r, y in zip(crowd.task, crowd.worker, crowd.label, strict=True):
            for k in range(2):
                logits = t[r, k] + s[i, k]
                total += q[i, k] * (logits[y] - np.log(np.exp(logits).sum()))
        return -total

    wanted = minimize(minus_q, np.zeros(48), method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-14}).x
    fitted = MinimaxEntropy(max_iter=1, tol=0, m_steps=200).fit(crowd)
    np.testing.assert_allclose(fitted.worker_scores_.ravel(), wanted[:16], atol=1e-4)


def test_without_task_terms_it_is_a_confusion_matrix_for_every_worker() -> None:
    crowd = simulate_crowd(400, 10, 2, votes_per_task=8, workers=["noisy(0.75)"] * 10, random_state=1).crowd
    alone = MinimaxEntropy(gamma=1e-6, task_gamma=np.inf, tol=1e-11, max_iter=1000, m_steps=20).fit(crowd)
    matrices = DawidSkene(smoothing=0, diagonal=0, prior="uniform", tol=1e-12, max_iter=2000).fit(crowd)
    np.testing.assert_allclose(alone.posterior_, matrices.posterior_, atol=1e-3)
    label_probs = np.exp(alone.worker_scores_)
    np.testing.assert_allclose(label_probs / label_probs.sum(axis=2, keepdims=True), matrices.confusion_, atol=1e-3)


def test_a_task_that_misleads_everybody_is_found_out() -> None:
    made = simulate_crowd(60, 30, 3, votes_per_task=20, workers=["noisy(0.95)"] * 30, random_state=2)
    misled = made.crowd.task == 0
    wrong = (made.truth_codes[0] + 1) % 3
    label = np.where(misled & (np.arange(made.crowd.n_votes) % 5 < 2), wrong, made.crowd.label)
    crowd = Crowd.from_codes(made.crowd.task, made.crowd.worker, label, tasks=made.crowd.tasks, workers=made.crowd.workers,
                  classes=made.crowd.classes)  # fmt: skip
    tasks = MinimaxEntropy().fit(crowd).tasks_
    assert tasks["difficulty"].idxmax() == crowd.tasks[0]
    assert tasks["difficulty"].between(0, 1).all()


def test_more_labels_make_a_better_answer() -> None:
    found = []
    for labels in (2, 6, 18):
        made = simulate_crowd(200, 30, 3, votes_per_task=labels, random_state=3)
        found.append(accuracy(made.truth, MinimaxEntropy().fit(made.crowd)))
    assert found == sorted(found)
    assert found[-1] > 0.97


def test_blocks_of_votes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = simulate_crowd(50, 10, 3, votes_per_task=5, random_state=4).crowd
    for terms in ("matrix", "vector"):
        whole = MinimaxEntropy(task_terms=terms).fit(crowd)
        with monkeypatch.context() as patch:
            patch.setattr(minimax_entropy, "slice_rows", lambda rows, columns: slice_rows(rows, columns, max_cells=200))
            cut = MinimaxEntropy(task_terms=terms).fit(crowd)
        np.testing.assert_allclose(cut.posterior_, whole.posterior_, atol=1e-8)
        np.testing.assert_allclose(cut.tasks_, whole.tasks_, atol=1e-8)


def test_a_ridge_that_outweighs_the_votes_leaves_nothing() -> None:
    """The danger that the docstring names, and its cure."""
    crowd = simulate_crowd(60, 10, 8, votes_per_task=4, workers=["expert"] * 10, random_state=5).crowd
    assert MinimaxEntropy().fit(crowd).posterior_.max() < 0.2
    mild = MinimaxEntropy(gamma=0.001).fit(crowd)
    assert (mild.labels_ == MajorityVote().fit(crowd).labels_).mean() > 0.9


def test_refusals() -> None:
    crowd = Crowd.from_triples([("t", "w", "a"), ("t", "v", "b")])
    with pytest.raises(UsageError, match="must be positive"):
        MinimaxEntropy(gamma=0).fit(crowd)
    with pytest.raises(UsageError, match="must be positive"):
        MinimaxEntropy(task_gamma=-1).fit(crowd)
    with pytest.raises(UsageError, match="task_terms"):
        MinimaxEntropy(task_terms="tensor").fit(crowd)  # type: ignore[arg-type]
    wide = Crowd.from_codes([0], [0], [0], tasks=range(3000), workers=[0], classes=range(300))
    with pytest.raises(UsageError, match="task_terms='vector'"):
        MinimaxEntropy().fit(wide)


#: Zheng et al. (2017), table 6, which has .5759 on the relevance judgements, too: .577 here, in a quarter of a minute.
PUBLISHED = {"product_matching": 0.8409, "d_possent": 0.9580}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, MinimaxEntropy().fit(data.crowd)) == pytest.approx(PUBLISHED[name], abs=0.003)
