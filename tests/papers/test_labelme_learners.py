"""Learners on LabelMe: Rodrigues and Pereira (2018), and Mena and Ñanculef (2019), table 3. Last iteration, one seed.

Features are 512 numbers by image; 1,000 images have votes and 1,188 others are the test. The papers' figures are means
over 20 or more runs, whose spread is about one point; ours over ten seeds stand beside them, and each bound leaves two
points below ours for the seed and the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wisecrowd import DLEM, TwoStage, load_dataset

if TYPE_CHECKING:
    from wisecrowd.base.learner import Learner
    from wisecrowd.io.datasets import Dataset

#: Learner, the published test accuracy, ours (mean and standard deviation over ten seeds).
PUBLISHED: dict[str, tuple[Callable[[], Learner], float, tuple[float, float]]] = {
    "soft votes": (lambda: TwoStage(aggregator="majority-vote", classifier="mlp"), 0.8169, (0.824, 0.006)),
    "hard votes": (lambda: TwoStage(aggregator="majority-vote", classifier="mlp", hard=True), 0.7995, (0.789, 0.005)),
    "Dawid-Skene": (lambda: TwoStage(aggregator="dawid-skene", classifier="mlp"), 0.8357, (0.825, 0.005)),
    "DL-EM": (DLEM, 0.8307, (0.845, 0.005)),
}


@pytest.fixture(scope="module")
def labelme(data_folder: Path) -> Dataset:
    pytest.importorskip("torch")
    return load_dataset(data_folder / "labelme", duplicates="distinct")


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_accuracy_on_the_test_images(name: str, labelme: Any) -> None:
    make, published, (ours, spread) = PUBLISHED[name]
    learner = make().fit(labelme.features, labelme.crowd)
    test = labelme.splits.index[labelme.splits == "test"]
    found = learner.score(labelme.features.loc[test], labelme.truth.loc[test])
    assert found == pytest.approx(ours, abs=max(0.02, 3 * spread))
    assert found > published - 0.02


@pytest.mark.data
def test_dl_em_corrects_the_votes_of_the_training_images(labelme: Any) -> None:
    learner = DLEM().fit(labelme.features, labelme.crowd)
    right = (learner.labels_ == labelme.truth.loc[labelme.crowd.tasks]).mean()
    assert right > 0.815  # majority vote 0.769, Dawid-Skene 0.795
