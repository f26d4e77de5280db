"""M-MSR: robust completion of the matrix of agreements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd import MMSR, Crowd, OneCoin, load_dataset
from wisecrowd.aggregate.categorical._pairwise_agreement import PairwiseAgreement
from wisecrowd.aggregate.categorical.mmsr import _compute_relative_change, _TrimmedMean
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.metrics import accuracy, worker_correlation, worker_error
from wisecrowd.simulate import simulate_crowd


def trimmed(values: NDArray[np.float64], present: float, trim: int) -> float:
    """Leave out up to ``trim`` values above the present one, the largest first, and up to ``trim`` below it."""
    ordered = np.sort(values)
    low = min(trim, int((ordered < present).sum()))
    high = len(ordered) - min(trim, int((ordered > present).sum()))
    return float(ordered[low:high].mean()) if high > low else present


@pytest.mark.parametrize("trim", [0, 1, 2, 5])
def test_all_trimmed_means_at_once_are_those_of_each_worker(trim: int) -> None:
    crowd = simulate_crowd(40, 9, 2, votes_per_task=4, random_state=1).crowd
    pairs = PairwiseAgreement.from_crowd(crowd)
    rng = np.random.default_rng(trim)
    means = _TrimmedMean(pairs, trim)
    for _ in range(3):  # the order of the call before must not matter
        value, present = rng.exponential(size=len(pairs)), rng.exponential(size=9)
        wanted = [trimmed(value[pairs.first == worker], present[worker], trim) for worker in range(9)]
        np.testing.assert_allclose(means(value, present), wanted)


def test_the_compute_relative_change_is_that_of_the_matrices() -> None:
    rng = np.random.default_rng(0)
    u, v, old_u, old_v = rng.random((4, 12))
    wanted = np.linalg.norm(np.outer(u, v) - np.outer(old_u, old_v)) / np.linalg.norm(np.outer(u, v))
    assert _compute_relative_change(u, v, old_u, old_v) == pytest.approx(wanted)
    near = _compute_relative_change(u * (1 + 1e-11), v, u, v)
    assert near == pytest.approx(1e-11, rel=1e-3)  # squares of norms would have lost it


def test_skills_are_found_ever_better_with_more_tasks() -> None:
    errors = []
    for tasks in (200, 1000, 8000):
        made = simulate_crowd(tasks, 15, 3, votes_per_task=8, workers={"noisy(0.45, 0.95)": 15}, random_state=2)
        skill = (3 * made.accuracy - 1) / 2
        errors.append(worker_error(skill, MMSR().fit(made.crowd).workers_["skill"]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_conspirators_who_always_agree_do_not_carry_the_vote() -> None:
    # Five of thirteen give the same random answers: to the others they are guessers, to each other perfect.
    rng = np.random.default_rng(3)
    truth, joint = rng.integers(2, size=(2, 1000))
    own = np.where(rng.random((8, 1000)) < 0.65, truth, 1 - truth)
    label_probs = np.vstack([own, np.tile(joint, (5, 1))])
    crowd = Crowd.from_triples([(t, f"w{w:02d}", int(label_probs[w, t])) for t in range(1000) for w in range(13)])
    known = dict(enumerate(truth.tolist()))
    fitted = MMSR().fit(crowd)
    assert fitted.workers_["skill"][:8].min() > fitted.workers_["skill"][8:].abs().max()
    assert accuracy(known, fitted) > 0.7
    assert accuracy(known, MMSR(trim=0).fit(crowd)) < accuracy(known, fitted) - 0.05
    assert accuracy(known, OneCoin().fit(crowd)) < 0.6  # its likelihood is best served by believing the five


def test_gold_outvotes_a_majority_of_adversaries() -> None:
    made = simulate_crowd(300, 9, 2, votes_per_task=9, workers={"noisy(0.8)": 4, "adversary(0.8)": 5}, random_state=4)
    assert accuracy(made.truth, MMSR().fit(made.crowd)) < 0.2
    fitted = MMSR().fit(made.crowd, truth=made.truth.iloc[:50])
    assert accuracy(made.truth.iloc[50:], fitted) > 0.8
    assert ((fitted.workers_["skill"] > 0) == (made.kind == "noisy(0.8)")).all()


def test_a_worker_who_shares_no_task_gets_the_mean_skill() -> None:
    votes = [(task, worker, (task * worker) % 2) for task in range(8) for worker in (1, 3, 5)]
    fitted = MMSR().fit(Crowd.from_triples([*votes, (99, 7, 1)]))
    others = fitted.workers_["skill"].drop(7)
    assert fitted.workers_.loc[7, "skill"] == pytest.approx(others.mean())
    assert fitted.labels_[99] == 1


def test_a_worker_without_votes_changes_nothing() -> None:
    crowd = simulate_crowd(100, 8, 2, votes_per_task=5, random_state=6).crowd
    more = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=[*crowd.workers, "idle"],
                 classes=crowd.classes)  # fmt: skip
    np.testing.assert_allclose(MMSR().fit(more).skill_[:-1], MMSR().fit(crowd).skill_, atol=1e-12)


def test_parameters_are_checked_and_haste_is_reported() -> None:
    crowd = simulate_crowd(100, 8, 2, votes_per_task=5, random_state=5).crowd
    with pytest.warns(NotConverged, match="stopped after 1 iterations.*set trim=0"):
        MMSR(max_iter=1).fit(crowd)
    for bad in (MMSR(max_iter=0), MMSR(trim=-1)):
        with pytest.raises(UsageError, match="trim"):
            bad.fit(crowd)


# Everybody labelled every bird, so that no pair is unobserved and Crowd-Kit's signs are right: the same accuracy.
# On sentiment it publishes .937; its magnitudes are these, but two workers who share no task count as disagreeing.
@pytest.mark.data
@pytest.mark.parametrize(("name", "wanted"), [("bluebirds", 0.7130), ("d_possent", 0.945), ("product_matching", 0.926)])
def test_reference_accuracies(name: str, wanted: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    fitted = MMSR().fit(data.crowd)
    assert accuracy(data.truth, fitted) == pytest.approx(wanted, abs=0.001)
    if name == "d_possent":
        crowd, truth = data.crowd, data.truth
        right = crowd.classes[crowd.label].to_numpy() == truth.reindex(crowd.tasks).to_numpy()[crowd.task]
        known = fitted.workers_["skill"].copy()
        known[:] = np.bincount(crowd.worker, right) / crowd.votes_per_worker
        assert worker_correlation(known, fitted.workers_["skill"]) > 0.9
