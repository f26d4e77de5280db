"""Distribution of each training feature, to recognise columns in another order, unit or scaling in new features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import preview
from wisecrowd.utils.text import count_noun

#: Quantiles that are kept of each feature: 0.05, 0.1, …, 0.95. The extremes are left out, because they vary most between samples.
LEVELS = np.arange(1, 20) / 20
#: Smallest number of training rows and of new rows whose distribution says anything.
MIN_ROWS = 30
#: Rows that stand for all rows, which bounds the cost for large tables.
MAX_ROWS = 1000
#: Largest number of features whose distributions are kept; more are pixels or bags of words.
MAX_COLUMNS = 2000
#: Largest number of features whose order is compared; the cost grows with its square.
MAX_ORDERED_COLUMNS = 400
#: Probability of a difference in any column by the sampling of rows alone.
FALSE_ALARM_RATE = 1e-4
#: Difference of means, in training spreads, below which a difference is of no practical relevance (a medium effect by Cohen).
MIN_SHIFT = 0.5
#: Ratio of spreads below which a difference is of no practical relevance. Units differ by more (inch and cm: 2.54, km and mile:
#: 1.61), samples of the same tasks by less.
MIN_RATIO = 1.5
#: Relative difference of numbers that are equal in single precision.
ROUNDING = 1e-6
#: Distance to the own column, relative to that of another one, from which the other fits far better.
FAR_BETTER = 2.0
#: Difference of means in training spreads, and ratio of spreads, that most columns exceed where one table is standardised and the
#: other is not; new tasks seldom differ so much in most columns.
OTHER_SHIFT, OTHER_RATIO = 2.0, 2.0
#: Largest mean, and largest ratio of the standard deviation to 1, of a standardised column of new rows, whose scaler may be that of
#: the training rows.
STANDARD_MEAN, STANDARD_RATIO = 0.35, 1.4
#: Smallest share of the columns that are standardised where somebody standardised features; samples of skewed columns are not.
STANDARD_SHARE = 0.7
#: Columns that a message shows.
N_SHOWN = 3


@dataclass(frozen=True, eq=False)
class FeatureDistribution:
    """Mean, standard deviation and quantiles of each feature.

    Parameters
    ----------
    mean, deviation : ndarray of shape (n_features,)
        Mean and standard deviation.
    quantiles : ndarray of shape (19, n_features)
        Quantiles 0.05, 0.1, …, 0.95.
    n_rows : int
        Number of rows of which these are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal([170, 70], [10, 9], size=(200, 2))
    >>> distribution = FeatureDistribution.of(rows[:100])
    >>> distribution.describe_order(rows[100:], ["height", "weight"])
    ''
    >>> distribution.describe_order(rows[100:, ::-1], ["height", "weight"])
    "2 of 2 features have values like other features in training: 'height' like 'weight', 'weight' like 'height'. ..."
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    n_rows: int

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> Self:
        """Return the distribution of rows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Dense features of at least one task.

        Returns
        -------
        FeatureDistribution
        """
        sample = _sample_rows(rows)
        quantiles = np.quantile(sample, LEVELS, axis=0, method="inverted_cdf")
        return cls(sample.mean(axis=0), sample.std(axis=0), quantiles, len(sample))

    @classmethod
    def of_training(cls, rows: NDArray[np.float64]) -> Self | None:
        """Return the distribution of training rows, or None if there are too few of them or too many columns.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Dense features.

        Returns
        -------
        FeatureDistribution or None
        """
        return cls.of(rows) if len(rows) >= MIN_ROWS and 0 < rows.shape[1] <= MAX_COLUMNS else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the distribution as arrays, to save it."""
        return {
            "mean": self.mean,
            "deviation": self.deviation,
            "quantiles": self.quantiles,
            "n_sampled": np.array(self.n_rows),
        }

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> Self | None:
        """Return the distribution of saved arrays; None if an earlier version saved them.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`, perhaps with others.
        n_features : int
            Expected number of features.

        Returns
        -------
        FeatureDistribution or None

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
        if "quantiles" not in arrays:
            return None
        mean, deviation, quantiles, n_rows = (
            arrays.get(name, np.empty(0)) for name in ("mean", "deviation", "quantiles", "n_sampled")
        )
        shapes = [(mean, (n_features,)), (deviation, (n_features,)), (quantiles, (len(LEVELS), n_features))]
        if any(array.dtype != np.float64 or array.shape != shape for array, shape in shapes):
            raise ValueError("the distributions of the features contradict each other")
        is_finite = all(np.isfinite(array).all() for array, _ in shapes)
        if not is_finite or (deviation < 0).any() or (np.diff(quantiles, axis=0) < 0).any():
            raise ValueError("the distributions of the features are invalid")
        if n_rows.shape != () or n_rows.dtype.kind not in "iu" or n_rows < 1:
            raise ValueError("the number of rows of the distributions is invalid")
        return cls(mean, deviation, quantiles, int(n_rows))

    @property
    def centre(self) -> NDArray[np.float64]:
        """Mean of the quantiles, which outliers do not move."""
        return np.asarray(self.quantiles.mean(axis=0))

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of the quantiles, which outliers do not move."""
        return np.asarray(self.quantiles.std(axis=0))

    # ------------------------------------------------------------------ comparison with new rows

    def describe_order(self, rows: NDArray[np.float64], names: list[str] | None = None) -> str:
        """State in words which columns of new rows have the distribution of other columns in training.

        The columns are permuted if several of them have another distribution than in training, and exchanging columns explains
        every difference.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Dense features of new tasks.
        names : list of str, optional
            Names of the features.

        Returns
        -------
        str
            Empty if the columns are not permuted, or the rows are too few.
        """
        from scipy.optimize import linear_sum_assignment

        sample = _sample_rows(rows)
        if len(sample) < MIN_ROWS or not 2 <= sample.shape[1] <= MAX_ORDERED_COLUMNS:
            return ""
        own, limit = self._measure_distances(sample), self._distance_limit(len(sample))
        differs = own > limit
        if differs.sum() < 2:
            return ""
        candidates = np.flatnonzero(own > limit / FAR_BETTER)  # the others keep their places
        distances = np.stack(
            [self._measure_distances(sample[:, [i]])[candidates] for i in candidates]
        )  # (new, training)
        _, assigned = linear_sum_assignment(distances**2)
        matched, match = own.copy(), np.arange(len(own))
        matched[candidates], match[candidates] = distances[np.arange(len(candidates)), assigned], candidates[assigned]
        is_explained = matched <= np.minimum(limit, own / FAR_BETTER)
        if not is_explained[differs].all() or matched[candidates].mean() > self._mean_distance_limit(
            len(sample), len(candidates)
        ):
            return ""
        positions = np.flatnonzero(differs)
        shown = ", ".join(
            f"{_show_name(names, int(i))} like {_show_name(names, int(match[i]))}" for i in positions[:N_SHOWN]
        )
        more = ", …" if len(positions) > N_SHOWN else ""
        return (
            f"{_count_columns(positions, own)} have values like other features in training: {shown}{more}. "
            "Their order, or their names, may be exchanged; compare both with training"
        )

    def describe_standardisation(self, rows: NDArray[np.float64], names: list[str] | None = None) -> str:
        """State in words whether either new rows or those of training are standardised, and the others are not.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Dense features of new tasks.
        names : list of str, optional
            Names of the features.

        Returns
        -------
        str
            Empty if both or none are standardised, or the rows are too few.
        """
        sample = _sample_rows(rows)
        if len(sample) < MIN_ROWS:
            return ""
        new = type(self).of(sample)
        shift, ratio = self._compare_moments(new)
        varies = (self.deviation > 0) & (new.deviation > 0)
        differs = varies & (self._measure_distances(sample) > self._distance_limit(len(sample)))
        differs &= (np.abs(shift) > OTHER_SHIFT) | (ratio > OTHER_RATIO) | (ratio < 1 / OTHER_RATIO)
        if varies.sum() < 2 or 2 * differs.sum() <= varies.sum():
            return ""
        is_new, is_old = (columns._has_standard_columns(varies) for columns in (new, self))
        if is_new == is_old:
            return ""
        shown = self._show_columns(new, np.flatnonzero(differs), names)
        count = _count_columns(np.flatnonzero(differs), differs)
        if is_new:
            return (
                f"the features have mean 0 and standard deviation 1, and in training they had not; {count} differ: {shown}. "
                "Leave out the standardisation, or train on features that the same scaler standardised"
            )
        return (
            f"the features of training had mean 0 and standard deviation 1, and these have not; {count} differ: {shown}. "
            "Standardise them with the means and standard deviations of training"
        )

    def describe_shift(self, rows: NDArray[np.float64], names: list[str] | None = None) -> str:
        """State in words which columns of new rows have another mean or spread than in training.

        A column is named if its distribution differs by more than sampling explains, and its mean or spread by an amount of
        practical relevance, those with the largest difference first. A factor is named for a column that is like training after
        division by it, such as one in another unit.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Dense features of new tasks.
        names : list of str, optional
            Names of the features.

        Returns
        -------
        str
            Empty if no column differs, or the rows are too few.
        """
        sample = _sample_rows(rows)
        if len(sample) < MIN_ROWS:
            return ""
        new = type(self).of(sample)
        distances = self._measure_distances(sample)
        shift, ratio = self._compare_moments(new)
        is_relevant = (np.abs(shift) > MIN_SHIFT) | (ratio > MIN_RATIO) | (ratio < 1 / MIN_RATIO)
        differs = is_relevant & (distances > self._distance_limit(len(sample)))
        if not differs.any():
            return ""
        positions = np.flatnonzero(differs)
        positions = positions[np.argsort(-distances[positions], kind="stable")]
        verb = "differs" if len(positions) == 1 else "differ"
        return (
            f"{_count_columns(positions, differs)} {verb} from training: "
            f"{self._show_columns(new, positions, names, self._find_factors(new, sample, differs))}. If these are the same kind of "
            "tasks, check units and preparation; for others, predictions are less certain"
        )

    def _measure_distances(self, sample: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance of columns to those of training, or of one column to all.

        It is the largest difference of the distribution functions at the quantiles of training (Kolmogorov-Smirnov). At the
        quantile q of the level p, training has P(x <= q) >= p > P(x < q), also where values repeat.
        """
        distance = np.zeros(self.quantiles.shape[1])
        is_single = sample.shape[1] == 1
        ordered = np.sort(sample[:, 0]) if is_single else sample
        for level, quantile in zip(LEVELS, self.quantiles, strict=True):
            slack = ROUNDING * np.abs(quantile)
            if is_single:
                below = np.searchsorted(ordered, quantile - slack, side="left") / len(ordered)
                up_to = np.searchsorted(ordered, quantile + slack, side="right") / len(ordered)
            else:
                below, up_to = (sample < quantile - slack).mean(axis=0), (sample <= quantile + slack).mean(axis=0)
            distance = np.maximum(distance, np.maximum(level - up_to, below - level))
        return distance

    def _distance_limit(self, n_new: int) -> float:
        """Return the distance that sampling exceeds in no column but with the probability of a false alarm (Massart's bound)."""
        exponent = np.log(2 * self.quantiles.shape[1] / FALSE_ALARM_RATE) / 2
        return float(np.sqrt(exponent * (1 / n_new + 1 / self.n_rows)))

    def _mean_distance_limit(self, n_new: int, n_columns: int) -> float:
        """Return the mean distance of columns that samples of the same distributions seldom exceed.

        Kolmogorov's distribution has mean 0.87 and standard deviation 0.26; three standard errors allow for related columns.
        """
        return float((0.87 + 3 * 0.26 / np.sqrt(n_columns)) * np.sqrt(1 / n_new + 1 / self.n_rows))

    def _compare_moments(self, new: FeatureDistribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the difference of means in spreads, and the ratio of spreads; 0 and 1 for a column without spread."""
        varies = self.spread > 0
        scale = np.where(varies, self.spread, 1.0)
        return np.where(varies, (new.centre - self.centre) / scale, 0.0), np.where(varies, new.spread / scale, 1.0)

    def _find_factors(
        self, new: FeatureDistribution, sample: NDArray[np.float64], differs: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the factor of each column that is like training after division by it; NaN for all others."""
        squares = (self.quantiles**2).sum(axis=0)
        factor = (new.quantiles * self.quantiles).sum(axis=0) / np.where(squares > 0, squares, 1.0)
        is_factor = differs & ((factor > MIN_RATIO) | ((factor > 0) & (factor < 1 / MIN_RATIO)))
        scaled = sample / np.where(is_factor, factor, 1.0)
        is_factor &= self._measure_distances(scaled) <= self._distance_limit(len(sample))
        return np.where(is_factor, factor, np.nan)

    def _has_standard_columns(self, varies: NDArray[np.bool_]) -> bool:
        """Return whether most columns have mean 0 and standard deviation 1."""
        deviation = np.where(varies, self.deviation, 1.0)
        is_standard = (np.abs(self.mean) < STANDARD_MEAN) & (np.abs(np.log(deviation)) < np.log(STANDARD_RATIO))
        return bool((is_standard & varies).sum() >= STANDARD_SHARE * varies.sum())

    def _show_columns(
        self,
        new: FeatureDistribution,
        positions: NDArray[np.intp],
        names: list[str] | None,
        factor: NDArray[np.float64] | None = None,
    ) -> str:
        """Return the first columns with their means and spreads in new rows and in training."""
        shown = []
        for i in positions[:N_SHOWN]:
            multiple = "" if factor is None or np.isnan(factor[i]) else f"; a factor of {factor[i]:.2g}"
            mean = new.mean[i] if abs(new.mean[i]) > ROUNDING * new.deviation[i] else 0.0
            shown.append(
                f"{_show_name(names, int(i))} mean {mean:.3g}, spread {new.deviation[i]:.3g} "
                f"(training: {self.mean[i]:.3g}, {self.deviation[i]:.3g}{multiple})"
            )
        return "; ".join(shown) + ("; …" if len(positions) > N_SHOWN else "")


def _sample_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows that stand for all, evenly from the first to the last."""
    if len(rows) <= MAX_ROWS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MAX_ROWS).astype(np.intp)]


def _count_columns(positions: NDArray[np.intp], columns: NDArray[Any]) -> str:
    return f"{len(positions):,} of {count_noun(len(columns), 'feature')}"


def _show_name(names: list[str] | None, position: int) -> str:
    return preview([str(names[position])]) if names else f"column {position}"
