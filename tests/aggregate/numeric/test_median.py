"""The median."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, Mean, Median, load_dataset
from wisecrowd.evaluate.metrics import mae, rmse


def test_wild_labels_do_not_move_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    label_probs = truth[:, None] + 0.1 * rng.normal(size=(200, 9))
    label_probs[:, :4] = 1e6  # nearly half
    crowd = Crowd.from_triples([(t, w, label_probs[t, w]) for t in range(200) for w in range(9)], numeric=True)
    assert mae(truth, Median().fit(crowd).estimates_) < 0.3
    assert mae(truth, Mean().fit(crowd).estimates_) > 1e5


def test_more_labels_bring_it_nearer_to_the_truth_and_its_standard_error_says_how_near() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=500)
    found = []
    for labels in (5, 21, 81):
        label_probs = truth[:, None] + rng.normal(size=(500, labels))
        crowd = Crowd.from_triples([(t, w, label_probs[t, w]) for t in range(500) for w in range(labels)], numeric=True)
        fitted = Median().fit(crowd)
        found.append(rmse(truth, fitted.estimates_))
        assert found[-1] == pytest.approx(float(np.sqrt((fitted.standard_error_**2).mean())), rel=0.15)
    assert found[0] > found[1] > found[2]


def test_a_large_crowd_is_no_different() -> None:
    rng = np.random.default_rng(2)
    n = 300_000
    crowd = Crowd.from_codes(rng.integers(60_000, size=n), rng.integers(500, size=n), rng.normal(size=n).round(2),
                  tasks=range(60_000), workers=range(500), classes=None, duplicates="keep")  # fmt: skip
    wanted = pd.Series(crowd.label).groupby(crowd.task).median()
    np.testing.assert_allclose(Median().fit(crowd).labels_[wanted.index], wanted, atol=1e-12)


# Zheng et al. (2017), N_Emotion.
@pytest.mark.data
def test_published_errors(data_folder: Path) -> None:
    data = load_dataset(data_folder / "headline_emotions")
    fitted = Median().fit(data.crowd)
    assert mae(data.truth, fitted) == pytest.approx(13.53, abs=0.005)
    assert rmse(data.truth, fitted) == pytest.approx(21.26, abs=0.006)
