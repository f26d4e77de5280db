"""Dawid and Skene's model: every worker has a confusion matrix of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._spectral import SpectralStart
from wisecrowd.base.fields import method_class
from wisecrowd.data.crowd import Pairs
from wisecrowd.em.priors import smoothed, smoothed_log_prior


@method_class
class DawidSkene(SpectralStart):
    """Every worker has a full confusion matrix, learnt by EM together with the truth.

    Model: z_i ~ ρ and y_ir | z_i = k ~ π_r[k, ·], with pseudo-votes s_kl = smoothing + diagonal·[k = l] (a Dirichlet
    prior) so that no worker is held to be incapable of what they were not seen doing:

        E:  q_i(k) ∝ ρ_k Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·),   n_r[k, l] = Σ_i q_i(k) [y_ir = l]

    Choose it when workers answer many tasks each (say, five per cell of their matrix) and err in their own ways: it
    sees through class-specific bias and adversaries. With few labels per worker or many classes it has too much
    freedom; take `OneCoin` or majority vote there. Maximum likelihood (``smoothing=0, diagonal=0``) falls below
    majority vote on sparse data. With a single vote on every task nothing tells workers apart, and it can put all tasks
    into one class (CIFAR-100N: .010 for the .598 of the votes themselves); it warns of that.

    >>> from wisecrowd import DawidSkene, MajorityVote, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5)
    >>> fitted = DawidSkene().fit(made.crowd)
    >>> majority = MajorityVote().fit(made.crowd)
    >>> bool((fitted.labels_ == made.truth).mean() > (majority.labels_ == made.truth).mean())
    True
    >>> fitted.confusion_.shape
    (20, 3, 3)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return smoothed(tally, pairs, self.smoothing, self.diagonal)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return smoothed_log_prior(tally, pairs, self.smoothing, self.diagonal)
