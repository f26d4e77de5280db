"""Dawid and Skene's model for ordered classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.ordinal._unimodal_rows import estimate_unimodal_probs, make_pseudo_votes
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.confusion import SMOOTHING_HELP, ConfusionEM
from wisecrowd.errors import UsageError


@method_class
class OrdinalDawidSkene(ConfusionEM):
    """Dawid–Skene model of ordered classes: a worker's labels become rarer with their distance from the true class.

    Model: z_i ~ ρ and y_ir | z_i = k ~ π_r[k, ·], where every row of a confusion matrix rises up to the true class and falls
    after it: π_r[k, 0] ≤ … ≤ π_r[k, k] ≥ … ≥ π_r[k, K−1]. The M-step is an isotonic regression of each row. Pseudo-votes
    fall with the distance, too: s_kl = smoothing + diagonal·decay^|k−l|.

    Choose it for grades and levels that are real classes, such as stages or degrees of relevance, when workers label many
    tasks each. It predicts ratings better than `DawidSkene`, but no worker can be read as an adversary. For ratings of a
    continuous quality, `GradedResponse` has fewer parameters per worker.

    Examples
    --------
    >>> from wisecrowd import OrdinalDawidSkene, simulate_ratings
    >>> simulation = simulate_ratings(n_tasks=200, n_workers=10, n_classes=4, votes_per_task=5, random_state=0)
    >>> fitted = OrdinalDawidSkene().fit(simulation.crowd)
    >>> row = fitted.confusion_[0, 1]
    >>> bool(row[0] <= row[1] >= row[2] >= row[3])
    True
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("ordinal",)

    smoothing: float = parameter(default=0.1, help=SMOOTHING_HELP)
    diagonal: float = parameter(
        default=1.0, help="Number of further pseudo-votes on the diagonal of a worker's confusion matrix."
    )
    decay: float = parameter(
        default=0.5, help="Factor by which the further pseudo-votes fall with each class of distance from the diagonal."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= self.decay <= 1:
            raise UsageError(f"decay must be between 0 and 1; got {self.decay}")

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return 1

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return estimate_unimodal_probs(tally, pairs, self._make_pseudo_votes(tally))[0]

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return estimate_unimodal_probs(tally, pairs, self._make_pseudo_votes(tally))[1]

    def _make_pseudo_votes(self, tally: NDArray[Any]) -> NDArray[np.float64]:
        return make_pseudo_votes(tally.shape[1], self.smoothing, self.diagonal, self.decay)

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
        votes = make_pseudo_votes(n_classes, self.smoothing, self.diagonal, self.decay)
        return float(votes.trace()) / n_classes, float(votes.sum()) / n_classes

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        pairs = self._pairs
        error = pairs.label[:, None] - np.arange(self.tally_.shape[1])
        with np.errstate(invalid="ignore"):  # a worker without votes has no errors: NaN
            columns = {
                name: pairs.sum_by_worker((self.tally_ * part).sum(axis=1, dtype=np.float64))
                / pairs.sum_by_worker(self.tally_.sum(axis=1, dtype=np.float64))
                for name, part in (("bias", error), ("mae", np.abs(error)))
            }
        return super()._worker_columns() | columns
