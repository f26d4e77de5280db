"""Map of the workers on the page. `tests/plot/test_map.py` compares it with the plot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd, diagnose_crowd
from wisecrowd.report.worker_map import HEIGHT, MARGIN, MAX_RADIUS, MIN_RADIUS, WIDTH, build_map
from wisecrowd.report.workers import build_section, select_workers


@pytest.fixture(scope="module")
def content(simulated: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    diagnosis = diagnose_crowd(simulated.crowd)
    shown = select_workers(diagnosis)
    rows = build_section(diagnosis, shown, None)["rows"]
    result = build_map(diagnosis, shown, rows)
    assert result is not None
    return result, rows


def test_everything_is_within_the_picture(content: tuple[dict[str, Any], Any]) -> None:
    points = [*content[0]["points"], *content[0]["marks"]]
    assert all(MARGIN - 0.1 <= point["x"] <= WIDTH - MARGIN + 0.1 for point in points)
    assert all(MARGIN - 0.1 <= point["y"] <= HEIGHT - MARGIN + 0.1 for point in points)
    assert [mark["name"] for mark in content[0]["marks"]] == ["always right", "guesses"]


def test_points_belong_to_the_rows(content: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    picture, rows = content
    assert len(picture["points"]) == len(rows)
    for point, row in zip(picture["points"], rows, strict=True):
        assert point["title"].startswith(f"{row['name']}: {int(row['n_votes']):,} votes, accuracy ")
        assert point["shape"] == (row["flags"] or ["none"])[0]


def test_the_area_grows_with_the_votes_and_large_points_are_drawn_first(
    content: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    picture, rows = content
    votes = np.array([row["n_votes"] for row in rows], dtype=float)
    radius = np.array([point["r"] for point in picture["points"]])
    assert radius[votes.argmax()] == MAX_RADIUS
    expected = MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * np.sqrt(votes / votes.max())
    np.testing.assert_allclose(radius, expected, atol=0.06)
    assert (np.diff(radius[picture["order"]]) <= 0).all()


def test_good_workers_are_nearer_to_the_perfect_one(content: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    picture, rows = content
    mark = picture["marks"][0]
    distance = [np.hypot(point["x"] - mark["x"], point["y"] - mark["y"]) for point in picture["points"]]
    accuracy = [row["accuracy"] for row in rows]
    assert distance[int(np.argmax(accuracy))] < distance[int(np.argmin(accuracy))]


def test_a_single_class_has_no_map() -> None:
    crowd = Crowd.from_triples([(task, worker, "x") for task in range(6) for worker in range(3)])
    diagnosis = diagnose_crowd(crowd)
    shown = select_workers(diagnosis)
    assert build_map(diagnosis, shown, build_section(diagnosis, shown, None)["rows"]) is None
