"""Estimates against truth: points, bars and lines are where the figures are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from wisecrowd import GLAD, DawidSkene, plot
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation, simulate_gaussian_difficulty


def test_points_are_true_and_estimated_and_bars_the_intervals(found: Diagnosis, made: Simulation, drawn: Any) -> None:
    shuffled = made.accuracy.sample(frac=1, random_state=0)
    ax = plot.abilities(found, shuffled)
    across, up = drawn.line(ax, 0)
    assert across == made.accuracy.tolist(), "they meet by id and not by position"
    assert up == found.workers["accuracy"].tolist()
    (bars,) = ax.containers
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    assert np.allclose(ends, found.workers[["low", "high"]])
    r = np.corrcoef(across, up)[0, 1]
    assert drawn.names(ax) == [f"estimated (r = {r:.2f})", "no error"]


def test_errors_of_abilities_are_two_standard_errors(made: Simulation, drawn: Any) -> None:
    fitted = GLAD().fit(made.crowd)
    ax = plot.abilities(fitted, made.accuracy, of="ability", same_scale=False)
    assert drawn.line(ax, 0)[1] == fitted.workers_["ability"].tolist()
    length = [segment[1, 1] - segment[0, 1] for segment in ax.containers[0][2][0].get_segments()]
    assert np.allclose(length, 4 * fitted.workers_["standard_error"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("true accuracy", "estimated ability")
    assert len(drawn.names(ax)) == 1, "no line where scales differ"
    tasks = plot.abilities(fitted, made.difficulty, of="difficulty", same_scale=False)
    assert drawn.line(tasks, 0)[1] == fitted.tasks_["difficulty"].tolist()


def test_several_methods_and_only_common_ids(drawn: Any) -> None:
    true = {"a": 0.5, "b": 0.6, "zoe": 0.9}
    ax = plot.abilities(
        {"one": pd.Series({"b": 0.7, "a": 0.4, "c": 0.1}), "two": pd.DataFrame({"accuracy": [0.3]}, index=["a"])}, true
    )
    assert drawn.line(ax, 0) == [[0.6, 0.5], [0.7, 0.4]]
    assert drawn.line(ax, 1) == [[0.5], [0.3]]
    assert drawn.names(ax) == ["one (r = 1.00)", "two", "no error"]


def test_bare_numbers_meet_bare_numbers_only(drawn: Any) -> None:
    assert drawn.line(plot.abilities([0.1, 0.2], [0.3, 0.5]), 0) == [[0.3, 0.5], [0.1, 0.2]]
    for estimated, true in (([0.1, 0.2], [0.3]), (pd.Series([0.1, 0.2]), [0.3, 0.5]), ([[0.1]], [[0.3]])):
        with pytest.raises(UsageError, match="arrays of equal length"):
            plot.abilities(estimated, true)


def test_a_cloud_of_many_is_an_image_without_bars() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"difficulty": rng.normal(size=5000), "standard_error": 1.0})
    ax = plot.abilities(table, table["difficulty"], of="difficulty")
    assert ax.containers == []
    assert ax.lines[0].get_rasterized()


@pytest.mark.parametrize(
    ("estimated", "true", "more", "message"),
    [
        (pd.Series({"a": 1.0}), pd.Series({"b": 1.0}), {}, "no id in common"),
        (pd.Series({"a": 1.0}), pd.Series({"a": "high"}), {}, "must be numbers"),
        (pd.Series([1.0, 2.0], index=["a", "a"]), {"a": 1.0}, {}, "duplicate ids: 'a'"),
        (
            pd.DataFrame({"accuracy": [1.0]}, index=["a"]),
            {"a": 1.0},
            {"of": "skill"},
            "got 'skill', expected one of 'accuracy'",
        ),
        (pd.Series({"a": np.inf}), {"a": 1.0}, {}, "finite"),
        ({"one": 3}, {"a": 1.0}, {}, "got int"),
        ({}, {"a": 1.0}, {}, "dict of series is empty"),
        ({str(n): pd.Series({"a": 1.0}) for n in range(30)}, {"a": 1.0}, {}, "at most 20 series; got 30"),
        (DawidSkene(), {"a": 1.0}, {}, "not fitted"),
    ],
)
def test_what_cannot_be_drawn_is_refused(estimated: Any, true: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.abilities(estimated, true, **more)
    assert pyplot.get_fignums() == []


def test_expertise_leads_from_true_places_to_estimates(drawn: Any) -> None:
    true = pd.DataFrame({"no": [0.9, 0.6], "yes": [0.8, 0.7]}, index=["ann", "bob"])
    other = pd.DataFrame({"yes": [0.5, 0.75], "no": [0.65, 0.95]}, index=["bob", "ann"])
    ax = plot.expertise({"ours": other}, true)
    assert drawn.line(ax, 0) == [[0.9, 0.6], [0.8, 0.7]]
    lines = sorted(list(zip(*drawn.line(ax, place), strict=True)) for place in (1, 2))
    assert lines == [[(0.65, 0.5), (0.6, 0.7)], [(0.95, 0.75), (0.9, 0.8)]]
    assert drawn.line(ax, 3) == [[0.65, 0.95], [0.5, 0.75]]
    assert {text.get_text() for text in ax.texts} == {"ann", "bob"}
    assert drawn.names(ax)[:2] == ["true", "ours"]
    turned = plot.expertise(other, positive="no")
    assert drawn.line(turned, 0) == [[0.5, 0.75], [0.65, 0.95]]
    assert turned.get_ylabel() == "accuracy on 'no' (sensitivity)"


def test_expertise_of_a_method_is_the_diagonal_of_its_matrices(drawn: Any) -> None:
    made = simulate_gaussian_difficulty(300)
    fitted = DawidSkene(max_iter=5, tol=0).fit(made.crowd)
    ax = plot.expertise(fitted)
    assert np.allclose(np.transpose(drawn.line(ax, 0)), np.diagonal(fitted.confusion_, axis1=1, axis2=2))


def test_workers_in_one_place_share_it() -> None:
    ax = plot.expertise(pd.DataFrame({0: [0.7, 0.7], 1: [0.6, 0.6]}, index=["ann", "bob"]))
    assert [text.get_text() for text in ax.texts] == ["ann\nbob"]


@pytest.mark.parametrize(
    ("given", "true", "message"),
    [
        (pd.DataFrame(np.eye(3)), None, "exactly two classes; got 3"),
        (pd.DataFrame({0: [1.2], 1: [0.5]}), None, "must be between 0 and 1"),
        (pd.DataFrame({0: [0.2], 1: [0.5]}), pd.DataFrame({"a": [0.2], "b": [0.5]}), "the same two classes"),
        ([0.5], None, "got list"),
    ],
)
def test_expertise_that_cannot_be_drawn_is_refused(given: Any, true: Any, message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.expertise(given, true)
    with pytest.raises(UsageError, match="positive must be one of 0, 1; got 7"):
        plot.expertise(pd.DataFrame({0: [0.2], 1: [0.5]}), positive=7)
    assert pyplot.get_fignums() == []
