"""Laws of the aggregators of marks: row order, names, unanimity, places, and assignments."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.base.mark_aggregator import MarkAggregator
from wisecrowd.base.registry import methods
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.simulate.marks import simulate_boxes, simulate_points, simulate_spans
from wisecrowd.simulate.polygons import simulate_polygons

SIMULATIONS: dict[str, Callable[..., Any]] = {
    "boxes": simulate_boxes,
    "points": simulate_points,
    "polygons": simulate_polygons,
    "spans": simulate_spans,
}
NAMES = [name for name, kind in methods("aggregate").items() if issubclass(kind, MarkAggregator)]


def make(name: str) -> Any:
    return methods()[name]()


def draw(name: str, **options: Any) -> MarkCrowd:
    simulate = SIMULATIONS[make(name).answer_types[0]]
    crowd: MarkCrowd = simulate(**{"n_tasks": 40, "n_workers": 7, "n_classes": 2, "random_state": 5} | options).crowd
    return crowd


def change_places(frame: pd.DataFrame, places: list[str], change: Callable[[Any], Any]) -> pd.DataFrame:
    """Return a table of marks or objects with other coordinates; all vertices of polygons change."""
    if "polygon" in frame:
        polygons = [
            cell if pd.isna(cell) else json.dumps(change(np.array(json.loads(cell))).tolist())
            for cell in frame["polygon"]
        ]
        return frame.assign(polygon=pd.Series(polygons, index=frame.index, dtype=object))
    return frame.assign(**{place: change(frame[place]) for place in places})


def read_places(candidates: pd.DataFrame, places: list[str]) -> Any:
    """Return the coordinates of objects; of polygons, all vertices."""
    if "polygon" in candidates:
        return np.concatenate([np.ravel(json.loads(cell)) for cell in candidates["polygon"]])
    return candidates[places].to_numpy(float)


def fit(name: str, crowd: Any) -> Any:
    with ignore_fit_warnings():
        return make(name).fit(crowd)


def rebuild(crowd: MarkCrowd, frame: pd.DataFrame, **vocabularies: Any) -> MarkCrowd:
    options = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes} | vocabularies
    return type(crowd).from_frame(frame, **options)


@pytest.mark.parametrize("name", NAMES)
def test_row_order_is_irrelevant(name: str) -> None:
    crowd = draw(name)
    shuffled = rebuild(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert fit(name, shuffled).candidates_.equals(fit(name, crowd).candidates_)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_workers_do_not_matter(name: str) -> None:
    crowd = draw(name)
    frame = crowd.to_frame()
    new = {worker: f"n{number}" for number, worker in enumerate(reversed(crowd.workers))}
    other = fit(name, rebuild(crowd, frame.assign(worker=frame["worker"].map(new)), workers=None))
    expected = fit(name, crowd)
    pd.testing.assert_frame_equal(other.candidates_, expected.candidates_, atol=1e-6)
    rates = other.workers_.loc[[new[worker] for worker in crowd.workers]]
    assert rates.to_numpy() == pytest.approx(expected.workers_.to_numpy(), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_classes_and_tasks_do_not_matter(name: str) -> None:
    crowd = draw(name)
    frame = crowd.to_frame()
    tasks = {task: f"n{number:03d}" for number, task in enumerate(crowd.tasks)}
    classes = {label: f"x{number}" for number, label in enumerate(reversed(crowd.classes))}
    renamed = frame.assign(task=frame["task"].map(tasks), label=frame["label"].map(classes))
    other, expected = fit(name, type(crowd).from_frame(renamed)).candidates_, fit(name, crowd).candidates_
    assert other["label"].tolist() == expected["label"].map(classes).tolist()
    assert other["confidence"].to_numpy() == pytest.approx(expected["confidence"].to_numpy(), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_unanimous_workers_decide(name: str) -> None:
    crowd = draw(name, detection_rate=0.999, accuracy=0.999, false_alarms=0, boundary_error=0, worker_spread=0)
    fitted = fit(name, crowd)
    assert (fitted.objects_["n_marks"] > 3).all()
    assert fitted.objects_["confidence"].min() > 0.8
    marked = np.unique(crowd.mark_task)
    assert set(fitted.objects_["task"]) == set(crowd.tasks[marked])


@pytest.mark.parametrize("name", NAMES)
def test_workers_who_saw_a_task_and_marked_nothing_have_voted(name: str) -> None:
    crowd = draw(name)
    frame = crowd.to_frame()
    silent = pd.DataFrame({"task": crowd.tasks, "worker": "silent"})
    lower = fit(name, type(crowd).from_frame(frame, assignments=silent))
    expected = fit(name, crowd)
    assert lower.tasks_["n_votes"].tolist() == (expected.tasks_["n_votes"] + 1).tolist()
    assert lower.workers_.loc["silent", "detection_rate"] < expected.workers_["detection_rate"].min()


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_crowds_are_handled(name: str) -> None:
    crowd = draw(name)
    one_worker = crowd.take(crowd.worker == 0)
    one_vote = crowd.take(np.flatnonzero(np.diff(crowd.offset) > 0)[:1])
    for part in (one_worker, one_vote, crowd.take(crowd.task == crowd.mark_task[0])):
        candidates = fit(name, part).candidates_
        assert candidates["n_marks"].sum() == part.n_marks
        assert candidates["confidence"].between(0, 1 + 1e-12).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_input_is_unchanged_and_the_result_repeats(name: str) -> None:
    crowd = draw(name)
    digest = crowd.digest
    first, second = fit(name, crowd), fit(name, crowd)
    del vars(crowd)["digest"]
    assert crowd.digest == digest
    assert np.array_equal(first.object_probs_, second.object_probs_)


# Models of sequences see longer texts after a shift, and more tokens outside of spans.
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-consensus")])
def test_objects_move_with_the_marks(name: str) -> None:
    crowd = draw(name)
    shift = 64.0  # a power of two, so that sums of coordinates are exact up to rounding
    places = ["start", "end"] if crowd.answer_type == "spans" else ["x", "y"]
    moved = rebuild(crowd, change_places(crowd.to_frame(), places, lambda values: values + shift))
    other, expected = fit(name, moved).candidates_, fit(name, crowd).candidates_
    assert len(other) == len(expected)
    tolerance = 1e-4 if crowd.place_columns else 1e-6  # tables have eight digits of vertices
    assert read_places(other, places) - shift == pytest.approx(read_places(expected, places), abs=tolerance)
    assert other["confidence"].to_numpy() == pytest.approx(expected["confidence"].to_numpy(), abs=1e-3)


@pytest.mark.parametrize("name", ["box-consensus", "point-consensus", "polygon-consensus"])
def test_the_unit_of_coordinates_does_not_matter(name: str) -> None:
    crowd = draw(name)
    names = list(crowd.coordinate_names)
    scaled = rebuild(crowd, change_places(crowd.to_frame(), names, lambda values: values / 1024))
    other, expected = fit(name, scaled).candidates_, fit(name, crowd).candidates_
    assert read_places(other, names) * 1024 == pytest.approx(read_places(expected, names), rel=1e-6)
    assert other["confidence"].to_numpy() == pytest.approx(expected["confidence"].to_numpy(), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_mark_counts_once(name: str) -> None:
    crowd = draw(name)
    frame = crowd.to_frame()
    repeated = rebuild(crowd, pd.concat([frame, frame.dropna().head(20)]))
    assert fit(name, repeated).candidates_.equals(fit(name, crowd).candidates_)


@pytest.mark.parametrize("name", NAMES)
def test_a_further_worker_who_agrees_does_not_lower_the_confidence(name: str) -> None:
    crowd = draw(name)
    objects = fit(name, crowd).objects_
    places = crowd.place_columns or crowd.coordinate_names
    agreeing = objects.assign(worker="echo")[["task", "worker", *places, "label"]]
    assignments = pd.DataFrame({"task": crowd.tasks, "worker": "echo"})
    more = fit(name, type(crowd).from_frame(pd.concat([crowd.to_frame(), agreeing]), assignments=assignments))
    assert more.objects_["confidence"].mean() >= objects["confidence"].mean() - 1e-6
    assert more.workers_.loc["echo", "detection_rate"] >= more.workers_["detection_rate"].median()
