"""Alignment of truth and features with a crowd by task id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import as_table
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, preview
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Largest absolute value of a feature. Squares of larger ones, and sums of them, are no longer finite.
MAX_FEATURE = 1e100


def as_truth_series(truth: TruthLike, crowd: AnyCrowd | None = None) -> pd.Series:
    """Convert truth in any supported form to a Series by task.

    Parameters
    ----------
    truth : Series, mapping, table or array-like
        Series or mapping by task; table with a column task and a column label, truth or true_label; or an array in
        the order of the tasks of ``crowd``.
    crowd : Crowd, default=None
        Crowd that fixes the order of the tasks; needed only for an array.

    Returns
    -------
    Series
        Truth by task, without missing values.

    Raises
    ------
    InputError
        If the tasks of ``truth`` are not clear.

    Examples
    --------
    >>> as_truth_series({"t1": "cat"}).to_dict()
    {'t1': 'cat'}
    """
    if isinstance(truth, pd.Series):
        return truth.dropna()
    if isinstance(truth, Mapping) and not {"task", "label"} <= set(truth):
        return pd.Series(dict(truth)).dropna()
    if hasattr(truth, "__arrow_c_stream__") or isinstance(truth, Mapping):
        frame = as_table(truth).to_pandas()
        column = next((name for name in ("label", "truth", "true_label") if name in frame), None)
        if "task" not in frame or column is None:
            raise InputError(f"a table of truth needs the columns task and label; got {preview(frame.columns, 8)}")
        return frame.set_index("task")[column].dropna()
    values = np.asarray(truth)
    if not isinstance(crowd, Crowd) or values.shape != (crowd.n_tasks,) or not crowd.has_task_order:
        raise InputError(
            "truth must carry task ids: pass a Series by task, a dict, or a table with task and label. An array needs a "
            "crowd with a fixed order of tasks (tasks=...) and one entry per task"
        )
    return pd.Series(values, index=crowd.tasks).dropna()


def encode_truth(truth: TruthLike, crowd: Crowd) -> NDArray[np.int32]:
    """Encode truth as class codes in the order of the crowd's tasks.

    Parameters
    ----------
    truth : Series, mapping, table or array-like
        Truth of some tasks; see `as_truth_series`. Tasks that the crowd does not have are ignored.
    crowd : Crowd
        Crowd with the tasks and classes.

    Returns
    -------
    ndarray of shape (n_tasks,)
        Class code of each task; -1 where the truth is unknown.

    Raises
    ------
    InputError
        If ``truth`` repeats a task, shares no task with the crowd, or contains an unknown class.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> encode_truth({"t2": "dog"}, crowd).tolist()
    [-1, 1]
    """
    series = as_truth_series(truth, crowd)
    if not series.index.is_unique:
        raise InputError(
            f"the truth names some tasks twice: {preview(series.index[series.index.duplicated()])}; keep one row per task"
        )
    codes = np.full(crowd.n_tasks, -1, dtype=np.int32)
    position = crowd.tasks.get_indexer(match_id_type(series.index, crowd.tasks))
    in_crowd = position >= 0
    if len(series) and not in_crowd.any():
        raise InputError(
            f"none of the {len(series):,} tasks with truth is in the crowd. The truth starts with "
            f"{preview(series.index)}, the crowd with {preview(crowd.tasks)}; use the same ids in both"
        )
    if crowd.classes is None:
        raise InputError("this crowd holds numbers, so its truth cannot be encoded as classes; compare numbers instead")
    true_class = pd.Index(series[in_crowd].to_numpy())
    class_codes = crowd.classes.get_indexer(match_id_type(true_class, crowd.classes))
    if (class_codes < 0).any():
        raise InputError(
            f"the truth contains unknown classes: {preview(true_class[class_codes < 0].unique())}. The classes are "
            f"{preview(crowd.classes, 8)}; if no vote uses a class, name all classes when reading: classes=[...] (--classes A,B,…)"
        )
    codes[position[in_crowd]] = class_codes
    return codes


def align_features(features: FeaturesLike, crowd: Crowd) -> NDArray[np.float64]:
    """Align finite features with the tasks of a crowd.

    Parameters
    ----------
    features : DataFrame or array-like
        Table indexed by task, which is matched by id; or an array in the order of the tasks, if that order is fixed.
    crowd : Crowd
        Crowd with the tasks.

    Returns
    -------
    ndarray of shape (n_tasks, ...)
        Features in the order of the tasks.

    Raises
    ------
    InputError
        If a task has no features, or a feature is not a number between -1e100 and 1e100.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("b", "ann", 1), ("a", "ann", 0)])
    >>> align_features(pd.DataFrame({"x": [2.0, 1.0]}, index=["b", "a"]), crowd).tolist()
    [[1.0], [2.0]]
    """
    rows = as_float_features(order_by_task(features, crowd))
    problem = find_invalid_features(rows)
    if problem is not None:
        is_invalid, adjective, advice = problem
        raise InputError(
            f"features of {count_noun(int(is_invalid.sum()), 'task')} are {adjective}, for example "
            f"{preview(crowd.tasks[is_invalid])}; {advice}"
        )
    return rows


def find_invalid_features(rows: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str, str] | None:
    """Find rows of features that no method can use.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, ...)
        Features.

    Returns
    -------
    tuple or None
        Whether each row is invalid, an adjective for the rows, and advice. None if all rows are valid.

    Examples
    --------
    >>> find_invalid_features(np.array([[1.0], [1e308]]))
    (array([False,  True]), 'too large', 'scale them to between -1e+100 and 1e+100')
    """
    axes = tuple(range(1, rows.ndim))
    is_infinite: NDArray[np.bool_] = np.asarray(np.logical_not(np.isfinite(rows)).any(axis=axes))
    if is_infinite.any():
        return is_infinite, "not finite", "impute them first (NaN or inf)"
    is_too_large: NDArray[np.bool_] = np.asarray(np.greater(np.abs(rows), MAX_FEATURE).any(axis=axes))
    if is_too_large.any():
        return is_too_large, "too large", f"scale them to between {-MAX_FEATURE:g} and {MAX_FEATURE:g}"
    return None


def align_feature_rows(features: FeaturesLike, crowd: Crowd) -> NDArray[np.float64]:
    """Align finite features of at least one dimension with the tasks of a crowd.

    Parameters
    ----------
    features : DataFrame or array-like
        See `align_features`.
    crowd : Crowd
        Crowd with the tasks.

    Returns
    -------
    ndarray of shape (n_tasks, n_features, ...)
        Features in the order of the tasks.

    Raises
    ------
    InputError
        If there is not at least one feature per task.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(0, "ann", 1), (1, "ann", 0)])
    >>> align_feature_rows([1.0, 2.0], crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: expected a row of features per task; got an array of shape (2,)
    """
    rows = align_features(features, crowd)
    if rows.ndim < 2 or rows[:1].size == 0:
        raise InputError(f"expected a row of features per task; got an array of shape {rows.shape}")
    return rows


def is_sparse(features: Any) -> bool:
    """Return whether features are a sparse matrix, or a table of sparse columns only.

    Parameters
    ----------
    features : object
        Features.

    Returns
    -------
    bool

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> is_sparse(csr_array((2, 3))), is_sparse(np.zeros((2, 3)))
    (True, False)
    """
    if isinstance(features, pd.DataFrame):
        return features.shape[1] > 0 and all(isinstance(dtype, pd.SparseDtype) for dtype in features.dtypes)
    return type(features).__module__.startswith("scipy.sparse")


def as_sparse_features(features: Any) -> csr_array:
    """Convert sparse features to compressed rows of floating-point numbers.

    Parameters
    ----------
    features : sparse matrix, sparse array or DataFrame of sparse columns
        Features.

    Returns
    -------
    csr_array of shape (n_rows, n_features)

    Raises
    ------
    InputError
        If a feature is no number between -1e100 and 1e100.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> as_sparse_features(coo_array(([1], ([0], [2])), shape=(1, 3))).toarray().tolist()
    [[0.0, 0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    matrix: Any = features
    if isinstance(features, pd.DataFrame):
        accessor: Any = features.sparse
        matrix = accessor.to_coo()
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"expected a row of features per task; got a sparse array of shape {matrix.shape}")
    rows = csr_array(matrix, dtype=np.float64)
    if not (np.abs(rows.data) <= MAX_FEATURE).all():
        raise InputError(
            f"features of a sparse matrix must be numbers between {-MAX_FEATURE:g} and {MAX_FEATURE:g}; some are not finite or "
            "too large. Replace or scale them"
        )
    return rows


def order_by_task(features: FeaturesLike, crowd: Crowd) -> Any:
    """Order features as the tasks of a crowd, without converting them.

    Parameters
    ----------
    features : DataFrame or array-like
        See `align_features`.
    crowd : Crowd
        Crowd with the tasks.

    Returns
    -------
    DataFrame or array-like
        Features in the order of the tasks, of the same type.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("b", "ann", 1), ("a", "ann", 0)])
    >>> order_by_task(pd.DataFrame({"colour": ["red", "blue"]}, index=["b", "a"]), crowd)["colour"].tolist()
    ['blue', 'red']
    """
    if isinstance(features, pd.DataFrame):
        if not features.index.is_unique:
            raise InputError(
                f"features repeat the tasks {preview(features.index[features.index.duplicated()])}; "
                "keep one row per task"
            )
        position = features.index.get_indexer(match_id_type(crowd.tasks, features.index))
        is_absent = position < 0
        if is_absent.any():
            raise InputError(
                f"no features for {count_noun(int(is_absent.sum()), 'task')}, for example {preview(crowd.tasks[is_absent])}; the "
                f"features are of {preview(features.index)}. If the ids are a column, make them the index: X.set_index('task'). If "
                "scikit-learn split X, it split by position: put X in the crowd's order first, X.loc[crowd.tasks]"
            )
        return features.iloc[position]
    if not crowd.has_task_order:
        raise InputError(
            "a bare feature array cannot be matched to these tasks; index it by task (pd.DataFrame(X, index=task_ids)), or fix the "
            "order of the tasks: crowd.order_tasks(task_ids). If a pipeline dropped the index of a table X, pass "
            "crowd.order_tasks(X), or keep it: pipeline.set_output(transform='pandas')"
        )
    if not hasattr(features, "__len__") and hasattr(features, "__array__"):
        features = np.asarray(features)
    try:
        n_rows = int(np.shape(features)[0]) if is_sparse(features) else len(features)
    except TypeError:  # a single number
        raise InputError(f"expected a table or an array of features; got {type(features).__name__}") from None
    if n_rows != crowd.n_tasks:
        raise InputError(f"expected one row of features for each of {crowd.n_tasks:,} tasks; got {n_rows:,} rows")
    return features


def align_truth(truth: Any, features: FeaturesLike) -> Any:
    """Return true classes in the order of features.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        True classes.
    features : DataFrame or array of shape (n_tasks, ...)
        Features.

    Returns
    -------
    array-like of shape (n_tasks,)
        A Series by the ids of a table, if it contains all of them once; anything else as it is.

    Examples
    --------
    >>> features = pd.DataFrame({"size": [1.0, 2.0]}, index=["t1", "t2"])
    >>> align_truth(pd.Series({"t2": "dog", "t1": "cat"}), features).tolist()
    ['cat', 'dog']
    """
    if not (isinstance(truth, pd.Series) and isinstance(features, pd.DataFrame)):
        return truth
    has_all = truth.index.is_unique and features.index.isin(truth.index).all()
    return truth.reindex(features.index) if has_all else truth


def as_float_features(features: FeaturesLike) -> NDArray[np.float64]:
    """Convert features to floating-point numbers.

    Parameters
    ----------
    features : DataFrame or array-like
        Numbers; missing values of a table become NaN.

    Returns
    -------
    ndarray
        The numbers.

    Raises
    ------
    InputError
        If a feature is no number.

    Examples
    --------
    >>> as_float_features([["red"]])
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: features must be numbers: could not convert string to float: 'red'; encode text and ...
    """
    if is_sparse(features) and not isinstance(features, pd.DataFrame):
        raise InputError(f"expected a table or a dense array of features; got {type(features).__name__}")
    try:
        if isinstance(features, pd.DataFrame):
            return features.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}; encode text and categories first") from None
