"""Pretrained encoders of texts and images that are on this machine; nothing is downloaded."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.encoders.image_encoder import is_sequence_of_paths, open_image
from wisecrowd.encoders.text_encoder import is_sequence_of_strings
from wisecrowd.errors import InputError, UsageError, check_choice

#: Texts or images that are encoded together.
BATCH_SIZE = 32
#: Side in pixels of images for torchvision, and mean and standard deviation of the images of ImageNet.
IMAGE_SIDE = 224
IMAGE_MEAN, IMAGE_SCALE = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Libraries that encode texts and images, in order of preference.
LIBRARIES = {"text": ("sentence_transformers", "transformers"), "image": ("timm", "torchvision")}


@dataclass
class PretrainedEncoder(FeatureEncoder):
    """Encoder of texts (sentence-transformers, transformers) or images (timm, torchvision) whose weights are on this machine.

    Nothing is downloaded, and no code of a model repository is run. A saved learner keeps the name of the encoder, not its
    weights.

    Parameters
    ----------
    name : str
        Name of the model, or folder with its files.
    content : {"text", "image"}, default="text"
        Type of the task contents.

    Examples
    --------
    >>> PretrainedEncoder("all-MiniLM-L6-v2").accepts(["a red bird"])
    True
    """

    kind: ClassVar[str] = "pretrained"

    name: str
    content: Literal["text", "image"] = "text"

    def __post_init__(self) -> None:
        check_choice("content", self.content, tuple(LIBRARIES))

    def accepts(self, X: Any) -> bool:
        """Return whether these are texts, or paths of images.

        Parameters
        ----------
        X : object
            Argument of ``predict``.

        Returns
        -------
        bool
        """
        return is_sequence_of_strings(X) if self.content == "text" else is_sequence_of_paths(X)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the embeddings of texts or images.

        Parameters
        ----------
        X : sequence of str or of path-like
            Texts, or paths of images.

        Returns
        -------
        ndarray of shape (n_tasks, n_features)

        Raises
        ------
        UsageError
            If no library for the content is installed.
        InputError
            If the model is not on this machine.
        """
        library = self._find_library()
        encode = {
            "sentence_transformers": _encode_sentences,
            "transformers": _encode_tokens,
            "timm": _encode_with_timm,
            "torchvision": _encode_with_torchvision,
        }[library]
        with _offline():
            try:
                return np.asarray(encode(self.name, list(X)), dtype=np.float64)
            except InputError:
                raise
            except Exception as error:  # each library has errors of its own for a model that is not there
                reason = str(error).strip().splitlines()[:1]
                raise InputError(
                    f"{library} cannot load the encoder {self.name!r} from this machine ({''.join(reason)[:200]}); nothing is "
                    "downloaded. Give the folder of a model, or download it first with that library"
                ) from error

    def _find_library(self) -> str:
        """Return the first library that is installed."""
        for library in LIBRARIES[self.content]:
            if importlib.util.find_spec(library) is not None:
                return library
        names = " or ".join(name.replace("_", "-") for name in LIBRARIES[self.content])
        default = "TF-IDF" if self.content == "text" else "pixels, colours and edges"
        raise UsageError(
            f"the encoder {self.name!r} needs {names}, which is not installed; install it (pip install), or leave the encoder "
            f"out to use {default}"
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return name and content."""
        return {"kind": np.array(self.kind), "name": np.array(self.name), "content": np.array(self.content)}

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`.

        Returns
        -------
        PretrainedEncoder

        Raises
        ------
        ValueError
            If the content is unknown.
        """
        content = str(arrays["content"])
        if content not in LIBRARIES:
            raise ValueError(f"an encoder of {content[:20]!r} is unknown")
        return cls(str(arrays["name"]), content)  # type: ignore[arg-type]  # checked


@contextmanager
def _offline() -> Iterator[None]:
    """Forbid downloads from the Hugging Face Hub."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _encode_sentences(name: str, texts: list[str]) -> Any:
    """Return the sentence embeddings of sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(name, local_files_only=True)
    return model.encode(texts, batch_size=BATCH_SIZE, show_progress_bar=False, convert_to_numpy=True)


def _encode_tokens(name: str, texts: list[str]) -> Any:
    """Return the mean of the token embeddings of a transformer."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
    model = AutoModel.from_pretrained(name, local_files_only=True).eval()
    means = []
    for batch in _batches(texts):
        inputs = tokenizer(list(batch), padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"][:, :, None].to(hidden.dtype)
        means.append(((hidden * mask).sum(dim=1) / mask.sum(dim=1)).numpy())
    return np.concatenate(means)


def _encode_with_timm(name: str, paths: list[Any]) -> Any:
    """Return the pooled features of a timm model."""
    import timm

    model = timm.create_model(name, pretrained=True, num_classes=0).eval()
    settings = timm.data.resolve_model_data_config(model)
    return _encode_pixels(model, paths, settings["input_size"][-1], settings["mean"], settings["std"])


def _encode_with_torchvision(name: str, paths: list[Any]) -> Any:
    """Return the pooled features of a torchvision model."""
    import torch
    from torchvision import models

    weights = models.get_model_weights(name).DEFAULT
    file = os.path.join(torch.hub.get_dir(), "checkpoints", os.path.basename(weights.url))
    if not os.path.isfile(file):
        raise InputError(
            f"the weights of {name!r} are not on this machine ({file}), and nothing is downloaded; download them first with "
            "torchvision"
        )
    model = models.get_model(name, weights=weights).eval()
    for head in ("fc", "classifier", "heads", "head"):
        if hasattr(model, head):
            setattr(model, head, torch.nn.Identity())
    return _encode_pixels(model, paths, IMAGE_SIDE, IMAGE_MEAN, IMAGE_SCALE)


def _encode_pixels(model: Any, paths: list[Any], side: int, mean: Sequence[float], scale: Sequence[float]) -> Any:
    """Return the outputs of a network for images."""
    import torch

    outputs = []
    for batch in _batches(paths):
        pixels = np.stack([np.asarray(open_image(path, side), dtype=np.float32) / 255 for path in batch])
        pixels = ((pixels - np.array(mean)) / np.array(scale)).astype(np.float32)
        with torch.no_grad():
            outputs.append(model(torch.from_numpy(pixels).permute(0, 3, 1, 2)).flatten(1).numpy())
    return np.concatenate(outputs)


def _batches(values: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), BATCH_SIZE):
        yield values[start : start + BATCH_SIZE]
