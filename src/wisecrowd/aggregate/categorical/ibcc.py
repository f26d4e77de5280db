"""Independent Bayesian classifier combination: Dawid and Skene's model with beliefs in place of estimates."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows, divergence, geometric_mean
from wisecrowd.errors import UsageError


@method_class
class IBCC(ConfusionEM):
    """Dawid and Skene's model by variational Bayes: confusion matrices are beliefs that few votes leave open.

    Model: ρ ~ Dir(α), π_r[k, ·] ~ Dir(β_k), z_i ~ ρ, y_ir | z_i = k ~ π_r[k, ·], with α = class_votes and
    β_kl = smoothing + diagonal·[k = l]. The posterior is approximated by q(z) q(ρ) q(π), which alternates between

        q(ρ) = Dir(α + Σ_i q_i),   q(π_r[k, ·]) = Dir(β_k + n_r[k, ·])
        q_i(k) ∝ exp( E log ρ_k + Σ_r E log π_r[k, y_ir] ),   E log π_r[k, l] = ψ(β_kl + n_r[k, l]) − ψ(β_k· + n_r[k, ·])

    and climbs the evidence lower bound (`trace_`). The confusion matrices shown are posterior means.

    Choose it in place of `DawidSkene` when posteriors should say how sure they are: it knows how little it knows of a
    worker with few labels, and is the best calibrated of its family. Where half of the workers answer at random it can be
    overconfident all the same. With ``prior="uniform", smoothing=1, diagonal=1`` it is the mean-field method (VI-MF) of
    Liu, Peng and Ihler (2012).

    >>> from wisecrowd import IBCC
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = IBCC().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.8
    True
    """

    references: ClassVar[tuple[str, ...]] = ("kim2012bayesian", "liu2012variational")

    smoothing: float = parameter(default=1.0, help="β off the diagonal: votes for each error, seen beforehand")
    diagonal: float = parameter(default=3.0, help="how much larger β is on the diagonal")
    class_votes: float = parameter(default=1.0, help="α: votes for each class, seen beforehand")

    def _check(self) -> None:
        super()._check()
        if not (self.smoothing > 0 and self.class_votes > 0):
            raise UsageError(
                "smoothing and class_votes must be positive, for a Dirichlet distribution has no zeros; "
                f"got {self.smoothing} and {self.class_votes}"
            )

    @property
    def _estimates_prior(self) -> bool:
        return isinstance(self.prior, str) and self.prior == "estimate"

    def _rows(self, n_classes: int) -> DirichletRows:
        return DirichletRows(np.arange(n_classes), n_classes, self.smoothing, self.diagonal)

    def _class_prior(self, classes: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp E log ρ; the parts add up to less than one."""
        return geometric_mean(classes + self.class_votes) if self._estimates_prior else super()._class_prior(classes)

    def _class_log_prior(self, classes: NDArray[np.float64]) -> float:
        return -divergence(np.full(len(classes), self.class_votes), classes) if self._estimates_prior else 0.0

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._rows(tally.shape[1]).geometric_mean(tally, pairs)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return -self._rows(tally.shape[1]).divergence(tally, pairs)

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._rows(tally.shape[1]).mean(tally, pairs)
