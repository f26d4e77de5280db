"""Features of the Fashion-MNIST images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wisecrowd.bench.papers._fashion import Filters, compute_features_digest, find_images, load_fashion

SMALL = Filters(n_filters=6, side=3, margin=0, n_cells=2, n_components=8, n_patches=2000)


def test_features_are_computed_once_and_kept_whole(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = find_images()
    assert file is not None
    X, y = load_fashion(SMALL, file)
    assert X.shape == (60_200, 8)
    assert X.dtype == np.float32
    assert [path.name for path in (images / "cache" / "features").iterdir()] == [
        f"fashion_mnist-{compute_features_digest(SMALL, file)}.npz"
    ]
    monkeypatch.setattr(Filters, "apply", lambda *_: pytest.fail("it is in the cache"))
    again, _ = load_fashion(SMALL, file)
    assert (again == X).all()
    assert compute_features_digest(SMALL, file) != compute_features_digest(replace(SMALL, n_components=7), file)
    assert np.isin(y, range(10)).all()


def test_the_map_is_deterministic_looks_at_no_test_image_and_orders_its_components() -> None:
    images = np.random.default_rng(1).integers(256, size=(300, 8, 8), dtype=np.uint8)
    X = SMALL.apply(images, n_train=250)
    assert (SMALL.apply(images, n_train=250) == X).all()
    changed = images.copy()
    changed[250:] = 0
    np.testing.assert_array_equal(SMALL.apply(changed, n_train=250)[:250], X[:250])
    np.testing.assert_allclose(X[:250].mean(axis=0), 0, atol=1e-4)
    assert (np.diff(X[:250].var(axis=0)) <= 1e-6).all()
    covariance = np.cov(X[:250].T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-4 * covariance[0, 0]
