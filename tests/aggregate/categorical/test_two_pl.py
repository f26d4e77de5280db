from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd, Rasch, TwoPL, load_dataset, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy


def test_with_one_discrimination_for_all_it_is_the_rasch_model() -> None:
    crowd = simulate_crowd(100, 10, 3, votes_per_task=5, random_state=0).crowd
    for guessing in (0.0, "chance"):
        same = TwoPL(discrimination_sd=0, guessing=guessing).fit(crowd)  # type: ignore[arg-type]
        rasch = Rasch(guessing=guessing).fit(crowd)  # type: ignore[arg-type]
        np.testing.assert_allclose(same.posterior_, rasch.posterior_, atol=1e-9)
        assert (same.tasks_["discrimination"] == 1).all()


def test_own_model_is_recovered() -> None:
    rng = np.random.default_rng(1)
    n, r, k = 300, 150, 3
    theta, d, sharp = rng.normal(1, 1, r), rng.normal(0, 1, n), np.exp(rng.normal(0, 0.5, n))
    truth = rng.integers(k, size=n)
    correlations = []
    for workers in (15, 150):
        task, worker = np.nonzero(np.ones((n, workers)))
        right = rng.random(len(task)) < 1 / (1 + np.exp(-sharp[task] * (theta[worker] - d[task])))
        label = np.where(right, truth[task], (truth[task] + rng.integers(1, k, len(task))) % k)
        crowd = Crowd.from_codes(task, worker, label, tasks=range(n), workers=range(workers), classes=range(k))
        fitted = TwoPL().fit(crowd, truth=dict(enumerate(truth)))
        correlations.append(
            [
                np.corrcoef(fitted.ability_, theta[:workers])[0, 1],
                np.corrcoef(fitted.tasks_["difficulty"], d)[0, 1],
                np.corrcoef(np.log(fitted.tasks_["discrimination"]), np.log(sharp))[0, 1],
            ]
        )
    few, many = np.array(correlations)
    assert (few < many).all()
    assert (many > [0.97, 0.9, 0.7]).all()


def test_a_spread_must_not_be_negative() -> None:
    with pytest.raises(UsageError, match="standard deviation of 0 or more"):
        TwoPL(discrimination_sd=-1).fit(Crowd.from_triples([("t", "w", "a"), ("t", "v", "b")]))


@pytest.mark.data
def test_it_does_on_real_data_what_the_rasch_model_does(data_folder: Path) -> None:
    """No published figure of this model without gold is known; it should not fall far behind its special case."""
    for name in ("music_genre", "labelme", "web_search"):
        data = load_dataset(data_folder / name, duplicates="distinct")
        rasch, sharper = (accuracy(data.truth, method.fit(data.crowd)) for method in (Rasch(), TwoPL()))
        assert sharper > rasch - 0.01
