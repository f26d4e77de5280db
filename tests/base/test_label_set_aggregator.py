"""Shared parts of the aggregators of label sets: conversion, thresholds and results."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import BinaryRelevance, Crowd, LabelSetMixture, load
from wisecrowd.base.label_set_aggregator import as_label_sets, find_f1_threshold
from wisecrowd.errors import InputError, NoPosterior, UsageError
from wisecrowd.simulate.label_sets import simulate_label_sets

CROWD = simulate_label_sets(n_tasks=60, n_workers=8, n_labels=4, n_groups=2, random_state=0).crowd
METHODS = [BinaryRelevance(), BinaryRelevance(model="majority"), LabelSetMixture(n_groups=2, n_starts=1)]


def test_the_threshold_has_the_best_expected_score_of_all_sizes() -> None:
    probs = np.random.default_rng(0).random(12) ** 2
    threshold = find_f1_threshold(probs)

    def expected(chosen: np.ndarray) -> float:
        return 2 * probs[chosen].sum() / (chosen.sum() + probs.sum())

    best = max(expected(np.array(bits, dtype=bool)) for bits in itertools.product((0, 1), repeat=12) if any(bits))
    assert expected(probs >= threshold) == pytest.approx(best)
    assert find_f1_threshold(np.zeros(3)) == 0.5


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_tables_match_their_vocabularies(method: BinaryRelevance, tmp_path: Path) -> None:
    fitted = method.clone_unfitted().fit(CROWD)
    assert fitted.proba_.shape == (60, 4)
    assert fitted.proba_.to_numpy().min() >= 0
    assert fitted.proba_.to_numpy().max() <= 1
    table = fitted.tasks_
    assert table["expected_f1"].between(0, 1).all()
    assert table["confidence"].between(0, 1).all()
    assert fitted.workers_["n_votes"].sum() == CROWD.n_votes
    assert all(isinstance(labels, tuple) for labels in fitted.labels_)
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").proba_.equals(fitted.proba_)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_names_and_order_do_not_matter(method: BinaryRelevance) -> None:
    frame = CROWD.to_frame()
    names = {label: f"x{number}" for number, label in enumerate(reversed(CROWD.labels))}
    renamed = frame.assign(labels=[[names[label] for label in labels] for labels in frame["labels"]]).sample(
        frac=1, random_state=1
    )
    expected = method.clone_unfitted().fit(CROWD).proba_.rename(columns=names)
    other = method.clone_unfitted().fit(renamed).proba_
    assert np.allclose(other.loc[expected.index, expected.columns], expected, atol=2e-2)


def test_unanimous_workers_decide() -> None:
    sets = {"t1": "a|b", "t2": "c", "t3": "", "t4": "a|c"}
    rows = [(task, worker, labels) for task, labels in sets.items() for worker in range(5)]
    frame = dict(zip(("task", "worker", "labels"), map(list, zip(*rows, strict=True)), strict=True))
    for method in METHODS:
        labels = method.clone_unfitted().fit(frame).labels_.to_dict()
        assert labels == {"t1": ("a", "b"), "t2": ("c",), "t3": (), "t4": ("a", "c")}


def test_there_is_no_posterior_over_classes() -> None:
    fitted = BinaryRelevance().fit(CROWD)
    assert not hasattr(fitted, "posterior_")
    with pytest.raises(NoPosterior, match="use proba_, labels_ and tasks_"):
        _ = fitted.confusion_


def test_other_votes_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match="takes sets of labels; got Crowd"):
        BinaryRelevance().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InputError, match="there are no labels"):
        as_label_sets({"task": ["t"], "worker": ["ann"], "labels": [""]})
    with pytest.raises(UsageError, match="takes votes only"):
        BinaryRelevance().fit(CROWD, truth={"t0": ("l0",)})
    with pytest.raises(InputError, match="need the tasks, workers and labels of the fit"):
        BinaryRelevance().fit(CROWD).heldout_log_loss({"task": ["t0"], "worker": ["w0"], "labels": ["l0"]})
