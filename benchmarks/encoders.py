"""Default features of texts and images, compared with stored embeddings.

    python benchmarks/encoders.py

Needs the datasets crowdtruth_relations_13, rte and fashion_mnist (WISECROWD_DATA). Writes results/encoders.json and
results/encoders.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import HERE, machine
from tables import Ledger

import wisecrowd as wc
from wisecrowd.encoders.image_encoder import ImageEncoder
from wisecrowd.encoders.text_encoder import TextEncoder

PROTOCOL = [
    "Accuracy of Raykar on the tasks of five folds whose votes and contents it was not trained with (encoders are fitted to",
    "the training folds), and of its posterior on the tasks that it was trained with, means over three seeds of the folds.",
    "*Text* is crowdtruth_relations_13, one relation of 13 per sentence; *RTE* asks whether one text entails another, which",
    "is no question of words. *TF-IDF* is `--texts`; *embedding* are the stored sentence embeddings. *Clothes* are 3,000",
    "images of Fashion-MNIST with three votes each of 20 simulated workers; *image features* are `--images`.",
]
FOLDS, SEEDS = 5, 3
#: Number of images of Fashion-MNIST.
N_IMAGES = 3_000


def score(crowd: wc.Crowd, truth: pd.Series, contents: Any, encoder: Any, seed: int) -> tuple[float, float, float]:
    """Return the accuracies on held-out and training tasks, and that of a constant prediction."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation(np.arange(crowd.n_tasks) % FOLDS)
    right = np.zeros(crowd.n_tasks)
    trained: list[float] = []
    known = truth.loc[crowd.tasks].to_numpy()
    for number in range(FOLDS):
        train = fold != number
        rows = contents if encoder is None else encoder().fit(contents[train]).transform(contents)
        model = wc.Raykar().fit(rows[train], crowd[train].replace_fields(has_task_order=True))
        right[~train] = model.predict(rows[~train]) == known[~train]
        trained.append(float((model.labels_.to_numpy() == known[train]).mean()))
    most_frequent = pd.Series(known).value_counts(normalize=True).iloc[0]
    return float(right.mean()), float(np.mean(trained)), float(most_frequent)


def add(ledger: Ledger, data: str, crowd: wc.Crowd, truth: pd.Series, sources: dict[str, tuple[Any, Any]]) -> None:
    for title, (contents, encoder) in sources.items():
        scores = np.array([score(crowd, truth, contents, encoder, seed) for seed in range(SEEDS)])
        held_out, trained, constant = scores.mean(axis=0)
        figures = {"held-out tasks": held_out, "sd": float(scores[:, 0].std(ddof=1)), "training tasks": trained}
        figures["most frequent class"] = constant
        ledger.note("Default features beside embeddings", data=data, features=title, **figures)


def add_texts(ledger: Ledger) -> None:
    """Compare TF-IDF with the stored embeddings of sentences."""
    for title, name, columns in (
        ("Text", "crowdtruth_relations_13", ["sentence"]),
        ("RTE", "rte", ["text", "hypothesis"]),
    ):
        dataset = wc.load_dataset(name, duplicates="distinct")
        assert dataset.texts is not None
        assert dataset.features is not None
        assert dataset.truth is not None
        tasks = dataset.crowd.tasks
        texts = dataset.texts.loc[tasks, columns].astype(str).agg(" ".join, axis=1).to_numpy(dtype=object)
        sources = {
            "TF-IDF": (texts, TextEncoder),
            "embedding": (dataset.features.loc[tasks].to_numpy(dtype=np.float64), None),
        }
        add(ledger, title, dataset.crowd, dataset.truth, sources)


def add_images(ledger: Ledger, path: Path) -> None:
    """Compare the default features of images with pixels."""
    from PIL import Image

    with np.load(path) as arrays:
        images, labels = arrays["X"][:N_IMAGES], arrays["y"][:N_IMAGES].astype(np.int64)
    rng = np.random.default_rng(0)
    worker = np.stack([rng.permutation(20)[:3] for _ in range(N_IMAGES)])
    accuracy = rng.uniform(0.4, 0.9, size=20)
    vote = np.where(rng.random(worker.shape) < accuracy[worker], labels[:, None], rng.integers(10, size=worker.shape))
    crowd = wc.Crowd.from_codes(
        np.repeat(np.arange(N_IMAGES), 3),
        worker.ravel(),
        vote.ravel(),
        tasks=range(N_IMAGES),
        workers=range(20),
        classes=range(10),
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = np.array([Path(folder) / f"{number}.png" for number in range(N_IMAGES)], dtype=object)
        for file, pixels in zip(paths, images, strict=True):
            Image.fromarray(pixels).save(file)
        sources = {"image features": (paths, ImageEncoder), "pixels": (images.reshape(N_IMAGES, -1) / 255, None)}
        add(ledger, "Clothes", crowd, pd.Series(labels, index=range(N_IMAGES)), sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results", help="folder for the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ledger = Ledger()
    add_texts(ledger)
    for folder in os.environ.get("WISECROWD_DATA", "").split(os.pathsep):
        if (file := Path(folder) / "fashion_mnist" / "images.npz").is_file():
            add_images(ledger, file)
    ledger.report(
        "encoders",
        "Features without a feature file",
        machine(names=("numpy", "scikit-learn")),
        PROTOCOL,
        options.output,
    )


if __name__ == "__main__":
    main()
