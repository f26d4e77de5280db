"""EM on patterns against EM on all pixels of a dense stack."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd, MaskEM, Staple
from wisecrowd.errors import UsageError, ignore_fit_warnings
from wisecrowd.simulate.masks import simulate_masks

RNG = np.random.default_rng(0)
SHAPE = (6, 7)
TRUTH = np.add.outer((np.arange(6) - 2.5) ** 2, (np.arange(7) - 3) ** 2) < 6
STACK = (RNG.random((4, *SHAPE)) < np.array([0.95, 0.9, 0.8, 0.6])[:, None, None]) == TRUTH
CROWD = MaskCrowd.from_arrays(["i"] * 4, list("abcd"), list(STACK))


def run_dense_staple(n_iter: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[float]]:
    """Run the EM of Warfield et al. on every pixel, with the share of votes as prior."""
    votes = STACK.reshape(4, -1).astype(float)
    prior = votes.mean()
    sensitivity = specificity = np.full(4, 0.99)
    likelihood = []
    for _ in range(n_iter):
        inside = prior * np.prod(np.where(votes > 0, sensitivity[:, None], 1 - sensitivity[:, None]), axis=0)
        outside = (1 - prior) * np.prod(np.where(votes > 0, 1 - specificity[:, None], specificity[:, None]), axis=0)
        weight = inside / (inside + outside)
        likelihood.append(float(np.log(inside + outside).sum()))
        sensitivity = (votes * weight).sum(axis=1) / weight.sum()
        specificity = ((1 - votes) * (1 - weight)).sum(axis=1) / (1 - weight).sum()
    return weight.reshape(SHAPE), sensitivity, specificity, likelihood


@pytest.mark.parametrize("shared", [True, False])
def test_staple_on_patterns_is_staple_on_pixels(shared: bool) -> None:
    method = Staple(shared=shared, prior="votes", region="image", shrinkage=0, max_iter=15, tol=0)
    with ignore_fit_warnings():
        fitted = method.fit(CROWD)
    weight, sensitivity, specificity, likelihood = run_dense_staple(15)
    assert fitted.probability_of("i") == pytest.approx(weight, abs=1e-9)
    assert fitted.sensitivity_ == pytest.approx(sensitivity, abs=1e-8)
    assert fitted.specificity_ == pytest.approx(specificity, abs=1e-8)
    assert fitted.trace_ == pytest.approx(likelihood, abs=1e-6)
    assert (fitted.mask_of("i") == (weight >= 0.5)).all()


@pytest.mark.parametrize("prior", ["votes", "estimated"])
@pytest.mark.parametrize("method", [Staple, MaskEM])
def test_likelihood_never_falls(method: type, prior: str) -> None:
    crowd = simulate_masks(n_tasks=8, n_workers=5, votes_per_task=4, height=12, width=12, random_state=2).crowd
    with ignore_fit_warnings():
        trace = method(prior=prior, shrinkage=0, tol=0, max_iter=25).fit(crowd).trace_
    assert len(trace) > 10
    assert (np.diff(trace) > -1e-6).all()


def test_wrong_settings_are_refused() -> None:
    for options, message in (
        ({"region": "circle"}, "region"),
        ({"prior": "x"}, "prior"),
        ({"shrinkage": -1.0}, "shrinkage must be 0 or more; got -1.0"),
        ({"max_iter": 0}, "max_iter must be 1 or more; got 0"),
    ):
        with pytest.raises(UsageError, match=message):
            Staple(**options).fit(CROWD)  # type: ignore[arg-type]  # the mistakes
