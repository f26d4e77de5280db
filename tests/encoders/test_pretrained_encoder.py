"""Pretrained encoders are used if they are on this machine, and nothing is downloaded."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
from typing import Any

import numpy as np
import pytest

from wisecrowd.encoders.pretrained_encoder import PretrainedEncoder
from wisecrowd.encoders.stored_encoder import restore_encoder
from wisecrowd.errors import InputError, UsageError


class FakeSentenceTransformer:
    """Model that is on this machine only under the name "small", and counts letters."""

    def __init__(self, name: str, **options: Any) -> None:
        assert options == {"local_files_only": True}
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        if name != "small":
            raise OSError(f"{name} is not a local folder")

    def encode(self, texts: list[str], **_options: Any) -> np.ndarray:
        return np.array([[len(text), text.count("a")] for text in texts], dtype=np.float32)


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sentence_transformers")
    module.__spec__ = importlib.machinery.ModuleSpec("sentence_transformers", None)
    module.SentenceTransformer = FakeSentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("_installed")
def test_sentences_are_encoded_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert PretrainedEncoder("small").transform(["a cat", "dog"]).tolist() == [[5, 2], [3, 0]]
    assert "HF_HUB_OFFLINE" not in os.environ


@pytest.mark.usefixtures("_installed")
def test_a_model_that_is_not_here_is_not_downloaded() -> None:
    with pytest.raises(
        InputError, match=r"cannot load the encoder 'large' .*\(large is not a local folder\); nothing is downloaded"
    ):
        PretrainedEncoder("large").transform(["a cat"])


@pytest.mark.parametrize(
    ("content", "names"), [("text", "sentence-transformers or transformers"), ("image", "timm or torchvision")]
)
def test_missing_libraries_are_named(content: Any, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=f"needs {names}, which is not installed"):
        PretrainedEncoder("small", content).transform(["cat"])


def test_it_is_restored_by_name() -> None:
    encoder = PretrainedEncoder("resnet18", "image")
    assert restore_encoder(encoder.arrays()) == encoder
    with pytest.raises(ValueError, match="'sound' is unknown"):
        restore_encoder(encoder.arrays() | {"content": np.array("sound")})
