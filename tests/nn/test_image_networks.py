"""The network of Xu et al. (2019)."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import AdaptiveDifficulty, Crowd
from wisecrowd.errors import InputError
from wisecrowd.nn.image_networks import FourConvolutions

torch = pytest.importorskip("torch")


def test_the_layers_are_those_of_the_appendix() -> None:
    network = FourConvolutions()((3, 150, 150), 2)
    kinds = [type(layer).__name__ for layer in network]
    block = ["Conv2d", "ReLU", "MaxPool2d"]
    assert kinds == ["Identity", *block * 4, "BatchNorm2d", "Flatten", "Linear", "ReLU", "Dropout", "Linear"]
    assert network[-4].in_features == 3136  # 64 channels of 7 x 7 pixels, as in the authors' program
    assert network(torch.zeros(2, 3, 150, 150)).shape == (2, 2)


@pytest.mark.parametrize("shape", [(28, 28), (784,), (1, 28, 28)])
def test_small_images_are_padded(shape: tuple[int, ...]) -> None:
    network = FourConvolutions(channels=(4, 4, 8, 8))(shape, 3)
    assert network(torch.zeros(5, *shape)).shape == (5, 3)


def test_other_features_are_refused() -> None:
    with pytest.raises(InputError, match="which is no image"):
        FourConvolutions()((7,), 2)


def test_it_learns_as_the_classifier_of_a_learner() -> None:
    rng = np.random.default_rng(0)
    z = np.arange(40) % 2
    X = rng.normal(size=(40, 12, 12)) * 0.3
    X[z == 1, 3:9, 3:9] += 1
    task, worker = np.divmod(np.arange(120), 3)
    label = np.where(rng.random(120) < 0.8, z[task], 1 - z[task])
    crowd = Crowd.from_codes(task, worker, label, tasks=range(40), workers=range(3), classes=[0, 1])
    network = FourConvolutions(channels=(4, 4, 8, 8), hidden=8, dropout=0.0)
    model = AdaptiveDifficulty(classifier=network, max_iter=3, tol=0.0).fit(X, crowd)
    assert model.predict_proba(X).shape == (40, 2)
    assert (model.labels_.to_numpy() == z).mean() > 0.7
