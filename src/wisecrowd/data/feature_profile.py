"""Profile of training features: values of columns and digests of rows, to recognise features that differ from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.feature_distribution import FeatureDistribution
from wisecrowd.errors import preview
from wisecrowd.utils.slices import slice_rows

#: Rows whose quantiles stand for those of all rows, which bounds the cost for large tables.
MAX_QUANTILE_ROWS = 1000
#: Share of the training range by which a value must lie outside of it to be far; new rows often exceed the extremes a little.
FAR_MARGIN = 0.25
#: Share of the values of a column that must be far outside. Drift and outliers move few values, another unit moves nearly all.
FAR_SHARE = 0.5
#: Smallest number of far values in a column, or in all columns together; a few may be outliers.
MIN_FAR_VALUES = 5
#: Smallest share of rows with a far value in a column, for columns that are mostly zero.
MIN_FAR_ROWS = 0.1
#: Spread of new values relative to the central 90 % of training values, below which a column has collapsed: a scale of 0-1 instead
#: of 0-255 gives 0.004, and a sample of ordinary rows hardly ever less than 0.3.
COLLAPSED_SPREAD = 0.02
#: Smallest number of new rows whose spread says anything.
MIN_SPREAD_ROWS = 10
#: Smallest number of different training rows that have a range.
MIN_TRAINING_ROWS = 10
#: Range of a column relative to the widest one below which it is rounding errors.
MIN_RELATIVE_WIDTH = 1e-12
#: Share of different training rows from which an identical new row is more than a coincidence.
MIN_DISTINCT_ROWS = 0.95
#: Seed of the multipliers of digests, which must stay the same between versions.
DIGEST_SEED = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class FeatureProfile:
    """Ranges of the columns of training features, and a digest of every row.

    Parameters
    ----------
    lowest, highest : ndarray of shape (n_features,)
        Smallest and largest value of each feature.
    spread : ndarray of shape (n_features,)
        Difference between the quantiles 0.95 and 0.05.
    digests : ndarray of shape (n_tasks,)
        Digest of each row, in the order of the tasks.
    distribution : FeatureDistribution, optional
        Distribution of each feature; None for few rows or many features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> profile = FeatureProfile.of(rng.uniform(size=(50, 2)))
    >>> profile.describe_difference(rng.uniform(size=(20, 2)))
    ''
    >>> profile.describe_difference(255 * rng.uniform(size=(20, 2)), ["red", "blue"])
    "2 of 2 features lie far outside their range in training: 'red' from ... to ... (training: ... to ...), ..."
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    spread: NDArray[np.float64]
    digests: NDArray[np.uint64]
    distribution: FeatureDistribution | None = None

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> Self:
        """Return the profile of training rows.

        Parameters
        ----------
        rows : ndarray of shape (n_tasks, ...)
            Dense features of at least one task.

        Returns
        -------
        FeatureProfile
        """
        flat = rows.reshape(len(rows), -1)
        sample = flat[np.linspace(0, len(flat) - 1, min(len(flat), MAX_QUANTILE_ROWS)).astype(np.intp)]
        low, high = np.quantile(sample, [0.05, 0.95], axis=0)
        distribution = FeatureDistribution.of_training(flat)
        return cls(flat.min(axis=0), flat.max(axis=0), high - low, digest_rows(flat), distribution)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the profile as arrays, to save it."""
        ranges = {"lowest": self.lowest, "highest": self.highest, "spread": self.spread, "digests": self.digests}
        return ranges | ({} if self.distribution is None else self.distribution.arrays())

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the profile of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`, perhaps of an earlier version, which kept no distribution.

        Returns
        -------
        FeatureProfile

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
        columns = [arrays[name] for name in ("lowest", "highest", "spread")]
        digests = arrays["digests"]
        if any(column.dtype != np.float64 or column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
            raise ValueError("the ranges of the features contradict each other")
        if not all(np.isfinite(column).all() for column in columns) or (columns[0] > columns[1]).any():
            raise ValueError("the ranges of the features are invalid")
        if digests.dtype != np.uint64 or digests.ndim != 1:
            raise ValueError("the digests of the rows are invalid")
        distribution = FeatureDistribution.restore(arrays, len(columns[0]))
        return cls(columns[0], columns[1], columns[2], digests, distribution)

    def describe_problem(self, rows: NDArray[np.float64], names: list[str] | None = None) -> str:
        """State in words how new rows differ from training, and what to do.

        The first of these is named: columns in another order, standardised features for others that were not, values far outside
        the training range, another mean or spread.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, ...)
            Dense features of new tasks.
        names : list of str, optional
            Names of the features.

        Returns
        -------
        str
            Empty if the features are like those of training.
        """
        if not len(rows):
            return ""
        flat, distribution = rows.reshape(len(rows), -1), self.distribution
        if len(np.unique(self.digests)) < MIN_TRAINING_ROWS:
            return ""
        if distribution is not None:
            problem = distribution.describe_order(flat, names) or distribution.describe_standardisation(flat, names)
            if problem:
                return problem
        if difference := self.describe_difference(flat, names):
            return (
                f"{difference}. They may have other units, another scaling or another order of columns; prepare them as in "
                "training"
            )
        return "" if distribution is None else distribution.describe_shift(flat, names)

    def describe_difference(self, rows: NDArray[np.float64], names: list[str] | None = None) -> str:
        """State in words which columns of new rows have other values than in training.

        A column differs if most of its values, leaving out zeros, are outside the training range by more than a quarter of
        this range. All columns differ together if most values of few rows do, or if most columns have hardly any spread compared
        with training. Columns that were constant in training are not compared.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, ...)
            Dense features of new tasks.
        names : list of str, optional
            Names of the features.

        Returns
        -------
        str
            Empty if the features are like those of training.
        """
        flat = rows.reshape(len(rows), -1)
        width = self.highest - self.lowest
        varies = width > MIN_RELATIVE_WIDTH * width.max(initial=0)
        if not len(flat) or not varies.any() or len(np.unique(self.digests)) < MIN_TRAINING_ROWS:
            return ""
        is_far = ((flat < self.lowest - FAR_MARGIN * width) | (flat > self.highest + FAR_MARGIN * width)) & varies
        n_far, n_values = is_far.sum(axis=0), ((flat != 0) & varies).sum(axis=0)
        differs = (n_far > FAR_SHARE * n_values) & (n_far >= max(MIN_FAR_VALUES, MIN_FAR_ROWS * len(flat)))
        if not differs.any() and n_far.sum() >= MIN_FAR_VALUES and n_far.sum() > FAR_SHARE * n_values.sum():
            differs = n_far > 0
        verb = "lie far outside their range in training"
        if not differs.any():
            differs, verb = self._find_collapsed(flat), "have hardly any spread compared with training"
        if not differs.any():
            return ""
        positions = np.flatnonzero(differs)
        shown = ", ".join(
            f"{preview([str(names[i])]) if names else f'column {i}'} from {flat[:, i].min():.3g} to {flat[:, i].max():.3g} "
            f"(training: {self.lowest[i]:.3g} to {self.highest[i]:.3g})"
            for i in positions[:3]
        )
        more = ", …" if len(positions) > 3 else ""
        return f"{len(positions):,} of {len(width):,} features {verb}: {shown}{more}"

    def _find_collapsed(self, flat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the columns with hardly any spread, if most columns have that; otherwise none."""
        spread = flat.max(axis=0) - flat.min(axis=0)
        is_compared = (self.spread > 0) & (spread > 0)
        is_collapsed = is_compared & (spread < COLLAPSED_SPREAD * self.spread)
        is_general = len(flat) >= MIN_SPREAD_ROWS and 2 * is_collapsed.sum() > is_compared.sum()
        return is_collapsed if is_general else np.zeros(len(spread), dtype=bool)

    @property
    def has_distinct_rows(self) -> bool:
        """True if hardly any training row repeats another."""
        return len(np.unique(self.digests)) >= MIN_DISTINCT_ROWS * len(self.digests)

    def find_training_rows(self, rows: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the positions of the training rows that new rows are identical to.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, ...)
            Dense features of new tasks.

        Returns
        -------
        ndarray of intp, shape (n_rows,)
            The first identical training row; -1 without one. All are -1 if training rows repeat each other, so that an identical
            row is a coincidence.
        """
        if not self.has_distinct_rows:
            return np.full(len(rows), -1)
        distinct, first = np.unique(self.digests, return_index=True)
        digests = digest_rows(rows.reshape(len(rows), -1))
        nearest = np.minimum(np.searchsorted(distinct, digests), len(distinct) - 1)
        return np.where(distinct[nearest] == digests, first[nearest], -1)


def digest_rows(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return a digest of every row, which is the same for numbers that are equal in single precision.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Numbers.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)

    Examples
    --------
    >>> first, second, third = digest_rows(np.array([[0.1, 2.0], [np.float32(0.1), 2.0], [2.0, 0.1]]))
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    positions = np.arange(1, rows.shape[1] + 1, dtype=np.uint64)
    factors = _mix(positions * np.uint64(DIGEST_SEED)) | np.uint64(1)
    digests = np.empty(len(rows), dtype=np.uint64)
    limit = np.finfo(np.float32).max
    for part in slice_rows(len(rows), rows.shape[1]):
        single = np.clip(rows[part], -limit, limit).astype(np.float32) + np.float32(0)  # -0 becomes 0
        digests[part] = (_mix(single.view(np.uint32).astype(np.uint64) + positions) * factors).sum(
            axis=1, dtype=np.uint64
        )
    return digests


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits are mixed, as in SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
