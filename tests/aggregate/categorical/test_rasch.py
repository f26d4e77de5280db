from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd, OneCoin, Rasch, load_dataset, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy

GOOD = {"expert": 0.5, "noisy": 0.5}


def test_with_one_difficulty_for_all_it_is_the_one_coin_model() -> None:
    crowd = simulate_crowd(300, 12, 3, votes_per_task=6, workers=["noisy(0.7)"] * 12, random_state=0).crowd
    flat = Rasch(difficulty_sd=0, ability_sd=np.inf, tol=1e-12, max_iter=2000).fit(crowd)
    coin = OneCoin(smoothing=0, diagonal=0, tol=1e-12, max_iter=2000).fit(crowd)
    np.testing.assert_allclose(flat.posterior_, coin.posterior_, atol=1e-4)


def test_with_the_truth_known_it_is_logistic_regression() -> None:
    """Two crossed effects with Gaussian priors, fitted by scikit-learn on one-hot workers and tasks."""
    from sklearn.linear_model import LogisticRegression

    made = simulate_crowd(30, 8, 2, votes_per_task=6, workers=["noisy(0.7)"] * 8, random_state=1)
    crowd = made.crowd
    fitted = Rasch(ability_mean=0, tol=1e-14, max_iter=2000).fit(crowd, truth=made.truth)
    design = np.hstack([np.eye(8)[crowd.worker], -np.eye(30)[crowd.task]])
    right = crowd.label == made.truth_codes[crowd.task]
    known = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(design, right)
    np.testing.assert_allclose(np.concatenate([fitted.ability_, fitted.task_parameters_[0]]), known.coef_[0], atol=1e-3)


def test_luck_keeps_everybody_above_it() -> None:
    crowd = simulate_crowd(100, 10, 4, votes_per_task=5, workers=["adversary"] * 3 + ["noisy"] * 7).crowd
    fitted = Rasch(guessing="chance").fit(crowd)
    land = fitted._make_model(crowd)
    point = np.concatenate([fitted.ability_, fitted.task_parameters_.ravel()])
    view = land._view(point)
    assert (np.exp(view.log_right) >= 0.25 - 1e-12).all()
    np.testing.assert_allclose(np.exp(view.log_right) + np.exp(view.log_wrong), 1)


@pytest.mark.parametrize("guessing", [1.0, -0.1, "luck", None, float("nan")])
def test_luck_must_be_a_probability(guessing: object) -> None:
    with pytest.raises(UsageError, match="guessing must be"):
        Rasch(guessing=guessing).fit(Crowd.from_triples([("t", "w", "a"), ("t", "v", "b")]))  # type: ignore[arg-type]


def test_simulated_difficulty_and_ability_are_found_the_better_the_more_labels() -> None:
    difficulty, ability = [], []
    for labels in (3, 10, 30):
        made = simulate_crowd(400, 30, 3, votes_per_task=labels, workers=GOOD, difficulty="beta", random_state=3)
        fitted = Rasch(guessing="chance").fit(made.crowd)
        difficulty.append(fitted.tasks_["difficulty"].corr(made.difficulty, method="spearman"))
        ability.append(fitted.workers_["ability"].corr(made.accuracy))
    assert difficulty[0] < difficulty[1] < difficulty[2]
    assert difficulty[2] > 0.65
    assert ability[0] < ability[2]
    assert ability[2] > 0.9


#: Accuracies of an independent implementation, which has .868 to .883 on the web searches.
REFERENCE = {"music_genre": 0.796, "labelme": 0.776, "d_possent": 0.947, "web_search": 0.868, "bluebirds": 0.574}


@pytest.mark.data
@pytest.mark.parametrize("name", REFERENCE)
def test_reference_accuracies(name: str, data_folder: Path) -> None:
    data = load_dataset(data_folder / name, duplicates="distinct")
    assert accuracy(data.truth, Rasch().fit(data.crowd)) == pytest.approx(REFERENCE[name], abs=0.001)
