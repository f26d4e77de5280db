"""Data of the benchmarks of papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd.bench.papers._mena import GaussianGroups
from wisecrowd.io.datasets import Dataset


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write images in the place of Fashion-MNIST; the position of a bright spot is the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=60_200)
    X = rng.integers(60, size=(len(y), 6, 6), dtype=np.uint8)
    X[np.arange(len(y)), y // 4 * 2, y % 4] = 255
    (tmp_path / "fashion_mnist").mkdir()
    np.savez(tmp_path / "fashion_mnist" / "images.npz", X=X, y=y)
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    monkeypatch.setenv("WISECROWD_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="session")
def small() -> Dataset:
    """Groups of workers with one confusion matrix each."""
    return GaussianGroups(30, n_tasks=300).load(seed=1)
