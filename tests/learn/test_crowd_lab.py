"""CROWDLAB: the numbers of cleanlab, without its tasks x workers table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, CrowdLab, MajorityVote, simulate_crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.learn.crowd_lab import _choose_majority, _MergedVotes

# Some votes with ties that the classifier breaks (task 3), or cannot (task 7), a task with a single vote (5), and one on
# which the classifier is overruled (9).
LABELS = np.array([
    [0, 0, 0, -1], [1, 1, 1, 2], [2, 2, -1, 2], [0, 1, -1, -1], [-1, 2, 2, 0],
    [1, -1, -1, -1], [2, 2, 2, 1], [1, 2, -1, -1], [0, 0, -1, 0], [-1, -1, 1, 1],
])  # fmt: skip
PREDICTED = np.array([
    [0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3],
    [0.6, 0.3, 0.1], [0.1, 0.4, 0.5], [0.2, 0.4, 0.4], [0.8, 0.1, 0.1], [0.3, 0.3, 0.4],
])  # fmt: skip
X = np.arange(10.0)[:, None]


def crowd_of(labels: np.ndarray[tuple[int, int], np.dtype[np.int_]], n_classes: int = 3) -> Crowd:
    task, worker = np.nonzero(labels >= 0)
    return Crowd.from_codes(task, worker, labels[task, worker], tasks=range(len(labels)), workers=range(labels.shape[1]),
                 classes=range(n_classes))  # fmt: skip


CROWD = crowd_of(LABELS)


def test_the_numbers_of_cleanlab() -> None:
    fitted = CrowdLab(pred_probs=PREDICTED).fit(X, CROWD)
    # Computed by get_label_quality_multiannotator(LABELS with NaN for -1, PREDICTED) of cleanlab 2.9.0.
    assert fitted.tasks_["consensus"].tolist() == [0, 1, 2, 1, 2, 1, 2, 1, 0, 1]
    quality = [0.757036372, 0.675496292, 0.798208953, 0.518245862, 0.543100225,
               0.46380522, 0.675496292, 0.432500379, 0.798208953, 0.469004478]  # fmt: skip
    np.testing.assert_allclose(fitted.tasks_["quality"], quality, atol=1e-9)
    np.testing.assert_allclose(fitted.tasks_["agree"], [1, 0.75, 1, 0.5, 2 / 3, 1, 0.75, 0.5, 1, 1], atol=1e-9)
    assert fitted.tasks_["n_votes"].tolist() == [3, 4, 3, 2, 3, 1, 4, 2, 3, 2]
    np.testing.assert_allclose(
        fitted.workers_["quality"], [0.738775915, 0.760185399, 0.810175199, 0.481187986], atol=1e-9
    )
    np.testing.assert_allclose(fitted.workers_["weight"], [0.485714286, 0.4375, 0.509090909, 1e-6], atol=1e-9)
    assert fitted.model_weight_ == pytest.approx(0.9859006035)


def slowly(
    crowd: Crowd, expected: np.ndarray[tuple[int, int], np.dtype[np.float64]], consensus: list[int]
) -> list[list[float]]:
    """The posterior of the docstring's formulas, vote by vote."""
    votes: dict[int, dict[int, int]] = {task: {} for task in range(crowd.n_tasks)}
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        votes[task][worker] = label
    shared = [task for task in votes if len(votes[task]) > 1]
    n_classes = crowd.n_classes
    commonest = max(range(n_classes), key=[consensus[task] for task in shared].count)
    naive = np.mean([consensus[task] != commonest for task in shared])
    agree = [np.mean([label == consensus[task] for label in votes[task].values()]) for task in shared]
    worker_weight = {}
    for worker in range(crowd.n_workers):
        met = [votes[task][worker] == label for task in votes if worker in votes[task]
               for other, label in votes[task].items() if other != worker]  # fmt: skip
        worker_weight[worker] = max(1e-6, 1 - (1 - np.mean(met)) / naive)
    wrong = np.mean([int(expected[task].argmax()) != consensus[task] for task in shared])
    weight = max(1e-6, 1 - wrong / naive) * np.sqrt(np.mean([len(said) for said in votes.values()]))
    likely = np.mean(agree)
    found = []
    for task, said in votes.items():
        row = weight * expected[task]
        for worker, label in said.items():
            row = row + worker_weight[worker] * np.where(
                np.arange(n_classes) == label, likely, (1 - likely) / (n_classes - 1)
            )
        found.append((row / row.sum()).tolist())
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_formulas_vote_by_vote(seed: int) -> None:
    made = simulate_crowd(40, 6, 4, votes_per_task=(2, 4), workers={"expert": 3, "noisy": 3}, random_state=seed)
    crowd = Crowd.from_codes(
        made.crowd.task, made.crowd.worker, made.crowd.label, tasks=range(40), workers=range(6), classes=range(4)
    )
    expected = np.random.default_rng(seed).dirichlet(np.ones(4), size=40)
    fitted = CrowdLab(pred_probs=expected).fit(np.arange(40.0)[:, None], crowd)
    np.testing.assert_allclose(fitted.posterior_, slowly(crowd, expected, fitted.consensus_.tolist()), atol=1e-12)


def test_ties_go_to_the_classifier_then_the_rarer_class_then_the_better_workers() -> None:
    even, inclined = np.full((4, 2), 0.5), np.array([[0.5, 0.5]] * 3 + [[0.6, 0.4]])
    rows = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 0], [0, -1, 1]])
    assert _choose_majority(_MergedVotes(crowd_of(rows, 2)), inclined).tolist() == [0, 1, 0, 0]
    assert _choose_majority(_MergedVotes(crowd_of(rows, 2)), even).tolist() == [0, 1, 0, 1]  # class 1 is rarer
    # Both classes are as frequent: the third worker was right where it is clear, the first was wrong.
    rows = np.array([[1, 0, 0], [0, 1, 1], [-1, 0, 1], [0, -1, 1]])
    assert _choose_majority(_MergedVotes(crowd_of(rows, 2)), even)[3] == 1
    rows = np.array([[1, 1, 0], [0, 0, 1], [-1, 0, 1], [0, -1, 1]])
    assert _choose_majority(_MergedVotes(crowd_of(rows, 2)), even)[3] == 0


def test_a_worker_who_meets_nobody_is_taken_for_an_average_one() -> None:
    alone = np.vstack([np.hstack([LABELS, np.full((10, 1), -1)]), [[-1, -1, -1, -1, 2]]])
    fitted = CrowdLab(pred_probs=np.vstack([PREDICTED, [[0.2, 0.2, 0.6]]])).fit(
        np.arange(11.0)[:, None], crowd_of(alone)
    )
    assert fitted.workers_["agreement"].iloc[4] == pytest.approx(fitted.workers_["agreement"].iloc[:4].mean())
    assert fitted.workers_["quality"].iloc[4] == pytest.approx(fitted.posterior_[10, 2])
    assert np.isfinite(fitted.workers_).all(axis=None)


def test_one_label_per_task_is_refused_with_advice() -> None:
    single = Crowd.from_triples([(task, task % 3, task % 2) for task in range(12)])
    with pytest.raises(InputError, match="no task has votes of two workers; use raykar or concord"):
        CrowdLab().fit(np.eye(12), single)


MADE = simulate_crowd(300, 20, 3, votes_per_task=3, workers={"expert": 4, "noisy": 10, "spammer": 6})
SHIFT = 1.5 * np.eye(3)[MADE.crowd.classes.get_indexer(MADE.truth)]
FEATURES = pd.DataFrame(SHIFT + np.random.default_rng(0).normal(size=(300, 3)), index=MADE.truth.index)


def test_it_does_better_than_either_votes_or_features() -> None:
    fitted = CrowdLab().fit(FEATURES, MADE.crowd)
    right = (fitted.labels_ == MADE.truth).mean()
    assert right > (MajorityVote().fit(MADE.crowd).labels_ == MADE.truth).mean() + 0.02
    assert right > (MADE.crowd.classes[fitted.pred_probs_.argmax(axis=1)] == MADE.truth).mean() + 0.02
    experts = fitted.workers_["quality"][MADE.kind == "expert"]
    assert experts.min() > fitted.workers_["quality"][MADE.kind == "spammer"].max()
    assert fitted.score(FEATURES, MADE.truth) > 0.7


def test_nobody_judges_a_task_that_he_has_seen() -> None:
    # A classifier that knows every task it saw by heart would echo its votes.
    by_heart = np.eye(300)
    fitted = CrowdLab(l2=1e-3).fit(pd.DataFrame(by_heart, index=MADE.truth.index), MADE.crowd)
    share = MADE.crowd.vote_counts / MADE.crowd.vote_counts.sum(axis=1, keepdims=True)
    clear = share.max(axis=1) == 1
    assert (fitted.pred_probs_[clear].argmax(axis=1) == share[clear].argmax(axis=1)).mean() < 0.6


def test_gold_teaches_who_is_right() -> None:
    truth = {7: 2, 4: 0}
    fitted = CrowdLab(pred_probs=PREDICTED).fit(X, CROWD, truth=truth)
    assert fitted.tasks_["consensus"][[7, 4]].tolist() == [2, 0]
    plain = CrowdLab(pred_probs=PREDICTED).fit(X, CROWD)
    assert fitted.workers_["quality"][3] > plain.workers_["quality"][3]  # who alone said 0 of task 4


def test_predictions_of_one_s_own_are_checked_and_aligned() -> None:
    table = pd.DataFrame(PREDICTED, columns=[0, 1, 2])
    wanted = CrowdLab(pred_probs=PREDICTED).fit(X, CROWD).posterior_
    mixed = table.iloc[::-1, [2, 0, 1]]
    np.testing.assert_array_equal(CrowdLab(pred_probs=mixed).fit(X, CROWD).posterior_, wanted)
    for wrong, message in [
        (PREDICTED[:, :2], r"must be of shape \(10, 3\), tasks x classes; got \(10, 2\)"),
        (PREDICTED[:9], "one row of features for each of 10 tasks; got 9 rows"),
        (PREDICTED * 2, "must be probabilities"),
        (table[[0, 1]], "a column for each class"),
        (table.assign(x=0.0), "and no other"),
    ]:
        with pytest.raises(InputError, match=message):
            CrowdLab(pred_probs=wrong).fit(X, CROWD)


@pytest.mark.parametrize("cv", [0, 1, 11])
def test_folds(cv: int) -> None:
    with pytest.raises(UsageError, match=f"cv must be from 2 to the number of labelled tasks, 10; got {cv}"):
        CrowdLab(cv=cv).fit(X, CROWD)
