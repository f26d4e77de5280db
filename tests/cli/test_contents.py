"""Texts and images of tasks as features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.cli._contents import read_contents
from wisecrowd.encoders.image_encoder import ImageEncoder
from wisecrowd.encoders.pretrained_encoder import PretrainedEncoder
from wisecrowd.encoders.text_encoder import TextEncoder
from wisecrowd.errors import InputError

CROWD = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_texts_of_a_table() -> None:
    pd.DataFrame({"photo": ["t2", "t1", "t3"], "words": ["a dog", "a cat", "new"]}).to_csv("tasks.csv", index=False)
    contents = read_contents(Path("tasks.csv"), None, task="photo", column="words")
    encoder = contents.fit_encoder(CROWD, None)
    assert isinstance(encoder, TextEncoder)
    assert "new" not in encoder.terms  # fitted to the tasks with votes
    features = contents.encode(encoder)
    assert features.tasks.tolist() == ["t2", "t1", "t3"]
    assert (features.rows[2] == 0).all()
    assert isinstance(contents.fit_encoder(CROWD, "small"), PretrainedEncoder)


def test_images_of_a_folder() -> None:
    image = pytest.importorskip("PIL.Image")
    for number in (1, 2):
        image.fromarray(np.full((8, 8, 3), 50 * number, dtype=np.uint8)).save(f"t{number}.png")
    contents = read_contents(None, Path(), task=None, column=None)
    encoder = contents.fit_encoder(CROWD, None)
    assert isinstance(encoder, ImageEncoder)
    assert len(contents.encode(encoder).rows) >= 2


def test_what_is_wrong() -> None:
    pd.DataFrame({"task": ["t1"], "text": ["a cat"]}).to_csv("few.csv", index=False)
    with pytest.raises(InputError, match="no text for 1 tasks, for example 't2'"):
        read_contents(Path("few.csv"), None, task=None, column=None).fit_encoder(CROWD, None)
    pd.DataFrame({"task": ["t1", "t1"], "text": ["a", "b"]}).to_csv("twice.csv", index=False)
    with pytest.raises(InputError, match="'t1'"):
        read_contents(Path("twice.csv"), None, task=None, column=None)
