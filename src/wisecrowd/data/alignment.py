"""Truth and features meet a crowd by task id, never by hope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import as_table
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, preview


def as_truth_series(truth: Any, crowd: Any = None) -> pd.Series:
    """Truth in any usual form as a Series by task: Series, mapping, table with task and label, or array in task order.

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
    if crowd is None or values.shape != (crowd.n_tasks,) or not crowd.has_task_order:
        raise InputError(
            "truth must carry task ids: a Series by task, a dict, or a table with task and label. A bare array is "
            "understood only for a crowd whose tasks were given in order (tasks=...) and must then have one entry per task"
        )
    return pd.Series(values, index=crowd.tasks).dropna()


def encode_truth(truth: Any, crowd: Crowd) -> NDArray[np.int32]:
    """The class of every task whose truth is known, −1 elsewhere.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> encode_truth({"t2": "dog"}, crowd).tolist()
    [-1, 1]
    """
    known = as_truth_series(truth, crowd)
    if not known.index.is_unique:
        raise InputError(
            f"the truth names some tasks twice: {preview(known.index[known.index.duplicated()])}; keep one row each"
        )
    codes = np.full(crowd.n_tasks, -1, dtype=np.int32)
    place = crowd.tasks.get_indexer(match_id_type(known.index, crowd.tasks))
    here = place >= 0
    if len(known) and not here.any():
        raise InputError(
            f"none of the {len(known):,} tasks with truth is in the crowd; the truth starts with {preview(known.index)}, "
            f"the crowd with {preview(crowd.tasks)}. Check that both use the same ids"
        )
    if crowd.classes is None:
        raise InputError("this crowd holds numbers, so its truth has no class; compare numbers instead")
    said = pd.Index(known[here].to_numpy())
    label = crowd.classes.get_indexer(match_id_type(said, crowd.classes))
    if (label < 0).any():
        raise InputError(
            f"the truth names classes that the crowd does not have: {preview(said[label < 0].unique())}; the classes are "
            f"{preview(crowd.classes, 8)}. If nobody ever chose them, name all classes when reading: classes=[...]"
        )
    codes[place[here]] = label
    return codes


def align_features(features: Any, crowd: Crowd) -> NDArray[np.float64]:
    """The rows of a feature table in the order of the crowd's tasks.

    A table indexed by task is matched by id. A bare array is accepted when the order of tasks is beyond doubt.

    >>> crowd = Crowd.from_triples([("b", "ann", 1), ("a", "ann", 0)])
    >>> align_features(pd.DataFrame({"x": [2.0, 1.0]}, index=["b", "a"]), crowd).tolist()
    [[1.0], [2.0]]
    """
    rows = as_float_features(order_by_task(features, crowd))
    bad = np.logical_not(np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
    if bad.any():
        raise InputError(
            f"features of {bad.sum():,} tasks are not finite, for example {preview(crowd.tasks[bad])}; impute them first"
        )
    return rows


def align_feature_rows(features: Any, crowd: Crowd) -> NDArray[np.float64]:
    """A row of features, at least one number, for each of the crowd's tasks; see `align_features`.

    >>> crowd = Crowd.from_triples([(0, "ann", 1), (1, "ann", 0)])
    >>> align_feature_rows([1.0, 2.0], crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: a row of features for every task was wanted; got an array of shape (2,)
    """
    rows = align_features(features, crowd)
    if rows.ndim < 2 or rows[:1].size == 0:
        raise InputError(f"a row of features for every task was wanted; got an array of shape {rows.shape}")
    return rows


def order_by_task(features: Any, crowd: Crowd) -> Any:
    """The features as they are, but in the order of the crowd's tasks.

    >>> crowd = Crowd.from_triples([("b", "ann", 1), ("a", "ann", 0)])
    >>> order_by_task(pd.DataFrame({"colour": ["red", "blue"]}, index=["b", "a"]), crowd)["colour"].tolist()
    ['blue', 'red']
    """
    if isinstance(features, pd.DataFrame):
        if not features.index.is_unique:
            raise InputError(
                f"features repeat the tasks {preview(features.index[features.index.duplicated()])}; keep one row each"
            )
        place = features.index.get_indexer(match_id_type(crowd.tasks, features.index))
        if (place < 0).any():
            raise InputError(
                f"no features for {np.sum(place < 0):,} tasks, for example {preview(crowd.tasks[place < 0])}; the features "
                f"are of {preview(features.index)}. If the ids are a column, make them the index: X.set_index('task'). If "
                "scikit-learn split these, it split by position: put X in the crowd's order first, X.loc[crowd.tasks]"
            )
        return features.iloc[place]
    if not crowd.has_task_order:
        raise InputError(
            "a bare feature array cannot be matched to these tasks; index it by task "
            "(pd.DataFrame(X, index=task_ids)), or fix the order with Crowd.from_frame(votes, tasks=task_ids)"
        )
    try:
        n_rows = len(features)
    except TypeError:  # a single number, or a sparse matrix
        raise InputError(f"a table or a dense array of features was wanted; got {type(features).__name__}") from None
    if n_rows != crowd.n_tasks:
        raise InputError(f"one row of features per task was wanted, {crowd.n_tasks:,} in all; got {n_rows:,}")
    return features


def as_float_features(features: Any) -> NDArray[np.float64]:
    """Features as an array of numbers; a hole in a table is NaN.

    >>> as_float_features([["red"]])
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: features must be numbers: could not convert string to float: 'red'; encode text and ...
    """
    try:
        if isinstance(features, pd.DataFrame):
            return features.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}; encode text and categories first") from None
