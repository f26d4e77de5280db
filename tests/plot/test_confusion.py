"""Confusion matrices: the cells are those that were given, in the colour of what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from wisecrowd import Crowd, DawidSkene, MajorityVote, Raykar, plot
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


def cells(ax: Any) -> np.ndarray:
    """Return the drawn matrix; right and wrong answers are separate images, each masked in the other."""
    right, wrong = (image.get_array() for image in ax.images)
    eye = np.eye(len(right), dtype=bool)
    assert (np.ma.getmaskarray(right)[~eye]).all()
    assert (np.ma.getmaskarray(wrong)[eye]).all()
    return np.where(eye, right.filled(np.nan), wrong.filled(np.nan))


@pytest.mark.slow
@settings(max_examples=min(15, settings.default.max_examples))
@given(st.integers(1, 12), st.integers(0, 100))
def test_a_matrix_is_drawn_as_it_is(n_classes: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=n_classes)
    ax: Any = plot.confusion(matrix)
    assert np.array_equal(cells(ax), matrix)
    figures = [text.get_text() for text in ax.texts]
    assert len(figures) == (n_classes**2 if n_classes <= 10 else 0)
    pyplot.close("all")


def test_figures_stand_in_their_cells() -> None:
    ax: Any = plot.confusion(np.array([[0.75, 0.25], [0.004, 0.996]]))
    assert {(text.get_position(), text.get_text()) for text in ax.texts} == {
        ((0, 0), "75%"), ((1, 0), "25%"), ((0, 1), "0.4%"), ((1, 1), "99.6%"),
    }  # fmt: skip


def test_a_class_that_was_never_true_is_blank() -> None:
    ax: Any = plot.confusion(np.array([[1.0, 0.0], [np.nan, np.nan]]))
    assert np.isnan(cells(ax)[1]).all()
    assert [text.get_text() for text in ax.texts] == ["100%", "0%", "–", "–"]


def test_a_diagnosis_has_the_matrix_of_the_crowd_and_those_of_workers(found: Diagnosis, made: Simulation) -> None:
    ax: Any = plot.confusion(found)
    assert np.array_equal(cells(ax), found.confusion.to_numpy())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == made.crowd.classes.tolist()
    figure: Any = plot.confusion(found, made, workers=["w16", "w02"])
    above, below = figure.axes[:2], figure.axes[2:]
    assert np.array_equal([cells(panel) for panel in above], made.expected_confusion[[16, 2]])
    assert np.array_equal([cells(panel) for panel in below], found.worker_diagnosis.confusion_of([16, 2]))
    assert above[0].get_position().y0 > below[0].get_position().y1


def test_true_and_estimated_of_one_stand_side_by_side(found: Diagnosis, made: Simulation) -> None:
    figure: Any = plot.confusion(found, made)
    true, estimated = figure.axes
    assert np.allclose(cells(true), np.average(made.expected_confusion, axis=0, weights=made.crowd.votes_per_worker))
    assert true.get_position().y0 == pytest.approx(estimated.get_position().y0)


@pytest.mark.parametrize("method", [MajorityVote, DawidSkene])
def test_a_fitted_method_has_both_too(method: Any, made: Simulation) -> None:
    fitted = method().fit(made.crowd)
    figure: Any = plot.confusion(fitted, workers=["w01", "w17"])
    assert np.array_equal([cells(panel) for panel in figure.axes], fitted.confusion_of([1, 17]))
    crowd = cells(plot.confusion(fitted))
    assert np.allclose(crowd.sum(axis=1), 1)
    said = fitted.posterior_.T @ made.crowd.vote_counts
    assert np.allclose(crowd, said / said.sum(axis=1, keepdims=True), atol=0.01)  # it is smoothed a little


def test_a_learner_tells_its_own_matrix_of_the_crowd(made: Simulation) -> None:
    X = np.eye(3)[made.truth_codes]
    fitted = Raykar().fit(pd.DataFrame(X, index=made.crowd.tasks), made.crowd)
    assert np.array_equal(cells(plot.confusion(fitted)), fitted.crowd_confusion_)


def test_a_number_takes_those_with_most_labels(found: Diagnosis) -> None:
    figure: Any = plot.confusion(found, workers=5)
    busiest = np.argsort(-found.crowd.votes_per_worker, kind="stable")[:5]
    assert [panel.get_title() for panel in figure.axes] == found.crowd.workers[busiest].tolist()
    assert len(figure.axes) == 5, "panels without a matrix are gone"


def test_many_classes_have_a_scale_instead_of_figures() -> None:
    ax: Any = plot.confusion(np.full((60, 60), 1 / 60))
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    assert names == [str(place) for place in range(0, 60, 3)]
    assert [bar.get_title() for bar in ax.figure.axes[1:]] == ["wrong", "right"]


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (np.array([[3.0, 1.0], [1.0, 3.0]]), {}, "shares that sum to 1; divide counts"),
        (np.ones((2, 3)) / 3, {}, r"got \(2, 3\)"),
        (np.ones(3), {}, r"got \(3,\)"),
        ("matrix", {}, "a Diagnosis, a fitted method, a confusion matrix"),
        (np.eye(2), {"classes": ["a"]}, "must be a list of 2 names"),
        (np.eye(2), {"workers": ["a"]}, "workers can be selected from"),
        (np.stack([np.eye(2)] * 3), {"workers": ["a"]}, "must name all 3 matrices"),
        (np.stack([np.eye(2)] * 40), {}, "at most 24 workers; got 40"),
        (np.eye(2), {"true": np.eye(3)}, "must have the same shape"),
        ({"a": np.eye(2), "b": np.eye(3)}, {}, "must have the same square shape"),
        ({}, {}, "unknown workers: none"),
        ({"a": np.eye(2)}, {"workers": ["b"]}, "unknown workers: 'b'; the names are 'a'"),
        (pd.DataFrame(np.eye(2), columns=["a", "b"]), {"true": pd.DataFrame(np.eye(2), columns=["b", "a"])}, "in the same order"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.confusion(given, **more)
    assert pyplot.get_fignums() == []


def test_workers_are_named_as_they_are(found: Diagnosis) -> None:
    with pytest.raises(InputError, match=r"unknown workers: 'nobody'; the workers are 'w00'"):
        plot.confusion(found, workers=["nobody"])
    with pytest.raises(UsageError, match=r"For one worker: \['w01'\]"):
        plot.confusion(found, workers="w01")
    with pytest.raises(UsageError, match="must be 1 or more; got 0"):
        plot.confusion(found, workers=0)
    with pytest.raises(UsageError, match="omit it, or pass one matrix"):
        plot.confusion(found, workers=2, ax=pyplot.subplots()[1])


def test_a_crowd_without_worker_ids_has_one_matrix() -> None:
    fitted = MajorityVote().fit(Crowd.from_counts([[2, 1], [0, 3]], classes=["no", "yes"]))
    assert cells(plot.confusion(fitted)).shape == (2, 2)
    with pytest.raises(UsageError, match="no worker ids"):
        plot.confusion(fitted, workers=1)


def test_an_unfitted_method_says_so() -> None:
    with pytest.raises(UsageError, match="not fitted yet"):
        plot.confusion(DawidSkene())
