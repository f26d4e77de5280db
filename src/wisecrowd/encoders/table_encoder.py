"""Default encoder of tables with numbers, strings, dates and missing values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.errors import InputError, preview

#: Largest number of categories of a column that get a feature of their own; the others share one.
MAX_CATEGORIES = 50
#: Share of numbers in a column of strings above which the other strings are taken for errors.
MAX_NUMBER_SHARE = 0.5
#: Kinds of columns.
NUMBER, CATEGORY, DATE = "number", "category", "date"
#: Beginning of a date in ISO 8601, such as 2026-11-18.
ISO_DATE = r"\d{4}-\d{2}-\d{2}"
#: Nanoseconds of a day.
DAY_NS = 86_400e9


@dataclass(frozen=True)
class ColumnEncoding:
    """Encoding of one column.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "category", "date"}
        Kind of its values.
    fill : float
        Median of the training rows (of a date: in days), which replaces missing values.
    has_missing : bool
        Whether a feature marks missing values, because some training rows have none.
    categories : tuple of str
        Categories with a feature of their own.
    has_others : bool
        Whether one feature marks all other categories, because training had too many.

    Examples
    --------
    >>> ColumnEncoding("size", "number", 1.5, True).feature_names
    ['size', 'size is missing']
    """

    name: str
    kind: str
    fill: float = 0.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()
    has_others: bool = False

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that the column becomes."""
        names = {
            NUMBER: [self.name],
            CATEGORY: [f"{self.name}={category}" for category in self.categories],
            DATE: [f"{self.name}, {part}" for part in ("days", "month", "weekday", "hour")],
        }[self.kind]
        others = [f"{self.name}: another category"] if self.has_others else []
        return [*names, *others, *([f"{self.name} is missing"] if self.has_missing else [])]

    def transform(self, column: pd.Series) -> NDArray[np.float64]:
        """Return the features of a column.

        Parameters
        ----------
        column : Series
            Values.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        InputError
            If a value is not of the kind of the column.
        """
        is_missing = column.isna().to_numpy(dtype=bool)
        if self.kind == NUMBER:
            features = [np.where(is_missing, self.fill, _to_numbers(column))]
        elif self.kind == DATE:
            features = _split_dates(_to_dates(column), self.fill)
        else:
            codes = pd.Index(self.categories).get_indexer(pd.Index(column.astype("str").to_numpy(dtype=object)))
            codes[is_missing] = -1
            features = [codes == position for position in range(len(self.categories))]
            if self.has_others:
                features.append((codes < 0) & ~is_missing)
        if self.has_missing:
            features.append(is_missing)
        return np.column_stack(features).astype(np.float64) if features else np.empty((len(column), 0))


@dataclass
class TableEncoder(FeatureEncoder):
    """Encoder of tables as users have them: numbers, strings, dates and missing values.

    - A missing number becomes the median of the training rows.
    - A string or category becomes one feature per category of the training rows. The 50 most frequent ones have features
      of their own, and the others share one. A category that training did not have is zero in all of them, or counts as
      one of the others.
    - A date becomes the number of days since 1970, the month, the day of the week and the hour. Strings are dates if all of
      them are in ISO 8601.
    - If a training row has no value, one further feature marks the rows without value.

    A column with many strings that hardly repeat, such as a text or an id, is refused.

    Parameters
    ----------
    columns : tuple of ColumnEncoding
        Encodings in the order of the columns; set by `fit`.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.feature_names
    ['size', 'size is missing', 'colour=blue', 'colour=red']
    >>> encoder.transform(table).tolist()
    [[1.0, 0.0, 0.0, 1.0], [2.0, 1.0, 1.0, 0.0], [3.0, 0.0, 0.0, 1.0]]
    """

    kind: ClassVar[str] = "table"

    columns: tuple[ColumnEncoding, ...] = ()

    @staticmethod
    def is_needed(table: pd.DataFrame) -> bool:
        """Return whether a table has anything but numbers.

        Parameters
        ----------
        table : DataFrame
            Features.

        Returns
        -------
        bool
        """
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in table.dtypes):
            return True
        return bool(np.isnan(table.to_numpy(dtype=np.float64)).any())

    def fit(self, table: pd.DataFrame) -> Self:
        """Determine the encoding of every column.

        Parameters
        ----------
        table : DataFrame
            Training rows.

        Returns
        -------
        TableEncoder
            The encoder itself.

        Raises
        ------
        InputError
            If a column is a text, an id, or neither number, string nor date.
        """
        self.columns = tuple(_fit_column(name, column) for name, column in table.items())
        return self

    @property
    def feature_names(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.feature_names]

    def accepts(self, X: Any) -> bool:
        """Return True: a learner that was trained on a table predicts tables.

        Parameters
        ----------
        X : object
            Argument of ``predict``.

        Returns
        -------
        bool
        """
        return True

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return rows of numbers.

        Parameters
        ----------
        X : DataFrame
            Table with the columns of training, in their order.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        InputError
            If this is not a table with as many columns, or a value is not of the kind of its column.
        """
        names = [column.name for column in self.columns]
        if not isinstance(X, pd.DataFrame) or X.shape[1] != len(names):
            shape = f"{type(X).__name__} of shape {np.shape(X)}"
            raise InputError(
                f"X must be a table with the columns of training, {preview(names, 8)}; got {shape}. Pass a DataFrame"
            )
        parts = [encoding.transform(X.iloc[:, position]) for position, encoding in enumerate(self.columns)]
        return np.hstack(parts) if parts else np.empty((len(X), 0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the encodings as arrays."""
        columns = self.columns
        return {
            "kind": np.array(self.kind),
            "names": np.array([column.name for column in columns], dtype=str),
            "kinds": np.array([column.kind for column in columns], dtype=str),
            "fills": np.array([column.fill for column in columns], dtype=np.float64),
            "has_missing": np.array([column.has_missing for column in columns], dtype=bool),
            "has_others": np.array([column.has_others for column in columns], dtype=bool),
            "n_categories": np.array([len(column.categories) for column in columns], dtype=np.int64),
            "categories": np.array([category for column in columns for category in column.categories], dtype=str),
        }

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`.

        Returns
        -------
        TableEncoder

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
        names, kinds, numbers = arrays["names"], arrays["kinds"], arrays["n_categories"]
        same = [arrays[name].shape == names.shape for name in ("kinds", "fills", "has_missing", "has_others")]
        if (
            names.ndim != 1
            or not all(same)
            or numbers.shape != names.shape
            or not np.isin(kinds, [NUMBER, CATEGORY, DATE]).all()
        ):
            raise ValueError("the encodings of the columns contradict each other")
        if (numbers < 0).any() or numbers.sum() != arrays["categories"].size or not np.isfinite(arrays["fills"]).all():
            raise ValueError("the categories or fills of the columns are invalid")
        ends = np.cumsum(numbers)
        return cls(
            tuple(
                ColumnEncoding(
                    str(names[i]),
                    str(kinds[i]),
                    float(arrays["fills"][i]),
                    bool(arrays["has_missing"][i]),
                    tuple(map(str, arrays["categories"][ends[i] - numbers[i] : ends[i]])),
                    bool(arrays["has_others"][i]),
                )
                for i in range(len(names))
            )
        )


def _fit_column(name: Hashable, column: pd.Series) -> ColumnEncoding:
    """Return the encoding of a column of training rows."""
    title, present = str(name), column.dropna()
    has_missing = len(present) < len(column)
    if _holds_numbers(present):
        numbers = _to_numbers(present)
        return ColumnEncoding(title, NUMBER, float(np.median(numbers)) if len(numbers) else 0.0, has_missing)
    if _holds_dates(present):
        days = _to_dates(present).to_numpy(dtype="datetime64[ns]").astype(np.int64) / DAY_NS
        return ColumnEncoding(title, DATE, float(np.median(days)), has_missing)
    is_plain = present.map(lambda value: isinstance(value, str | bool | int | float | np.generic)).astype(bool)
    if not isinstance(column.dtype, pd.CategoricalDtype) and not is_plain.all():
        odd = present[~is_plain].iloc[0]
        raise InputError(
            f"the column {title!r} has values of the type {type(odd).__name__}, for example {preview([odd])}; features are "
            "numbers, strings or dates. Convert the column, or leave it out"
        )
    counts = present.astype("str").value_counts()
    if not isinstance(column.dtype, pd.CategoricalDtype):
        _refuse_misspelt_numbers(title, counts)
    if len(counts) > MAX_CATEGORIES and len(counts) > len(present) / 2:
        raise InputError(
            f"the column {title!r} has {len(counts):,} different strings in {len(present):,} rows, for example "
            f"{preview(counts.index)}, so it looks like a text or an id, not a category; leave it out, or turn texts into "
            "features (wisecrowd.encoders.text_encoder.TextEncoder, --texts)"
        )
    by_count = sorted(counts.index, key=lambda category: (-counts[category], category))
    return ColumnEncoding(
        title,
        CATEGORY,
        has_missing=has_missing,
        categories=tuple(sorted(by_count[:MAX_CATEGORIES])),
        has_others=len(counts) > MAX_CATEGORIES,
    )


def _refuse_misspelt_numbers(title: str, counts: pd.Series) -> None:
    """Raise an error if most strings of a column are numbers, so that the others are errors rather than categories."""
    is_number = pd.to_numeric(counts.index.to_series(), errors="coerce").notna().to_numpy()
    if counts[is_number].sum() > MAX_NUMBER_SHARE * counts.sum():
        raise InputError(
            f"the column {title!r} has numbers, and {preview(counts.index[~is_number])}; correct these values, or leave them "
            "empty if they are missing"
        )


def _holds_numbers(present: pd.Series) -> bool:
    """Return whether values are numbers, or strings of numbers."""
    if isinstance(present.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_datetime64_any_dtype(present.dtype) or pd.api.types.is_timedelta64_dtype(present.dtype):
        return False
    try:
        present.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _holds_dates(present: pd.Series) -> bool:
    """Return whether values are dates, or strings of dates."""
    if isinstance(present.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_datetime64_any_dtype(present.dtype):
        return True
    if present.map(lambda value: isinstance(value, str)).all() and not present.str.match(ISO_DATE).all():
        return False
    if present.map(lambda value: isinstance(value, bool | int | float | list | dict | tuple)).any():
        return False
    try:
        _to_dates(present)
    except InputError:
        return False
    return True


def _to_numbers(column: pd.Series) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where values are missing."""
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the column {str(column.name)!r} holds numbers in training: {error}; give numbers, or train on such values"
        ) from None


def _to_dates(column: pd.Series) -> pd.Series:
    """Return a column as dates without time zone."""
    try:
        dates = pd.to_datetime(column, format="ISO8601", utc=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the column {str(column.name)!r} holds dates in training: {error}; give dates in ISO 8601, as 2026-11-18"
        ) from None
    return pd.Series(dates.dt.tz_localize(None))


def _split_dates(dates: pd.Series, fill: float) -> list[NDArray[np.float64]]:
    """Return days since 1970, month, day of the week and hour."""
    is_missing = dates.isna().to_numpy()
    days = dates.to_numpy(dtype="datetime64[ns]").astype(np.int64) / DAY_NS
    parts = [dates.dt.month, dates.dt.day_of_week, dates.dt.hour]
    return [np.where(is_missing, fill, days), *(part.fillna(0).to_numpy(dtype=np.float64) for part in parts)]
