"""Diagnosis of workers: formulas against brute force, and planted workers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, DawidSkene, MajorityVote, simulate_crowd
from wisecrowd.diagnose.copying import find_copying_pairs
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import DataWarning, WisecrowdError
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior

MADE = simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=4, random_state=3)


def test_matrices_and_scores_are_those_of_their_formulas() -> None:
    crowd = MADE.crowd
    fitted = DawidSkene().fit(crowd)
    found = WorkerDiagnosis(crowd, fitted)
    others = leave_one_out_posterior(fitted, crowd)
    tally = np.zeros((crowd.n_workers, 3, 3))
    for vote in range(crowd.n_votes):
        tally[crowd.worker[vote], :, crowd.label[vote]] += others[vote]
    matrix = tally + found.prior_strength * found.confusion
    matrix /= matrix.sum(axis=2, keepdims=True)
    assert np.allclose(found.confusion_of(range(12)), matrix)
    assert np.allclose(found.confusion_of([3, 1]), matrix[[3, 1]])
    assert np.allclose(found.confusion_of([3, 1], [2, 0]), matrix[[3, 1]][:, [[2], [0]], [2, 0]])
    score = [
        sum(((rows[k] - rows[other]) ** 2).sum() for k in range(3) for other in range(k + 1, 3)) / 6 for rows in matrix
    ]
    assert np.allclose(found.reliability, score)
    prior = fitted.posterior_.mean(axis=0)
    joint = prior[None, :, None] * matrix
    information = (joint * np.log(joint / prior[None, :, None] / joint.sum(axis=1, keepdims=True))).sum(axis=(1, 2))
    assert np.allclose(found.information, information / -(prior * np.log(prior)).sum())


def test_agreement_leaves_the_own_vote_out() -> None:
    votes = [(1, "ann", "x"), (1, "bob", "x"), (1, "cy", "y"), (2, "ann", "x"), (2, "cy", "x"), (3, "dee", "x")]
    found = WorkerDiagnosis(Crowd.from_triples(votes))
    assert np.allclose(found.agreement[:3], [2 / 3, 1 / 2, 1 / 3])
    assert np.isnan(found.agreement[3])  # nobody else was there
    table = found.table
    assert table["n_votes"].tolist() == [2, 1, 2, 1]
    assert (table["low"] <= table["accuracy"]).all()
    assert (table["accuracy"] <= table["high"]).all()
    assert table.loc["ann", ["top_label", "top_share"]].tolist() == ["x", 1.0]


def test_perfect_and_useless_workers_have_the_scores_they_should() -> None:
    made = simulate_crowd(n_tasks=2000, workers=["expert(1)"] * 5 + ["spammer"], n_classes=3, votes_per_task=4)
    table = WorkerDiagnosis(made.crowd).table
    assert (table["reliability"].iloc[:5] > 0.95).all()
    assert (table["information"].iloc[:5] > 0.95).all()
    assert table["reliability"].iloc[5] < 0.05
    assert table["information"].iloc[5] < 0.02


@pytest.mark.parametrize("n_classes", [3, 5])
def test_planted_workers_are_found(n_classes: int) -> None:
    """At sixty votes each: nine in ten are found, and nine in ten found are planted."""
    kinds = ["expert"] * 10 + ["noisy(0.65, 0.85)"] * 40 + ["spammer"] * 8 + ["one-button"] * 4 + ["adversary"] * 5
    wanted = {"spammer": {"spammer", "one-button"}, "adversary": {"adversary"}}
    hits, named, planted = dict.fromkeys(wanted, 0), dict.fromkeys(wanted, 0), dict.fromkeys(wanted, 0)
    for seed in range(3):
        made = simulate_crowd(12 * len(kinds), workers=kinds, n_classes=n_classes, votes_per_task=5, random_state=seed)
        flags = WorkerDiagnosis(made.crowd).table["flags"]
        for flag, names in wanted.items():
            for kind, found in zip(kinds, flags, strict=True):
                told, true = bool(set(found.split(", ")) & names), kind in names
                hits[flag] += told and true
                named[flag] += told
                planted[flag] += true
    for flag in wanted:
        assert hits[flag] / planted[flag] >= 0.9, f"{flag}: missed"
        assert hits[flag] / named[flag] >= 0.85, (
            f"{flag}: named without cause"
        )  # five in a crowd: one more or less is 4 %


def test_who_presses_one_button_is_called_so_with_a_reason() -> None:
    made = simulate_crowd(400, workers=["noisy(0.8)"] * 9 + ["one-button"], n_classes=4, votes_per_task=4)
    worker = WorkerDiagnosis(made.crowd).table.iloc[-1]
    assert worker["flags"] == "one-button"
    assert "100% of" in worker["why"]


def test_copiers_are_found_and_the_good_are_not_taken_for_them() -> None:
    missed, accused = 0, 0
    for seed in range(5):
        kinds = ["noisy(0.6, 0.8)"] * 12 + ["copier(0.95)"]
        made = simulate_crowd(240, workers=kinds, n_classes=4, votes_per_task=4, random_state=seed)
        found = find_copying_pairs(made.crowd, DawidSkene().fit(made.crowd)).flagged
        guilty = found[(found["first"] == "w12") | (found["second"] == "w12")]
        missed += guilty.empty
        accused += len(found) - len(guilty)
        assert (guilty["copied"] > 0.5).all()
    assert missed <= 1
    assert accused <= 1
    good = simulate_crowd(300, workers=["expert(0.97)"] * 4 + ["noisy(0.4)"] * 8, n_classes=4, votes_per_task=6)
    assert find_copying_pairs(
        good.crowd, DawidSkene().fit(good.crowd)
    ).flagged.empty  # they agree because they are right


def test_filled_votes_do_not_count() -> None:
    crowd = MADE.crowd
    filled = Crowd.from_codes(
        [*crowd.task, 0], [*crowd.worker, 11], [*crowd.label, 0], observed=[True] * crowd.n_votes + [False],
        tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes, duplicates="keep",
    )  # fmt: skip
    assert WorkerDiagnosis(filled).table.equals(WorkerDiagnosis(crowd).table)


def test_odd_crowds_and_bad_input() -> None:
    one_class = Crowd.from_triples([(task, worker, "x") for task in range(4) for worker in "ab"])
    assert WorkerDiagnosis(one_class).table["flags"].tolist() == ["", ""]
    single = Crowd.from_triples([(1, "ann", "x"), (2, "ann", "y")])
    with pytest.warns(DataWarning, match="no task has two votes"):
        assert len(WorkerDiagnosis(single).table) == 1
    with pytest.raises(WisecrowdError, match="worker ids"):
        WorkerDiagnosis(one_class.drop_workers())
    with pytest.raises(WisecrowdError, match="MajorityVote"):
        WorkerDiagnosis(one_class, MajorityVote().fit(one_class))  # type: ignore[arg-type]  # on purpose


def test_scores_of_many_classes_equal_those_of_whole_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand workers and classes with a vote each took minutes."""
    rng = np.random.default_rng(5)
    task, label = rng.integers(40, size=120), rng.integers(30, size=120)
    crowd = Crowd.from_codes(task, np.arange(120) % 50, label, tasks=range(40), workers=range(51), classes=range(30),
                             duplicates="first")  # fmt: skip
    found = WorkerDiagnosis(crowd, DawidSkene().fit(crowd))
    matrix = found.confusion_of(range(51))
    squares = 30 * (matrix**2).sum(axis=(1, 2)) - (matrix.sum(axis=1) ** 2).sum(axis=1)
    prior = found.model.posterior_.mean(axis=0)
    label_shares = np.einsum("k,rkl->rl", prior, matrix)[:, None]
    information = np.einsum("k,rkl->r", prior, matrix * np.log(matrix / label_shares))
    monkeypatch.setattr(WorkerDiagnosis, "confusion_of", None)
    np.testing.assert_allclose(found.reliability, squares / (30 * 29), rtol=1e-9)
    np.testing.assert_allclose(found.information, information / -(prior * np.log(prior)).sum(), rtol=1e-9)
