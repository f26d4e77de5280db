"""Diagnosis of tasks."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, simulate_crowd
from wisecrowd.base.registry import find, method_modules
from wisecrowd.diagnose import diagnose_crowd
from wisecrowd.diagnose.margins import aum, waum
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis, compute_label_moments
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, WisecrowdError


def test_entropy_is_corrected_for_few_votes() -> None:
    votes = [(1, w, "x") for w in "abcd"] + [(2, w, "x" if w < "c" else "y") for w in "abcd"]
    found = TaskDiagnosis(Crowd.from_triples(votes, tasks=[1, 2, 3]))
    assert found.entropy[0] == 0
    assert found.entropy[1] == pytest.approx(min((np.log(2) + 1 / 8) / np.log(2), 1))
    assert np.isnan(found.entropy[2])
    assert found.table["kind"].tolist()[2] == "unlabelled"


def test_entropy_is_less_biased_than_plain() -> None:
    """Five votes of one half each: the plain entropy of the votes is too small on average, and this one less so."""
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(5 * 4000), 5)
    crowd = Crowd.from_codes(
        task, worker, rng.integers(4, size=len(task)), tasks=range(4000), workers=range(5), classes=range(4)
    )
    shares = crowd.vote_counts / 5
    plain = -(shares * np.log(np.maximum(shares, 1e-9))).sum(axis=1).mean() / np.log(4)
    found = TaskDiagnosis(crowd, DawidSkene(max_iter=1, tol=0).fit(crowd)).entropy.mean()
    assert plain < found < 1


def test_misfit_is_a_z_score() -> None:
    """On a crowd that the model describes, votes are as likely as they should be; on made-up ones they are not."""
    made = simulate_crowd(n_tasks=2000, workers=["noisy(0.8)"] * 20, n_classes=4, votes_per_task=6, random_state=1)
    found = TaskDiagnosis(made.crowd)
    assert abs(np.median(found.misfit)) < 0.6
    assert (found.misfit < -3).mean() < 0.02


def test_ambiguous_tasks_are_told_from_mislabelled_ones() -> None:
    """Fifty tasks on which experts are split evenly, among tasks on which only noisy workers err."""
    rng = np.random.default_rng(0)
    n_tasks, ambiguous = 500, 50
    truth = rng.integers(3, size=n_tasks)
    said = np.repeat(truth[:, None], 8, axis=1)
    half = np.argsort(rng.random((ambiguous, 8)), axis=1)[:, :4]
    said[np.arange(ambiguous)[:, None], half] = (truth[:ambiguous, None] + 1) % 3
    noise = np.where(np.arange(8) < 6, 0.04, 0.5)
    wrong = rng.random((n_tasks, 8)) < noise
    said = np.where(wrong, rng.integers(3, size=said.shape), said)
    task, worker = np.divmod(np.arange(said.size), 8)
    crowd = Crowd.from_codes(task, worker, said.ravel(), tasks=range(n_tasks), workers=range(8), classes=range(3))
    kind = TaskDiagnosis(crowd).kind
    assert (kind[:ambiguous] == "ambiguous").mean() > 0.8
    assert (kind[ambiguous:] == "ambiguous").mean() < 0.03
    assert (kind[ambiguous:] == "settled").mean() > 0.9
    assert set(kind) <= set(TASK_KINDS)


def test_those_who_know_outvote_the_rest() -> None:
    kinds = ["expert(0.99)"] * 2 + ["spammer"] * 3
    made = simulate_crowd(n_tasks=600, workers=kinds, n_classes=4, votes_per_task=5, random_state=0)
    found = TaskDiagnosis(made.crowd)
    outvoted = found.kind == "outvoted"
    assert outvoted.mean() > 0.1
    right = found.table["label"].to_numpy() == made.truth.to_numpy()
    assert right[outvoted].mean() > 0.9


def test_difficulty_comes_with_its_error() -> None:
    made = simulate_crowd(
        n_tasks=300, n_workers=20, n_classes=3, votes_per_task=(1, 8), difficulty="beta", random_state=2
    )
    table = TaskDiagnosis(made.crowd).table
    few, many = table["n_votes"] <= 2, table["n_votes"] >= 7
    assert table.loc[few, "standard_error"].mean() > table.loc[many, "standard_error"].mean()
    assert table["margin"].between(0, 1).all()
    assert table["confidence"].between(0, 1).all()
    assert table["uncertainty"].between(0, 1).all()


def test_bad_input() -> None:
    with pytest.raises(WisecrowdError, match="worker ids"):
        TaskDiagnosis(Crowd.from_triples([(1, 1, "x")]).drop_workers())


@pytest.mark.slow
def test_with_features_tasks_have_margins() -> None:
    made = simulate_crowd(n_tasks=120, workers=["noisy(0.8)"] * 8, n_classes=2, votes_per_task=3)
    X = pd.DataFrame({"x": np.where(made.truth == "c0", -1.0, 1.0)}, index=made.truth.index)
    model = DawidSkene().fit(made.crowd)
    table = TaskDiagnosis(made.crowd, model, X.iloc[::-1]).table
    np.testing.assert_array_equal(table["aum"], aum(made.crowd, X, answers=model.labels_))
    np.testing.assert_array_equal(table["waum"], waum(made.crowd, X, model=model))
    assert {"aum", "waum"}.isdisjoint(TaskDiagnosis(made.crowd, model).table)
    assert diagnose_crowd(made.crowd, X).tasks.columns.equals(table.columns)


def compute_dense_moments(
    model: ConfusionEM, worker: np.ndarray, true_class: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    probs = model.confusion_[worker, true_class]
    logs = np.log(np.maximum(probs, 1e-12))
    mean = (probs * logs).sum(axis=1)
    return mean, (probs * logs**2).sum(axis=1) - mean**2


CONFUSION_METHODS = sorted(
    name
    for name, module in method_modules().items()
    if module.startswith("wisecrowd.aggregate.") and issubclass(find(name), ConfusionEM)
)


@pytest.mark.parametrize("name", CONFUSION_METHODS)
def test_moments_equal_those_of_whole_matrices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few votes and many classes, so that most labels were never given by a worker; several blocks of workers."""
    rng = np.random.default_rng(4)
    task, worker, label = rng.integers(60, size=150), rng.integers(20, size=150), rng.integers(9, size=150)
    crowd = Crowd.from_codes(
        task, worker, label, tasks=range(60), workers=range(21), classes=range(9), ordered=True, duplicates="first"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = find(name)(**({"n_init": 2} if name == "ebcc" else {})).fit(crowd)
    monkeypatch.setattr("wisecrowd.diagnose.tasks.MAX_CELLS", 200)
    worker, true_class = np.divmod(np.arange(21 * 9), 9)
    order = rng.permutation(len(worker))
    found = compute_label_moments(model, worker[order], true_class[order])
    for computed, expected in zip(found, compute_dense_moments(model, worker[order], true_class[order]), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-9)


def test_misfit_of_many_classes_needs_no_matrix_per_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand workers and classes with a vote each took minutes."""
    n = 500
    crowd = Crowd.from_codes(
        np.arange(n) // 2, np.arange(n), np.arange(n), tasks=range(n // 2), workers=range(n), classes=range(n)
    )
    model = DawidSkene().fit(crowd)
    monkeypatch.setattr(DawidSkene, "confusion_of", None)
    assert np.isfinite(TaskDiagnosis(crowd, model).misfit).all()
    monkeypatch.setattr("wisecrowd.diagnose.tasks.MAX_SCANNED_CELLS", n**3 - 1)
    monkeypatch.setattr(DawidSkene, "unused_labels_are_equal", False)
    with pytest.raises(InputError, match=r"500 matrices of 500 x 500 classes.*merge rare classes"):
        _ = TaskDiagnosis(crowd, model).misfit
