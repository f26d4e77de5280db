"""The mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd, Mean, load_dataset
from wisecrowd.evaluate.metrics import mae, rmse


def test_the_standard_error_shrinks_with_the_root_of_the_labels() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    found, claimed = [], []
    for labels in (5, 20, 80):
        label_probs = truth[:, None] + rng.normal(size=(400, labels))
        votes = [(task, worker, label_probs[task, worker]) for task in range(400) for worker in range(labels)]
        fitted = Mean().fit(Crowd.from_triples(votes, numeric=True))
        found.append(rmse(truth, fitted.estimates_))
        claimed.append(float(np.sqrt((fitted.standard_error_**2).mean())))
    np.testing.assert_allclose(found, 1 / np.sqrt([5, 20, 80]), rtol=0.1)
    np.testing.assert_allclose(claimed, 1 / np.sqrt([5, 20, 80]), rtol=0.05)


# Zheng et al. (2017), N_Emotion.
@pytest.mark.data
def test_published_errors(data_folder: Path) -> None:
    data = load_dataset(data_folder / "headline_emotions")
    fitted = Mean().fit(data.crowd)
    assert mae(data.truth, fitted) == pytest.approx(12.02, abs=0.005)
    assert rmse(data.truth, fitted) == pytest.approx(17.84, abs=0.006)
