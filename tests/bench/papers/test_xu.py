"""The benchmark of task difficulty: its data, its figures, its curves."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.bench import find_benchmark
from wisecrowd.bench.entries import get_identity
from wisecrowd.bench.papers._xu import (
    AUC,
    EXPERTISE,
    FALSE_POSITIVES,
    FIGURES,
    Shirts,
    XuLearner,
    XuPoints,
    compute_roc,
)
from wisecrowd.simulate import simulate_xu2019


def test_points_are_the_published_ones_or_new() -> None:
    fixed, drawn = XuPoints(), XuPoints(is_random=True)
    assert fixed.load(0).crowd == fixed.load(1).crowd == simulate_xu2019().crowd
    assert drawn.load(0).crowd != drawn.load(1).crowd
    assert fixed.identity() != drawn.identity()


def test_an_entry_answers_the_three_questions() -> None:
    entry = pickle.loads(pickle.dumps(XuLearner("adaptive-difficulty", {"max_iter": 100})))
    figures = entry(XuPoints().load(0), 0)
    assert set(FIGURES) < set(figures)
    assert figures[AUC] > 0.97
    assert figures[EXPERTISE] < 0.05
    curve = [figures[f"TPR at {at:g}"] for at in FALSE_POSITIVES]
    assert (np.diff(curve) >= 0).all()


def test_hard_votes_have_one_point_of_a_curve() -> None:
    true, score = np.array([1, 1, 1, 0, 0]), np.array([1.0, 1.0, 0.0, 0.0, 1.0])
    assert compute_roc(true, score)[AUC] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert compute_roc(true, score)["TPR at 0.5"] == pytest.approx(2 / 3)


def test_images_that_are_not_there_are_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    assert "WISECROWD_DATA" in (Shirts().absence() or "")


def test_shirts_are_labelled_in_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.choice([0, 6, 3], size=60_000), rng.choice([0, 6], size=50)])
    X = np.zeros((len(y), 2, 2), dtype=np.uint8)
    X[:, 0, 0] = np.where(y == 6, 150, 100) + rng.integers(40, size=len(y))
    (tmp_path / "fashion_mnist").mkdir()
    np.savez(tmp_path / "fashion_mnist" / "images.npz", X=X, y=y)
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    for labels in ("structural", 6):
        data = Shirts(labels=labels, n_tasks=200)
        assert data.absence() is None
        dataset = data.load(0)
        assert dataset.crowd.shape == (200, 5)
        assert dataset.splits is not None
        assert dataset.splits.value_counts().to_dict() == {"train": 200, "test": 50}
        assert np.isnan(dataset.meta["accuracy"]).all() == (labels == 6)
        assert data.load(1).crowd != dataset.crowd


def test_the_network_of_the_paper_is_part_of_the_identity() -> None:
    entries = find_benchmark("xu2019-network").entries
    identities = [get_identity(entries["Adaptive"]), XuLearner("adaptive-difficulty").identity()]
    assert identities[0] != identities[1]
    assert "FourConvolutions" in str(identities[0])


@pytest.mark.parametrize("name", ["xu2019", "xu2019-shirts"])
def test_every_published_figure_has_an_entry_and_data(name: str) -> None:
    benchmark = find_benchmark(name)
    for entry, data, figure in benchmark.published:
        assert entry in benchmark.entries
        assert figure in benchmark.data[data].figures
    assert benchmark.seeds >= 5
