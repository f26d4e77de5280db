"""Learning from crowds without features: Dawid and Skene's model with what is believed beforehand."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows
from wisecrowd.errors import UsageError


@method_class
class LFC(ConfusionEM):
    """Confusion matrices and class prior by maximum a posteriori, with Dirichlet priors that say what you believe.

    Model: z_i ~ ρ ~ Dir(1 + c) and y_ir | z_i = k ~ π_r[k, ·] ~ Dir(1 + s_k), so that s and c count as votes seen before:

        E:  q_i(k) ∝ ρ_k Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·),   ρ_k = (Σ_i q_i(k) + c_k) / (N + c·)

    This is the model of Raykar et al. (2010) for votes without features; for two classes the rows are its Beta priors of
    sensitivity and specificity. By default s_kl = smoothing + diagonal·[k = l]; ``expected`` takes any table of
    pseudo-votes (true x said) instead, ``class_votes`` one number c or one per class (1 by default).

    Choose it when you know beforehand which classes people confuse or how frequent classes are, and workers have few
    labels each. Without such knowledge it is `DawidSkene` with a regularised class prior.

    >>> from wisecrowd import LFC, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "wolf"), ("t1", "bob", "wolf"), ("t1", "cy", "dog"),
    ...                             ("t2", "ann", "dog"), ("t3", "bob", "dog")])
    >>> many_take_dogs_for_wolves = [[6, 4], [1, 9]]  # rows: what is true, dog and wolf
    >>> LFC(expected=many_take_dogs_for_wolves).fit(crowd).proba_.loc["t1"].round(2).to_dict()
    {'dog': 0.73, 'wolf': 0.27}
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)

    expected: Any = parameter(
        default=None, help="pseudo-votes (true x said) in place of smoothing and diagonal: a table by class, or rows"
    )
    class_votes: Any = parameter(
        default=None, help="pseudo-votes of the classes: a number, or one per class; one each if not given"
    )

    def _check(self) -> None:
        super()._check()
        self._rows(len(self.classes_))
        self._class_votes(len(self.classes_))

    def _rows(self, n_classes: int) -> DirichletRows:
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

    def _class_votes(self, n_classes: int) -> NDArray[np.float64]:
        votes = np.asarray(1.0 if self.class_votes is None else self.class_votes, dtype=np.float64)
        if votes.shape not in ((), (n_classes,)) or not (votes >= 0).all() or not np.isfinite(votes).all():
            raise UsageError(
                f"class_votes must be one non-negative number, or {n_classes}, one per class; got {self.class_votes!r}"
            )
        return np.broadcast_to(votes, n_classes)

    def _class_prior(self, classes: NDArray[np.float64]) -> NDArray[np.float64]:
        return super()._class_prior(classes + self._class_votes(len(classes)))

    def _class_log_prior(self, classes: NDArray[np.float64]) -> float:
        return float(xlogy(self._class_votes(len(classes)), self._class_prior(classes)).sum())

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._rows(tally.shape[1]).mean(tally, pairs)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return self._rows(tally.shape[1]).log_density(tally, pairs)

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        if self.expected is None:
            return super()._pseudo_votes(n_classes)
        votes = self._rows(n_classes).table
        assert votes is not None
        return float(np.trace(votes)) / n_classes, float(votes.sum()) / n_classes
