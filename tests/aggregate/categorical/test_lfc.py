from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import LFC, Crowd, DawidSkene, load, load_dataset, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy

SMALL = Crowd.from_triples(
    [
        ("t1", "ann", "a"),
        ("t1", "bob", "b"),
        ("t2", "ann", "b"),
        ("t2", "bob", "b"),
        ("t3", "bob", "a"),
        ("t3", "cy", "a"),
    ]
)


def test_without_a_belief_about_classes_it_is_dawid_and_skenes_model() -> None:
    crowd = simulate_crowd(200, 15, 3, votes_per_task=4, random_state=0).crowd
    believing, plain = LFC(class_votes=0).fit(crowd), DawidSkene().fit(crowd)
    np.testing.assert_allclose(believing.posterior_, plain.posterior_, atol=1e-9)
    # The objectives leave out different constants.
    assert np.ptp(believing.trace_ - plain.trace_) < 1e-6


def test_a_table_of_pseudo_votes_takes_the_place_of_the_two_numbers() -> None:
    crowd = simulate_crowd(100, 10, 3, votes_per_task=4, random_state=1).crowd
    table = 0.3 + 1.5 * np.eye(3)
    numbers = LFC(smoothing=0.3, diagonal=1.5).fit(crowd)
    for expected in (table, table.tolist(), pd.DataFrame(table, index=crowd.classes, columns=crowd.classes)):
        found = LFC(expected=expected).fit(crowd)
        np.testing.assert_allclose(found.posterior_, numbers.posterior_, atol=1e-9)
        pd.testing.assert_frame_equal(found.workers_, numbers.workers_)


def test_a_named_table_is_read_by_name_not_by_place() -> None:
    table = pd.DataFrame([[9.0, 1.0], [4.0, 6.0]], index=["b", "a"], columns=["b", "a"])
    named, placed = LFC(expected=table).fit(SMALL), LFC(expected=[[6, 4], [1, 9]]).fit(SMALL)
    np.testing.assert_array_equal(named.posterior_, placed.posterior_)


def test_the_objective_is_likelihood_times_prior_by_brute_force() -> None:
    """Up to one constant, over different parameters: the Dirichlet densities are written out, the truths enumerated."""
    expected, votes = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([2.0, 1.0])
    gaps = []
    for passes in (1, 2, 5):
        method = LFC(expected=expected, class_votes=votes, max_iter=passes, tol=0, accelerate=False).fit(SMALL)
        before = LFC(expected=expected, class_votes=votes, max_iter=max(passes - 1, 1), tol=0, accelerate=False)
        if passes == 1:
            continue
        before.fit(SMALL)  # its final parameters are those that the last entry of the longer trace was computed for
        confusion, prior = before.confusion_, before.prior_
        likelihood = 0.0
        for truths in itertools.product(range(2), repeat=SMALL.n_tasks):
            joint = np.prod(prior[list(truths)])
            joint *= np.prod(confusion[SMALL.worker, np.array(truths)[SMALL.task], SMALL.label])
            likelihood += joint
        density = (expected * np.log(confusion)).sum() + (votes * np.log(prior)).sum()
        gaps.append(method.trace_[-1] - np.log(likelihood) - density)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)


def test_a_strong_belief_about_classes_wins_over_few_tasks_and_yields_to_many() -> None:
    made = simulate_crowd(2000, 20, 2, votes_per_task=5, prior=[0.5, 0.5], workers=["noisy(0.8)"] * 20, random_state=2)
    shares = [LFC(class_votes=[90, 10]).fit(made.crowd[:n]).prior_[0] for n in (10, 100, 2000)]
    assert shares[0] > 0.8
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] == pytest.approx(0.5, abs=0.06)


def test_a_true_belief_about_errors_helps_where_workers_have_few_labels() -> None:
    """Everybody takes a third of the dogs for wolves; ten votes each are too few to find that out alone."""
    confusion = np.tile([[0.62, 0.38], [0.02, 0.98]], (120, 1, 1))
    made = simulate_crowd(300, 120, 2, votes_per_task=3, workers=confusion, random_state=3)
    informed = LFC(expected=10 * confusion[0]).fit(made.crowd)
    assert accuracy(made.truth, informed) > accuracy(made.truth, LFC().fit(made.crowd)) + 0.02


def test_confusion_is_found_the_better_the_more_labels() -> None:
    errors = []
    for n_tasks in (60, 600, 6000):
        made = simulate_crowd(n_tasks, 12, 3, votes_per_task=5, workers=["noisy(0.7)"] * 12, random_state=4)
        errors.append(np.abs(LFC().fit(made.crowd).confusion_ - made.confusion).mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_beliefs_survive_the_disk(tmp_path: Path) -> None:
    LFC(expected=np.array([[6.0, 4.0], [1.0, 9.0]])).fit(SMALL).save(tmp_path / "model")
    assert load(tmp_path / "model").predict(SMALL)["t2"] == "b"  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [[[1, 2]], [[1, -1], [1, 1]], [[1, np.nan], [1, 1]], np.ones((3, 3))])
def test_a_wrong_table_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="2 x 2 non-negative numbers"):
        LFC(expected=wrong).fit(SMALL)


@pytest.mark.parametrize("wrong", [-1, [1, 2, 3], [1, -2], np.inf])
def test_wrong_class_votes_are_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="class_votes must be one non-negative number, or 2"):
        LFC(class_votes=wrong).fit(SMALL)


#: Zheng et al. (2017), table 6; their program is maximum likelihood stopped after 20 passes.
PUBLISHED = {"product_matching": 0.9373, "d_possent": 0.9600, "trec2010_rf": 0.6164}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    theirs = LFC(smoothing=1e-9, diagonal=0, class_votes=0, max_iter=20, tol=0, accelerate=False)
    for method in (theirs, LFC()):
        assert accuracy(data.truth, method.fit(data.crowd)) == pytest.approx(PUBLISHED[name], abs=0.005)
