"""Interface of encoders that turn tables, texts or images into rows of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray


class FeatureEncoder(ABC):
    """Conversion of task contents to rows of numbers, fitted on training tasks and saved with a learner."""

    #: Name of the encoder in saved files.
    kind: ClassVar[str]

    @abstractmethod
    def accepts(self, X: Any) -> bool:
        """Return whether this is content to encode, rather than rows that are encoded already.

        Parameters
        ----------
        X : object
            Argument of ``predict``.

        Returns
        -------
        bool
        """

    @abstractmethod
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return rows of numbers.

        Parameters
        ----------
        X : object
            Contents of tasks, as in training.

        Returns
        -------
        ndarray of shape (n_tasks, n_features)
        """

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted state as arrays of numbers and texts."""

    @classmethod
    @abstractmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`.

        Returns
        -------
        FeatureEncoder

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
