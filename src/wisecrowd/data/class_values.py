"""Numbers that ordered classes stand for."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def class_values(classes: pd.Index) -> NDArray[np.float64]:
    """Return the number of every ordered class: itself if all classes are numbers in ascending order, else its position.

    Parameters
    ----------
    classes : Index
        Classes from lowest to highest.

    Returns
    -------
    ndarray of shape (n_classes,)

    Examples
    --------
    >>> class_values(pd.Index(["1", "2", "5"])).tolist(), class_values(pd.Index(["poor", "good"])).tolist()
    ([1.0, 2.0, 5.0], [0.0, 1.0])
    """
    numbers = pd.to_numeric(pd.Series(classes), errors="coerce").to_numpy(dtype=np.float64)
    is_scale = np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    return numbers if is_scale else np.arange(len(classes), dtype=np.float64)
