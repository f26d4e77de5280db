"""Images become features by their colours and edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd.encoders import image_encoder
from wisecrowd.encoders.image_encoder import ImageEncoder, describe_images
from wisecrowd.encoders.stored_encoder import restore_encoder
from wisecrowd.errors import InputError, UsageError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> pd.Series:
    """Images with upright or lying stripes, red or blue, with noise."""
    folder, rng, files = tmp_path_factory.mktemp("images"), np.random.default_rng(0), []
    for number in range(12):
        stripes = np.where(np.arange(40) // 5 % 2, 200, 20)
        grey = np.broadcast_to(stripes if number % 2 else stripes[:, None], (40, 40)) + rng.integers(0, 20, (40, 40))
        pixels = np.zeros((40, 40, 3), dtype=np.uint8)
        pixels[:, :, 0 if number % 4 < 2 else 2] = grey
        files.append(folder / f"{number}.png")
        Image.fromarray(pixels).save(files[-1])
    return pd.Series(files)


def test_colours_and_directions_are_told_apart(paths: pd.Series) -> None:
    rows = ImageEncoder(n_features=4).fit(paths).transform(paths)
    assert rows.shape == (12, 4)
    kind = np.arange(12) % 4
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    same = kind[:, None] == kind[None]
    assert distance[same].max() < distance[~same].min()


def test_it_is_restored(paths: pd.Series) -> None:
    encoder = ImageEncoder(n_features=3).fit(paths)
    restored = restore_encoder(encoder.arrays())
    np.testing.assert_array_equal(restored.transform(paths[:2]), encoder.transform(paths[:2]))
    for change in ({"mean": np.zeros(2)}, {"scale": np.zeros_like(encoder.scale)}):
        with pytest.raises(ValueError, match="of the encoder"):
            restore_encoder(encoder.arrays() | change)


def test_what_is_wrong(paths: pd.Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(InputError, match="cannot be read as an image"):
        describe_images([tmp_path / "text.png"])
    with pytest.raises(InputError, match="there is no image"):
        describe_images([tmp_path / "none.png"])
    with pytest.raises(UsageError, match="not fitted yet"):
        ImageEncoder().transform(paths)
    with pytest.raises(UsageError, match="n_features must be 1 or more"):
        ImageEncoder(n_features=0).fit(paths)
    monkeypatch.setattr(image_encoder, "MAX_PIXELS", 100)
    with pytest.raises(InputError, match="40 x 40 pixels; at most 100"):
        describe_images(paths[:1])
