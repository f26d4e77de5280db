"""Fit of the confidence to public crowds: coefficients of the score, and the spread between crowds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.em.label_support import SupportModel
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.evaluate.accuracy import SHIFTS, SLOPES, ConfidencePrior, CrowdCalibration, grid_log_likelihood
from wisecrowd.io.datasets import Dataset, load_dataset

Array = NDArray[np.float64]

#: Categorical crowds with gold. Crowds of a family have the same tasks or workers, and are left out together.
FAMILIES = {
    "adult_content2": "adult",
    "bluebirds": "bluebirds",
    "cifar100n": "cifar",
    "cifar10n": "cifar",
    "crowdtruth_relations_13": "crowdtruth",
    "d_possent": "d_possent",
    "dog": "dog",
    "face_sentiment": "face_sentiment",
    "fact_eval": "fact_eval",
    "income": "income",
    "labelme": "labelme",
    "leaves": "leaves",
    "music_genre": "music_genre",
    "ner_mturk_tokens": "ner_mturk",
    "pico_tokens": "pico",
    "product_matching": "product_matching",
    "rte": "rte",
    "sentiment_polarity": "sentiment_polarity",
    "trec2010_rf": "trec",
    "trec2011": "trec",
    "weather_amt": "weather",
    "weather_cf": "weather",
    "web_search": "web_search",
    "wsd": "wsd",
    "zencrowd_all": "zencrowd",
    "zencrowd_in": "zencrowd",
}
#: Percentages of the votes. Random parts of a crowd stand for sparse crowds.
SHARES = (100, 50, 30, 20, 10, 5)
#: Method whose labels are calibrated.
METHOD = "model-average"
#: Smallest number of gold tasks of a part.
MIN_GOLD = 50
#: Largest number of gold tasks of a part in the fit; more would only cost time.
MAX_FIT_GOLD = 1_000
#: Largest number of gold tasks of a part in the likelihood of the spread between crowds.
MAX_SPREAD_GOLD = 300
#: Crowds with more votes are limited to their tasks with gold.
MAX_VOTES = 1_000_000
#: Total weight of a family in the fit of the coefficients, and ridge penalty on standardised coefficients.
FAMILY_WEIGHT, RIDGE = 100.0, 1.0
#: Degrees of freedom of the shift between crowds. Fixed: 24 families cannot determine the tails.
DEGREES_OF_FREEDOM = 4.0
#: Scale of log slopes to which the fit is weakly drawn.
TYPICAL_SLOPE_SCALE = 0.3
#: Candidates of the standard deviation between classes.
CLASS_SCALES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
#: Smallest number of gold tasks of a class in its likelihood.
MIN_CLASS_GOLD = 10


@dataclass(frozen=True, eq=False)
class GoldPart:
    """Support of the labels of gold tasks in a part of a crowd.

    Attributes
    ----------
    name : str
        Name of the crowd.
    share : int
        Percentage of its votes.
    features : ndarray of shape (n_gold, 2)
        Evidence and agreement.
    right : ndarray of shape (n_gold,)
        Whether the label is right.
    label : ndarray of int of shape (n_gold,)
        Label.
    posterior : ndarray of shape (n_gold,)
        Posterior of the label.
    """

    name: str
    share: int
    features: Array
    right: Array
    label: NDArray[Any]
    posterior: Array

    @property
    def family(self) -> str:
        """Family of the crowd."""
        return FAMILIES[self.name]

    def sample(self, size: int) -> GoldPart:
        """Return at most ``size`` gold tasks, drawn at random.

        Parameters
        ----------
        size : int
            Largest number of tasks.

        Returns
        -------
        GoldPart
        """
        if len(self.right) <= size:
            return self
        rows = np.random.default_rng(0).choice(len(self.right), size, replace=False)
        return GoldPart(
            self.name, self.share, self.features[rows], self.right[rows], self.label[rows], self.posterior[rows]
        )


class LabelledCrowd(NamedTuple):
    """Votes of a crowd and its truth.

    Attributes
    ----------
    crowd : Crowd
        Votes.
    truth : ndarray of int of shape (n_tasks,)
        True class, −1 where it is unknown and −2 where no vote names it.
    """

    crowd: Crowd
    truth: NDArray[np.int64]


def take_part(dataset: Dataset, share: int, seed: int = 0) -> LabelledCrowd:
    """Return a random part of the votes of a dataset, and the truth of its tasks.

    Parameters
    ----------
    dataset : Dataset
        Dataset with truth.
    share : int
        Percentage of the votes.
    seed : int, default=0
        Seed of the part.

    Returns
    -------
    LabelledCrowd
    """
    crowd, truth = dataset.crowd, dataset.truth
    assert truth is not None
    position = crowd.tasks.get_indexer(match_id_type(truth.index, crowd.tasks))
    if crowd.n_votes > MAX_VOTES:
        crowd = crowd[np.unique(position[position >= 0])]
        position = crowd.tasks.get_indexer(match_id_type(truth.index, crowd.tasks))
    if share < 100:
        crowd = crowd.take(np.random.default_rng([seed, share]).random(crowd.n_votes) < share / 100)
    assert crowd.classes is not None
    codes = crowd.classes.get_indexer(match_id_type(pd.Index(truth.to_numpy()), crowd.classes))
    true_class = np.full(crowd.n_tasks, -1)
    true_class[position[position >= 0]] = np.where(codes < 0, -2, codes)[position >= 0]
    return LabelledCrowd(crowd, true_class)


def measure_part(name: str, part: LabelledCrowd, share: int, method: str = METHOD) -> GoldPart:
    """Label a crowd and measure the support of the labels of its gold tasks.

    Parameters
    ----------
    name : str
        Name of the crowd.
    part : LabelledCrowd
        Votes and truth.
    share : int
        Percentage of the votes.
    method : str, optional
        Name of an aggregator.

    Returns
    -------
    GoldPart
    """
    kind: Any = find(method)
    with ignore_fit_warnings():
        posterior = np.asarray(kind().fit(part.crowd).posterior_)
    model, inferred = SupportModel.fit(part.crowd, posterior)
    support = model.second.measure(part.crowd, inferred, posterior.argmax(axis=1))
    gold = (part.truth != -1) & (support.n_votes > 0)
    features = np.column_stack([np.arcsinh(support.log_odds), support.agreement])
    return GoldPart(
        name, share, features[gold], (support.label == part.truth)[gold].astype(np.float64), support.label[gold],
        posterior.max(axis=1)[gold].astype(np.float64),
    )  # fmt: skip


@lru_cache(maxsize=4)
def measure_crowds(shares: Sequence[int] = SHARES, method: str = METHOD) -> tuple[GoldPart, ...]:
    """Measure random parts of all crowds.

    Parameters
    ----------
    shares : tuple of int, optional
        Percentages of the votes.
    method : str, optional
        Name of an aggregator.

    Returns
    -------
    tuple of GoldPart
        Parts with at least `MIN_GOLD` gold tasks.
    """
    parts = []
    for name in FAMILIES:
        dataset = load_dataset(name, duplicates="distinct")
        parts += [measure_part(name, take_part(dataset, share), share, method) for share in shares]
    return tuple(part for part in parts if len(part.right) >= MIN_GOLD)


def fit_prior(parts: Iterable[GoldPart]) -> ConfidencePrior:
    """Fit the coefficients of the score, and then the spread between crowds.

    The coefficients are a logistic regression in which every family has the same weight. The spread is fitted to scores with
    coefficients from all *other* families, by marginal likelihood, so that it contains the error of the coefficients.

    Parameters
    ----------
    parts : iterable of GoldPart
        Parts of at least two families.

    Returns
    -------
    ConfidencePrior
    """
    parts = [part.sample(MAX_FIT_GOLD) for part in parts]
    heldout_scores = []
    for family in dict.fromkeys(part.family for part in parts):
        others = _fit_coefficients([part for part in parts if part.family != family])
        heldout_scores += [(part, others[0] + part.features @ others[1:]) for part in parts if part.family == family]
    # Complete crowds differ more than sparse parts of them, in which the luck of few votes dominates.
    shift_scale, slope_scale = _fit_spread([pair for pair in heldout_scores if pair[0].share == max(SHARES)])
    slope, shift = _fit_centre(heldout_scores, shift_scale, slope_scale)
    intercept, evidence, agreement = (slope * _fit_coefficients(parts)).tolist()
    prior = ConfidencePrior(
        intercept=intercept + shift, evidence=evidence, agreement=agreement, shift_scale=shift_scale,
        degrees_of_freedom=DEGREES_OF_FREEDOM, slope_scale=slope_scale, class_scale=CLASS_SCALES[0],
    )  # fmt: skip
    return _fit_class_scale(prior, [(part, slope * score + shift) for part, score in heldout_scores])


def _fit_coefficients(parts: Sequence[GoldPart]) -> Array:
    """Return intercept and coefficients of a ridge logistic regression with equal weight of all families."""
    from scipy.special import expit

    n_parts = pd.Series([part.family for part in parts]).value_counts()
    x = np.concatenate([part.features for part in parts])
    y = np.concatenate([part.right for part in parts])
    weight = np.concatenate(
        [np.full(len(part.right), FAMILY_WEIGHT / n_parts[part.family] / len(part.right)) for part in parts]
    )
    mean = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    z = np.column_stack([np.ones(len(x)), (x - mean) / scale])
    ridge = np.diag([0.0, *[RIDGE] * x.shape[1]])
    coefficients = np.zeros(z.shape[1])
    for _ in range(50):
        p = expit(z @ coefficients)
        gradient = z.T @ (weight * (y - p)) - ridge @ coefficients
        step = np.linalg.solve((z * (weight * p * (1 - p))[:, None]).T @ z + ridge, gradient)
        coefficients += step
        if np.abs(step).max() < 1e-9:
            break
    slopes = coefficients[1:] / scale
    return np.array([coefficients[0] - slopes @ mean, *slopes])


def _fit_spread(scores: Sequence[tuple[GoldPart, Array]]) -> tuple[float, float]:
    """Return the scale of the shift and that of log slopes, by marginal likelihood."""
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    n_parts = pd.Series([part.family for part, _ in scores]).value_counts()
    weight = np.array([1 / n_parts[part.family] for part, _ in scores])
    likelihoods = []
    for part, score in scores:
        rows = np.random.default_rng(0).permutation(len(score))[:MAX_SPREAD_GOLD]
        likelihoods.append(grid_log_likelihood(score[rows], part.right[rows]))
    table = np.stack(likelihoods)

    def loss(parameters: Array) -> float:
        log_slope, shift, log_shift_scale, log_slope_scale = parameters
        z = (SHIFTS - shift) / np.exp(log_shift_scale)
        log_prior = -0.5 * (DEGREES_OF_FREEDOM + 1) * np.log1p(z**2 / DEGREES_OF_FREEDOM)
        log_prior = log_prior - 0.5 * ((np.log(SLOPES) - log_slope) / np.exp(log_slope_scale))[:, None] ** 2
        log_prior -= logsumexp(log_prior)
        # A weak prior keeps the scale of slopes away from zero and infinity.
        penalty = 0.5 * (log_slope_scale - np.log(TYPICAL_SLOPE_SCALE)) ** 2
        return penalty - float(weight @ logsumexp(table + log_prior, axis=(1, 2)))

    start = [0.0, 0.0, np.log(0.6), np.log(TYPICAL_SLOPE_SCALE)]
    result = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4, "maxiter": 2_000})
    return float(np.exp(result.x[2])), float(np.exp(result.x[3]))


def _fit_centre(
    scores: Sequence[tuple[GoldPart, Array]], shift_scale: float, slope_scale: float
) -> tuple[float, float]:
    """Return slope and shift with which the confidence, the mean over crowds, has the smallest log loss.

    The mean of probabilities over a spread of shifts is nearer to one half than that of the median shift. The slope makes up
    for it.
    """
    from scipy.optimize import minimize

    n_parts = pd.Series([part.family for part, _ in scores]).value_counts()
    prior = ConfidencePrior(
        intercept=0.0, evidence=1.0, agreement=1.0, shift_scale=shift_scale, degrees_of_freedom=DEGREES_OF_FREEDOM,
        slope_scale=slope_scale, class_scale=1.0,
    )  # fmt: skip
    calibration = CrowdCalibration.from_outcomes(prior)

    def loss(parameters: Array) -> float:
        total = 0.0
        for part, score in scores:
            p = np.clip(calibration.confidence(np.exp(parameters[0]) * score + parameters[1]), 1e-9, 1 - 1e-9)
            losses = -np.where(part.right > 0, np.log(p), np.log1p(-p))
            total += float(losses.mean()) / n_parts[part.family]
        return total

    result = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6})
    return float(np.exp(result.x[0])), float(result.x[1])


def _fit_class_scale(prior: ConfidencePrior, scores: Sequence[tuple[GoldPart, Array]]) -> ConfidencePrior:
    """Return the prior with the standard deviation between classes that makes the outcomes of each class most probable."""
    from dataclasses import replace

    full = [(part, score) for part, score in scores if part.share == max(SHARES)]
    totals = dict.fromkeys(CLASS_SCALES, 0.0)
    for part, score in full:
        codes, counts = np.unique(part.label, return_counts=True)
        for code in codes[counts >= MIN_CLASS_GOLD][:20]:
            own = part.label == code
            if own.all():
                continue
            others = CrowdCalibration.from_outcomes(prior, score[~own], part.right[~own])
            likelihood = grid_log_likelihood(score[own], part.right[own])
            for scale in CLASS_SCALES:
                spread = CrowdCalibration(replace(prior, class_scale=scale), others.weights).spread_over_classes()
                peak = likelihood.max()
                totals[scale] += peak + np.log(max((np.exp(likelihood - peak) * spread).sum(), 1e-300))
    return replace(prior, class_scale=max(totals, key=totals.__getitem__)) if full else prior
