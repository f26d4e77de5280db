"""Learning from crowds without features: Dawid and Skene's model with informative priors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows
from wisecrowd.errors import UsageError


@method_class
class LFC(ConfusionEM):
    """Confusion matrices and class prior by maximum a posteriori, with informative Dirichlet priors.

    Model: z_i ~ ρ ~ Dir(1 + c) and y_ir | z_i = k ~ π_r[k, ·] ~ Dir(1 + s_k), so s and c are pseudo-votes:

        E:  q_i(k) ∝ ρ_k Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·),   ρ_k = (Σ_i q_i(k) + c_k) / (N + c·)

    This is the model of Raykar et al. (2010) for votes without features; with two classes the rows are its Beta priors of
    sensitivity and specificity. By default s_kl = smoothing + diagonal·[k = l].

    Choose it when you know which classes workers confuse or how frequent classes are, and workers have few labels each. Without
    such knowledge it is `DawidSkene` with a regularised class prior.

    Examples
    --------
    >>> from wisecrowd import LFC, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "wolf"), ("t1", "bob", "wolf"), ("t1", "cy", "dog"),
    ...                             ("t2", "ann", "dog"), ("t3", "bob", "dog")])
    >>> many_take_dogs_for_wolves = [[6, 4], [1, 9]]  # rows: the true class, dog and wolf
    >>> LFC(expected=many_take_dogs_for_wolves).fit(crowd).proba_.loc["t1"].round(2).to_dict()
    {'dog': 0.73, 'wolf': 0.27}
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)

    expected: Any = parameter(
        default=None,
        help="Pseudo-votes [true, given] in place of smoothing and diagonal: a table by class, or rows in class order.",
    )
    class_votes: Any = parameter(
        default=None, help="Pseudo-votes of the classes: one number for all, or one per class; 1 if None."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._make_rows(len(self.classes_))
        self._get_class_votes(len(self.classes_))

    def _make_rows(self, n_classes: int) -> DirichletRows:
        """Return the priors of the rows of a confusion matrix."""
        if self.expected is None:
            return DirichletRows(np.arange(n_classes), n_classes, self.smoothing, self.diagonal)
        table = self.expected
        if isinstance(table, pd.DataFrame):
            table = table.reindex(index=self.classes_, columns=self.classes_)
        votes = np.asarray(table, dtype=np.float64)
        if votes.shape != (n_classes, n_classes) or not (votes >= 0).all() or not np.isfinite(votes).all():
            raise UsageError(
                f"expected must hold {n_classes} x {n_classes} non-negative numbers, one row per true class and one column "
                f"per label, in the order of the classes or named by them; got shape {votes.shape}"
            )
        return DirichletRows(np.arange(n_classes), n_classes, table=votes)

    def _get_class_votes(self, n_classes: int) -> NDArray[np.float64]:
        """Return the pseudo-votes of the classes."""
        votes = np.asarray(1.0 if self.class_votes is None else self.class_votes, dtype=np.float64)
        if votes.shape not in ((), (n_classes,)) or not (votes >= 0).all() or not np.isfinite(votes).all():
            raise UsageError(
                f"class_votes must be one non-negative number, or {n_classes}, one per class; got {self.class_votes!r}"
            )
        return np.broadcast_to(votes, n_classes)

    def estimate_class_prior(self, class_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the class prior with pseudo-votes.

        Parameters
        ----------
        class_counts : ndarray of shape (n_classes,)
            Sum of the posteriors by class.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return super().estimate_class_prior(class_counts + self._get_class_votes(len(class_counts)))

    def _class_log_prior(self, class_counts: NDArray[np.float64]) -> float:
        return float(xlogy(self._get_class_votes(len(class_counts)), self.estimate_class_prior(class_counts)).sum())

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._make_rows(tally.shape[1]).mean(tally, pairs)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return self._make_rows(tally.shape[1]).log_density(tally, pairs)

    def accuracy_pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Return the prior of a worker's accuracy as pseudo-votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        correct, total : float
            Number of correct pseudo-votes, and of all pseudo-votes; the mean over the true classes.
        """
        if self.expected is None:
            return super().accuracy_pseudo_votes(n_classes)
        votes = self._make_rows(n_classes).table
        assert votes is not None
        return float(np.trace(votes)) / n_classes, float(votes.sum()) / n_classes
