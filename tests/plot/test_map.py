"""The map: workers stand where the shared projection puts them, with the sign of what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from wisecrowd import MMLC, Crowd, diagnose_crowd, plot
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.map import map_workers
from wisecrowd.errors import InputError, UsageError
from wisecrowd.report import worker_map as report_map
from wisecrowd.report import workers as _workers
from wisecrowd.simulate import Simulation

TABLE = pd.DataFrame(
    {"x": [0.0, 1.0, 2.0, 0.5], "y": [0.0, 1.0, 0.0, 0.5], "n_votes": [4, 1, 9, np.nan]},
    index=["ann", "bob", "cy", "(oracle)"],
)


def points(ax: Any) -> dict[tuple[float, float], float]:
    """Area by place of all points but the marks."""
    parts = [part for part in ax.collections if part.get_zorder() < 4]
    return {
        tuple(np.round(place, 9).tolist()): float(area)
        for part in parts
        for place, area in zip(
            part.get_offsets().tolist(), np.resize(part.get_sizes(), len(part.get_offsets())), strict=True
        )
    }


def test_workers_stand_where_the_projection_puts_them(found: Diagnosis, drawn: Any) -> None:
    ax = plot.worker_map(found)
    everybody = found.worker_diagnosis.confusion_of(range(found.crowd.n_workers))
    places = map_workers(everybody, found.model.posterior_.mean(axis=0))
    assert places is not None
    at, where = points(ax), [tuple(place) for place in places.workers.round(9).tolist()]
    assert sorted(at) == sorted(where)
    order = np.argsort([at[place] for place in where], kind="stable")
    assert (np.diff(found.crowd.votes_per_worker[order]) >= 0).all(), "who gave more labels is larger"
    marks = {text.get_text(): text.xy for text in ax.texts}
    assert np.allclose(marks["always right"], places.perfect_worker)
    assert np.allclose(marks["guesses"], places.guessing_worker)
    assert ax.get_aspect() == 1, "distances must not lie"
    assert f"{places.explained_share:.0%} of the squared distances" in ax.get_xlabel()
    flags = found.workers["flags"].str.split(", ").str[0].replace("", "no flag").value_counts()
    assert sorted(drawn.names(ax)) == sorted(f"{name} ({number})" for name, number in flags.items())


def test_it_is_the_map_of_the_report(found: Diagnosis) -> None:
    shown = _workers.select_workers(found)
    theirs = report_map.build_map(found, shown, _workers.build_section(found, shown, None)["rows"])
    assert theirs is not None
    report = np.array([[point["x"], -point["y"]] for point in theirs["points"]])[np.argsort(shown.positions)]
    places = map_workers(
        found.worker_diagnosis.confusion_of(range(found.crowd.n_workers)), found.model.posterior_.mean(axis=0)
    )
    assert places is not None
    at = points(plot.worker_map(found))
    ours = np.array([place for place in places.workers.round(9).tolist() if tuple(place) in at])
    scale = np.ptp(report, axis=0) / np.ptp(ours, axis=0)
    assert scale[0] == pytest.approx(scale[1], rel=0.01)
    assert np.allclose(report - report[0], (ours - ours[0]) * scale, atol=0.2)


def test_numbers_get_a_scale_and_groups_get_signs(found: Diagnosis, made: Simulation, drawn: Any) -> None:
    ax: Any = plot.worker_map(found, by="accuracy")
    assert sorted(ax.collections[0].get_array()) == sorted(found.workers["accuracy"])
    assert ax.figure.axes[1].get_ylabel() == "accuracy"
    ax = plot.worker_map(found, by=made.kind)
    counts = made.kind.value_counts()
    assert drawn.names(ax) == [f"{kind} ({counts[kind]})" for kind in sorted(counts.index)]
    signs = [(line.get_marker(), line.get_color()) for line in ax.get_legend().legend_handles]
    assert len(set(signs)) == len(counts)
    numbered = pd.Series(range(2), index=["w00", "w01"])  # of the others nothing is known
    assert drawn.names(plot.worker_map(found, by=numbered)) == ["(none) (16)", "0 (1)", "1 (1)"]


@pytest.mark.slow
def test_workers_without_a_number_are_pale(found: Diagnosis) -> None:
    ax = plot.worker_map(found, by=pd.Series({"w00": 0.5, "w03": np.nan}))
    pale, known = ax.collections[:2]
    assert (len(pale.get_offsets()), len(known.get_offsets())) == (17, 1)


def test_a_table_of_places_is_drawn_with_its_oracle() -> None:
    ax = plot.worker_map(TABLE)
    assert sorted(points(ax)) == [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]
    assert {text.get_text(): text.xy for text in ax.texts} == {"oracle": (0.5, 0.5)}


@pytest.mark.torch
def test_a_network_with_a_map_of_its_own_is_drawn_by_it(made: Simulation) -> None:
    X = pd.DataFrame(np.eye(3)[made.truth_codes], index=made.crowd.tasks)
    fitted = MMLC(epochs=2, n_experts=4).fit(X, made.crowd)
    table = fitted.worker_map().round(9)
    ax = plot.worker_map(fitted, by=made.accuracy)
    assert sorted(points(ax)) == sorted(zip(table["x"][:-1], table["y"][:-1], strict=True))
    assert [text.get_text() for text in ax.texts] == ["oracle"]
    with pytest.raises(UsageError, match="not fitted"):
        plot.worker_map(MMLC())


def test_a_flag_that_is_new_is_drawn_all_the_same(drawn: Any) -> None:
    flags = TABLE[:3].assign(flags=["drifts", "sleepy, spammer", "spammer"])
    ax = plot.worker_map(flags)
    assert drawn.names(ax) == ["spammer (1)", "drifts (1)", "sleepy (1)"]
    ax.figure.canvas.draw()


def test_many_workers_are_drawn_as_an_image() -> None:
    rng = np.random.default_rng(0)
    many = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["x", "y"])
    assert plot.worker_map(many).collections[0].get_rasterized()
    assert not plot.worker_map(many[:100]).collections[0].get_rasterized()


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ([1, 2], {}, "a Diagnosis, a fitted MMLC or a table"),
        (TABLE[["x"]], {}, "missing y"),
        (TABLE[:0], {}, "without rows"),
        (TABLE.assign(x=np.inf), {}, "finite"),
        (TABLE, {"by": "colour"}, "no column 'colour' to colour by; its columns are 'x', 'y', 'n_votes'"),
        (TABLE, {"by": [1, 2]}, "got list"),
        (TABLE, {"by": pd.Series({"zoe": 1})}, "no id in common"),
        (TABLE, {"by": pd.Series({"ann": np.nan})}, "by has no value for any worker"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.worker_map(given, **more)
    assert pyplot.get_fignums() == []


def test_too_many_groups_and_too_few_workers_are_refused(found: Diagnosis) -> None:
    with pytest.raises(UsageError, match="at most 12 groups can be distinguished"):
        plot.worker_map(found, by=pd.Series(found.crowd.workers, index=found.crowd.workers))
    with pytest.raises(InputError, match="at least three different workers"):
        plot.worker_map(diagnose_crowd(Crowd.from_triples([("t", "a", 0), ("t", "b", 1), ("u", "a", 0)])))
    assert pyplot.get_fignums() == []
